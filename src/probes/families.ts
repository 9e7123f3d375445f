// Written by `npm run generate` from the folder names and the files in families/. Not edited by hand.
import type { Declaration } from './declared/declaration.ts';
import type { DeviceFamily } from './family.ts';

/** Every device family, loaded only when it is needed. */
export const familyLoaders: Readonly<Record<string, () => Promise<DeviceFamily>>> = {
  amdgpu: async () => (await import('./amdgpu/index.ts')).family,
  fpga: async () => (await import('./fpga/index.ts')).family,
  gaudi: async () => shipped((await import('../generated/families/gaudi.ts')).declaration),
  infiniband: async () => (await import('./infiniband/index.ts')).family,
  intelfec: async () => shipped((await import('../generated/families/intelfec.ts')).declaration),
  intelgpu: async () => (await import('./intelgpu/index.ts')).family,
  intelnpu: async () => shipped((await import('../generated/families/intelnpu.ts')).declaration),
  netdev: async () => (await import('./netdev/index.ts')).family,
  neuron: async () => shipped((await import('../generated/families/neuron.ts')).declaration),
  nvidia: async () => (await import('./nvidia/index.ts')).family,
  nvme: async () => (await import('./nvme/index.ts')).family,
  pci: async () => shipped((await import('../generated/families/pci.ts')).declaration),
  qat: async () => shipped((await import('../generated/families/qat.ts')).declaration),
  tenstorrent: async () => shipped((await import('../generated/families/tenstorrent.ts')).declaration),
  tpu: async () => shipped((await import('../generated/families/tpu.ts')).declaration),
  ve: async () => shipped((await import('../generated/families/ve.ts')).declaration),
};

async function shipped(declaration: object): Promise<DeviceFamily> {
  const { familyOf } = await import('./declared/family.ts');
  return familyOf({ declaration: declaration as Declaration, origin: 'package' });
}
