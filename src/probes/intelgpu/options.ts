import { seconds } from '../../model/duration.ts';
import { constant, integerOption, type OptionSpecs, type OptionValues, pacedOption } from '../../model/options.ts';

export const options = {
  /** Names, limits, virtual functions, firmware. */
  'facts-interval': pacedOption('refresh.facts', seconds(60)),
  'processes-per-refresh': constant(
    integerOption(32, 'Processes whose open files are listed in one refresh, to find those that use a GPU, new ones first; 0: no search'),
  ),
} as const satisfies OptionSpecs;

export type IntelgpuOptions = OptionValues<typeof options>;
