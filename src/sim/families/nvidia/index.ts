import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [{ name: 'nvidia', about: 'NVIDIA GPU', default: 8, most: 64 }],
  simulate,
  faults: [
    {
      name: 'hot',
      about: 'The GPU is at 88 °C and halves its clocks.',
      kinds: ['gpu'],
      story: { lastsMs: seconds(60), recoversMs: seconds(70) },
    },
    { name: 'ecc', about: 'Two uncorrectable memory errors, and a row that waits for a reset to be replaced.', kinds: ['gpu'] },
    {
      name: 'xid79',
      about: 'The GPU falls off the bus: Xid 79 in the kernel log, and the driver reports no values of it.',
      kinds: ['gpu'],
      isFatal: true,
    },
    { name: 'xid31', about: 'A program on the GPU has a memory fault: Xid 31 in the kernel log. The GPU stays healthy.', kinds: ['gpu'] },
    { name: 'stranger', about: 'A program that belongs to no pod runs on the GPU and takes 6 GB of its memory.', kinds: ['gpu'] },
    {
      name: 'spin',
      about: 'The program waits for another GPU: its kernel keeps the GPU busy at 139 W and does no work. Let its adapter be silent too.',
      kinds: ['gpu'],
    },
    { name: 'hung-program', about: 'nvidia-smi hangs: no GPU can be read.', kinds: [] },
  ],
  workloads: [
    // It takes a port of the fabric too, where the node has one.
    {
      namespace: 'training',
      name: 'llm',
      container: 'worker',
      wants: [
        ['nvidia.com/gpu', 1],
        ['nvidia.com/ib_pf', 1],
      ],
    },
    { namespace: 'inference', name: 'chat', container: 'server', wants: [['nvidia.com/mig', 1]] },
    { namespace: 'training', name: 'finetune', container: 'trainer', wants: [['nvidia.com/gpu', 2]], unused: 1 },
  ],
};
