import { minutes, seconds } from '../../model/duration.ts';
import { constant, integerOption, type OptionSpecs, type OptionValues, pacedOption } from '../../model/options.ts';

export const options = {
  /** Names, limits, partitions, the topology. */
  'facts-interval': pacedOption('refresh.facts', minutes(2)),
  /** The error counts: each read makes the driver query the hardware. */
  'ras-interval': pacedOption('refresh.slow', seconds(60)),
  'bad-pages-interval': pacedOption('refresh.slow', minutes(10)),
  /** There is one search in 30 seconds. New processes come first. */
  'processes-per-search': constant(
    integerOption(16, 'Processes whose open files are listed in one search for processes that use a GPU without KFD; 0: no search'),
  ),
} as const satisfies OptionSpecs;

export type AmdgpuOptions = OptionValues<typeof options>;
