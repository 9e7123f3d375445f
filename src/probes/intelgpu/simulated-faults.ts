import { seconds } from '../../model/duration.ts';
import type { FaultSpec } from '../../model/simulated.ts';

/** Faults of the simulated cards. */
export const faults: readonly FaultSpec[] = [
  {
    name: 'hot',
    about: 'The card is too hot and slows down.',
    kinds: ['gpu'],
    story: { lastsMs: seconds(80), recoversMs: seconds(70) },
  },
];
