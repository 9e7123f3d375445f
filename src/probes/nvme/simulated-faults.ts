import { seconds } from '../../model/duration.ts';
import type { FaultSpec } from '../../model/simulated.ts';

/** Faults of the simulated drives. */
export const faults: readonly FaultSpec[] = [
  {
    name: 'hot',
    about: 'The drive is at 83 °C, above its critical temperature.',
    kinds: ['controller'],
    story: { lastsMs: seconds(30), recoversMs: seconds(140) },
  },
];
