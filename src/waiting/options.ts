import { millis, minutes, seconds } from '../model/duration.ts';
import { booleanOption, durationOption, integerOption, type OptionSpecs, type OptionValues } from '../model/options.ts';

export const stallOptions = {
  enabled: booleanOption(true, 'Judge whether the containers that hold GPUs wait.'),
  after: durationOption(minutes(10), 'Time without progress after which a container waits.', seconds(30)),
  learn: durationOption(minutes(10), 'Time of work that a container must have shown before it can be said to wait.', seconds(30)),
  'busy-percent': integerOption(95, 'Utilization from which an engine counts as busy.', 1, 100),
  'activity-percent': integerOption(
    1,
    'Activity of every pipe of a GPU below which a busy engine does no work; ten times as much of the integer pipe.',
    1,
    100,
  ),
  'power-percent': integerOption(25, 'Power up to which a busy engine does no work, as share of the limit of the board.', 1, 100),
  'bytes-percent': integerOption(1, "Bytes below which nothing moves, as share of the container's own earlier median.", 1, 100),
  sample: durationOption(
    millis(0),
    'Interval at which the devices of containers with GPUs are read, to see short steps. 0: the usual refresh; each second only while a container seems to wait.',
  ),
} as const satisfies OptionSpecs;
export type StallOptions = OptionValues<typeof stallOptions>;
