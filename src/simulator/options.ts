import { seconds } from '../model/duration.ts';
import { durationOption, integerOption, type OptionSpecs, type OptionValues } from '../model/options.ts';

/** Size and pace of the simulated node: `--sim.<name>`. */
export const simulationOptions = {
  gpus: integerOption(8, 'NVIDIA GPUs; from four on, one of them is split into MIG instances.'),
  hcas: integerOption(4, 'InfiniBand HCAs (physical functions).'),
  vfs: integerOption(4, 'Virtual functions in all, spread over the HCAs.'),
  fpgas: integerOption(2, 'FPGA boards, of alternating makes.'),
  pods: integerOption(12, 'Pods on the node.'),
  step: durationOption(seconds(1), 'How often counters move.', 20),
  'pod-change': durationOption(seconds(15), 'How often one pod ends and another begins; 0 leaves them alone.'),
} as const satisfies OptionSpecs;
export type SimulationOptions = OptionValues<typeof simulationOptions>;
