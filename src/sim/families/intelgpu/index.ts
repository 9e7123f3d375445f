import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [{ name: 'intelgpu', about: 'Intel GPU', default: 0, most: 64 }],
  simulate,
  faults: [
    {
      name: 'hot',
      about: 'The card is too hot and slows down.',
      kinds: ['gpu'],
      story: { lastsMs: seconds(80), recoversMs: seconds(70) },
    },
  ],
  workloads: [
    { namespace: 'media', name: 'live', container: 'encoder', wants: [['gpu.intel.com/xe', 1]] },
    { namespace: 'media', name: 'archive', container: 'decoder', wants: [['gpu.intel.com/i915', 1]] },
  ],
};
