import { seconds } from '../../model/duration.ts';
import type { FaultSpec } from '../../model/simulated.ts';

/** Faults of the simulated boards. */
export const faults: readonly FaultSpec[] = [
  {
    name: 'nonfatal-error',
    about: 'The board latches an error in its register nonfatal_errors and goes on working.',
    kinds: ['fpga'],
    story: { lastsMs: seconds(40), recoversMs: seconds(20) },
  },
  { name: 'hot', about: 'The fan fails: the FPGA is above its critical temperature.', kinds: ['fpga'] },
];
