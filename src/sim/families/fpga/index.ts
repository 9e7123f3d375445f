import { seconds } from '../../../model/duration.ts';
import type { FamilySimulation } from '../../family-simulation.ts';
import { simulate } from './simulate.ts';

export const simulation: FamilySimulation = {
  sizes: [{ name: 'fpga', about: 'FPGA board', default: 2, most: 64 }],
  simulate,
  faults: [
    {
      name: 'nonfatal-error',
      about: 'The board latches an error in its register nonfatal_errors and goes on working.',
      kinds: ['fpga'],
      story: { lastsMs: seconds(40), recoversMs: seconds(20) },
    },
    { name: 'hot', about: 'The fan fails: the FPGA is above its critical temperature.', kinds: ['fpga'] },
  ],
  workloads: [
    { namespace: 'genomics', name: 'aligner', container: 'kernel', wants: [['fpga.intel.com/', 1]] },
    { namespace: 'video', name: 'transcode', container: 'encoder', wants: [['amd.com/xilinx', 1]] },
  ],
};
