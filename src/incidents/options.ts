import { minutes } from '../model/duration.ts';
import { durationOption, integerOption, type OptionSpecs, type OptionValues } from '../model/options.ts';

export const incidentOptions = {
  readings: durationOption(minutes(10), 'Time before an incident whose readings the record has.', 0),
  keep: integerOption(200, 'Number of incidents that are kept on disk. The oldest go first.', 0, 10_000),
  'keep-mib': integerOption(32, 'Size of all incidents on disk, in MiB.', 1, 4096),
} as const satisfies OptionSpecs;
export type IncidentOptions = OptionValues<typeof incidentOptions>;
