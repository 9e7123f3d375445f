import { seconds } from '../model/duration.ts';
import { durationOption, integerOption, listOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

/** Options `--sim.<name>`: size and speed of the simulated node. */
export const simulationOptions = {
  gpus: integerOption(8, 'NVIDIA GPUs; with four or more, one of them is split into MIG instances.', 0, 64),
  hcas: integerOption(4, 'InfiniBand HCAs (physical functions).', 0, 200),
  vfs: integerOption(4, 'Total number of virtual functions, spread over the HCAs.', 0, 4_000),
  fpgas: integerOption(2, 'FPGA boards, of alternating models.', 0, 200),
  devices: listOption([], 'Devices of other families, as family=count. A family that is not listed has none.'),
  pods: integerOption(12, 'Pods on the node.', 0, 1_000),
  story: stringOption('on', 'Whether faults begin and end by themselves, one after the other.', ['on', 'off']),
  step: durationOption(seconds(1), 'How often counters change.', 20),
  'pod-change': durationOption(seconds(15), 'How often one pod ends and another starts; 0 keeps all pods.'),
} as const satisfies OptionSpecs;
export type SimulationOptions = OptionValues<typeof simulationOptions>;
