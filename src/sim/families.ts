// Written by `npm run generate` from the folder names. Not edited by hand.
import { simulation as amdgpu } from './families/amdgpu/index.ts';
import { simulation as fpga } from './families/fpga/index.ts';
import { simulation as infiniband } from './families/infiniband/index.ts';
import { simulation as intelgpu } from './families/intelgpu/index.ts';
import { simulation as netdev } from './families/netdev/index.ts';
import { simulation as nvidia } from './families/nvidia/index.ts';
import { simulation as nvme } from './families/nvme/index.ts';
import type { SimulatedFamily } from './family-simulation.ts';

/** Every family of which the simulated node has devices. */
export const simulatedFamilies: readonly SimulatedFamily[] = [
  { name: 'amdgpu', simulation: amdgpu },
  { name: 'fpga', simulation: fpga },
  { name: 'infiniband', simulation: infiniband },
  { name: 'intelgpu', simulation: intelgpu },
  { name: 'netdev', simulation: netdev },
  { name: 'nvidia', simulation: nvidia },
  { name: 'nvme', simulation: nvme },
];
