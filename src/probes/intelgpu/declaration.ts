import { logProblems } from '../../host/kernel-log/problems.ts';
import type { ProblemSpec } from '../../model/collection.ts';
import { seconds } from '../../model/duration.ts';
import { constant, integerOption, type OptionSpecs, type OptionValues, pacedOption } from '../../model/options.ts';
import { classProblem, fileProblems } from '../kit/device-files.ts';
import { cardProblems } from '../kit/drm/cards.ts';
import { sensorProblems } from '../kit/temperature.ts';

export const options = {
  /** Names, limits, virtual functions, firmware. */
  'facts-interval': pacedOption('refresh.facts', seconds(60)),
  'processes-per-refresh': constant(
    integerOption(32, 'Processes whose open files are listed in one refresh, to find those that use a GPU, new ones first; 0: no search'),
  ),
} as const satisfies OptionSpecs;

export type IntelgpuOptions = OptionValues<typeof options>;

export const problems = [
  classProblem(
    'A directory that names the GPUs exists but cannot be listed, so the agent knows nothing about any GPU.',
    '/sys/class/drm and /sys/bus/pci/drivers',
  ),
  {
    code: 'clients-hang',
    meaning: 'A read of the use of the card by a process does not return. The card itself is still read.',
    remedy: 'Search the kernel log for i915 or xe. The job of the process may hang on the card.',
  },
  ...cardProblems(
    'i915 or xe',
    'The agent does not see the processes of the host, the kernel hides their open files, or one of them has very many, so the use of the engines is unknown.',
  ),
  ...sensorProblems,
  ...fileProblems(
    'card',
    'Search the kernel log for i915 or xe; a card that does not answer may need a reset.',
    'Run the agent as root. The kernel shows some files of xe, such as the state of the link, only to root.',
  ),
  ...logProblems,
] as const satisfies readonly ProblemSpec[];
