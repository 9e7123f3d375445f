import { seconds } from '../../model/duration.ts';
import type { FaultSpec } from '../../model/simulated.ts';

/** Faults of the simulated cards. Each concerns the port of a physical function, and with it the virtual functions of the card. */
export const faults: readonly FaultSpec[] = [
  {
    name: 'port-down',
    about: 'The cable is unplugged: the port searches for the other end of the link.',
    kinds: ['pf'],
    story: { lastsMs: seconds(50), recoversMs: seconds(70) },
  },
  { name: 'errors', about: 'The cable is bad: the link retrains every few seconds, and packets arrive damaged.', kinds: ['pf'] },
  { name: 'unreadable', about: 'The firmware hangs: a read of the state of the port fails with EIO.', kinds: ['pf'] },
];
