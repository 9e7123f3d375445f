import { seconds } from '../model/duration.ts';
import { durationOption, integerOption, type OptionSpecs, type OptionValues } from '../model/options.ts';

/** Size and pace of the simulated node: `--sim.<name>`. */
export const simulationOptions = {
  gpus: integerOption(8, 'NVIDIA GPUs; from four on, one of them is split into MIG instances.', 0, 64),
  hcas: integerOption(4, 'InfiniBand HCAs (physical functions).', 0, 200),
  vfs: integerOption(4, 'Virtual functions in all, spread over the HCAs.', 0, 4_000),
  fpgas: integerOption(2, 'FPGA boards, of alternating makes.', 0, 200),
  pods: integerOption(12, 'Pods on the node.', 0, 1_000),
  step: durationOption(seconds(1), 'How often counters move.', 20),
  'pod-change': durationOption(seconds(15), 'How often one pod ends and another begins; 0 leaves them alone.'),
} as const satisfies OptionSpecs;
export type SimulationOptions = OptionValues<typeof simulationOptions>;
