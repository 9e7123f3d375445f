import { seconds } from '../model/duration.ts';
import { durationOption, integerOption, listOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';
import type { SimulatedSize } from './family-simulation.ts';

/** Options `--sim.<name>`: size and speed of the simulated node. */
export const simulationOptions = {
  devices: listOption([], 'Numbers of devices, as name=count; a name that is not listed keeps its default, and all=0 first sets all to 0.'),
  pods: integerOption(12, 'Pods on the node.', 0, 1_000),
  story: stringOption('on', 'Whether faults begin and end by themselves, one after the other.', ['on', 'off']),
  step: durationOption(seconds(1), 'How often counters change.', 20),
  'pod-change': durationOption(seconds(15), 'How often one pod ends and another starts; 0 keeps all pods.'),
} as const satisfies OptionSpecs;
export type SimulationOptions = OptionValues<typeof simulationOptions>;

/** The options, with the names that the families of a program can count. */
export function simulationOptionsFor(sizes: readonly SimulatedSize[]): OptionSpecs {
  const { devices } = simulationOptions;
  const names = sizes.map(({ name, default: usual }) => `${name}=${usual}`).join(',');
  return { ...simulationOptions, devices: { ...devices, help: `${devices.help} Names and defaults: ${names}.` } };
}
