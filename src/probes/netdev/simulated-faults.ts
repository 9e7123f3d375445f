import { seconds } from '../../model/duration.ts';
import type { FaultSpec } from '../../model/simulated.ts';

/** Faults of the simulated adapters. */
export const faults: readonly FaultSpec[] = [
  {
    name: 'port-down',
    about: 'The cable is unplugged: the interface has no carrier.',
    kinds: ['pf'],
    story: { lastsMs: seconds(50), recoversMs: seconds(70) },
  },
];
