import { minutes, seconds } from '../../model/duration.ts';
import { durationOption, integerOption, type OptionSpecs, type OptionValues } from '../../model/options.ts';

export const options = {
  'facts-interval': durationOption(
    minutes(2),
    'Time between two reads of facts that rarely change: names, limits, partitions, the topology',
    seconds(1),
  ),
  'ras-interval': durationOption(
    seconds(60),
    'Time between two reads of the error counts. Each read makes the driver query the hardware; 0 turns these reads off, and only event_state and the bad pages remain',
  ),
  'bad-pages-interval': durationOption(minutes(10), 'Time between two reads of the list of bad memory pages; 0 turns them off'),
  'processes-per-search': integerOption(
    16,
    'Number of processes whose open files are listed in one search for processes that use a GPU without KFD. New processes come first. There is one search in 30 seconds; 0 turns it off',
    0,
    10_000,
  ),
} as const satisfies OptionSpecs;

export type AmdgpuOptions = OptionValues<typeof options>;
