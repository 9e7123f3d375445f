import { millis, minutes, seconds } from '../model/duration.ts';
import { booleanOption, durationOption, type OptionSpecs, type OptionValues } from '../model/options.ts';

export const stallOptions = {
  enabled: booleanOption(true, 'Judge whether the containers that hold GPUs wait.'),
  after: durationOption(minutes(10), 'Time without progress after which a container waits.', seconds(30)),
  learn: durationOption(minutes(10), 'Time of work that a container must have shown before it can be said to wait.', seconds(30)),
  sample: durationOption(
    millis(0),
    'Interval at which the devices of containers with GPUs are read, to see short steps. 0: the usual refresh; each second only while a container seems to wait.',
  ),
} as const satisfies OptionSpecs;
export type StallOptions = OptionValues<typeof stallOptions>;
