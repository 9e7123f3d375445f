import { seconds } from '../../model/duration.ts';
import type { FaultSpec } from '../../model/simulated.ts';

/** Faults of the simulated cards. */
export const faults: readonly FaultSpec[] = [
  {
    name: 'hot',
    about: 'The junction of the card is above its critical temperature.',
    kinds: ['gpu'],
    story: { lastsMs: seconds(60), recoversMs: seconds(70) },
  },
  { name: 'ras', about: 'The memory of the card has an error that cannot be corrected, until a reset.', kinds: ['gpu'] },
];
