import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [{ name: 'amdgpu', about: 'AMD GPU', default: 0, most: 32 }],
  simulate,
  faults: [
    {
      name: 'hot',
      about: 'The junction of the card is above its critical temperature.',
      kinds: ['gpu'],
      story: { lastsMs: seconds(60), recoversMs: seconds(70) },
    },
    { name: 'ras', about: 'The memory of the card has an error that cannot be corrected, until a reset.', kinds: ['gpu'], isFatal: true },
  ],
  workloads: [
    { namespace: 'inference', name: 'embed', container: 'server', wants: [['amd.com/gpu', 1]] },
    { namespace: 'training', name: 'diffusion', container: 'trainer', wants: [['amd.com/gpu', 2]], unused: 1 },
  ],
};
