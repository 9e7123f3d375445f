import type { CapturedSources } from '../../model/captured.ts';

/** Where no library answered on the captured machine, the replay must not find the library of its own machine. */
export function replayOptions({ options, hasAnswers, answersFile }: CapturedSources): Readonly<Record<string, string>> {
  const { source = 'auto' } = options;
  return {
    'nvml-library': hasAnswers || source === 'nvml' ? answersFile : '',
    source: source === 'auto' && !hasAnswers ? 'smi' : source,
    'release-file': '',
  };
}
