import type { CapturedSources } from '../../model/declaration.ts';
import { minutes, seconds } from '../../model/duration.ts';
import { constant, durationOption, type OptionSpecs, type OptionValues, pacedOption, stringOption } from '../../model/options.ts';

export const options = {
  source: stringOption(
    'auto',
    'Source of values: the library of the driver, called in process, or the command. auto: the library if it can be loaded and smi-path names no other command.',
    ['auto', 'nvml', 'smi'],
  ),
  'nvml-library': stringOption(
    '',
    'Path of the library libnvidia-ml.so.1. Empty: search with the linker and in the usual folders. A replay gives a file of recorded answers, *.json.',
  ),
  /**
   * Links, video engines, shares of processes, the fabric. Each read covers: instances, memory, temperature, power, utilization, activity,
   * errors, repairs, throttling, processes.
   */
  'nvml-slow-every': pacedOption('refresh.slow', seconds(30)),
  /** Limits, modes, NVLink topology, lifetime errors of the board. */
  'nvml-facts-every': pacedOption('refresh.facts', minutes(5)),
  'nvml-activity': stringOption(
    'auto',
    'Activity of multiprocessors, tensor cores, memory and links (GPM) of Hopper and later boards. off: never sampled, for nodes where another tool uses the profiling counters.',
    ['auto', 'off'],
  ),
  'smi-path': stringOption(
    'nvidia-smi',
    'The command nvidia-smi: a path, or a name that is searched in the usual folders of programs. PATH is not used.',
  ),
  timeout: constant(durationOption(seconds(10), 'Timeout of the command. After it, the command is killed.')),
  'release-file': stringOption(
    '',
    'While this file exists, the agent does not use the driver: it closes the library and does not start nvidia-smi, so that the driver can be unloaded or upgraded. GPUs stay listed without values. The agent checks the file at each read, and opens the library again after the file is removed. Empty: no such file.',
  ),
} as const satisfies OptionSpecs;
export type NvidiaOptions = OptionValues<typeof options>;

/** Where no library answered on the captured machine, the replay must not find the library of its own machine. */
export function replayOptions({ options, hasAnswers, answersFile }: CapturedSources): Readonly<Record<string, string>> {
  const { source = 'auto' } = options;
  return {
    'nvml-library': hasAnswers || source === 'nvml' ? answersFile : '',
    source: source === 'auto' && !hasAnswers ? 'smi' : source,
    'release-file': '',
  };
}
