import { seconds } from '../../model/duration.ts';
import { durationOption, integerOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

export const options = {
  'facts-interval': durationOption(
    seconds(60),
    'Time between two reads of facts that rarely change: names, limits, virtual functions, firmware',
    seconds(1),
  ),
  'processes-per-refresh': integerOption(
    32,
    'Number of processes whose open files are listed in one refresh, to find those that use a GPU. New processes come first; 0 turns the search off',
    0,
    10_000,
  ),
  kmsg: stringOption('', 'The kernel log in which the drivers report errors, or a file in its format. Empty: kmsg below --path.dev'),
} as const satisfies OptionSpecs;

export type IntelgpuOptions = OptionValues<typeof options>;
