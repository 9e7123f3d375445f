import { minutes, seconds } from '../../model/duration.ts';
import { durationOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

export const options = {
  source: stringOption(
    'auto',
    'Where values come from: the library of the driver, called in process, or the command. auto: the library where it can be loaded and no other command is named.',
    ['auto', 'nvml', 'smi'],
  ),
  'nvml-library': stringOption('', 'The library libnvidia-ml.so.1 by path. Empty: where the linker and the drivers have it.'),
  'nvml-slow-every': durationOption(
    seconds(30),
    'How often the library is asked for what can wait: instances, links, activity, video engines, the fabric. At each read: memory, temperature, power, utilization, errors, repairs, throttling, programs.',
    0,
  ),
  'nvml-facts-every': durationOption(
    minutes(5),
    'How often the library is asked for limits and modes, how NVLinks are wired, and errors in the life of the board.',
    0,
  ),
  'nvml-activity': stringOption(
    'auto',
    'Activity of multiprocessors, tensor cores, memory and links (GPM) of Hopper and later boards. off: never sampled, for nodes where something else profiles.',
    ['auto', 'off'],
  ),
  'smi-path': stringOption('nvidia-smi', 'The command nvidia-smi, by path or as found in PATH.'),
  timeout: durationOption(seconds(10), 'How long the command may take before it is killed.', 100),
  'release-file': stringOption(
    '',
    'While this file exists, nothing uses the driver: its library is closed and nvidia-smi is not started, so that the driver can be unloaded or upgraded. Looked for at each read; once it is gone, the library is opened anew. Empty: no such file. GPUs stay known, without values.',
  ),
  kmsg: stringOption('', 'The kernel log in which Xids appear, or a file in its format. Empty: kmsg below --path.dev.'),
} as const satisfies OptionSpecs;
export type NvidiaOptions = OptionValues<typeof options>;
