import type { ProblemSpec } from '../../model/collection.ts';
import { minutes, seconds } from '../../model/duration.ts';
import { constant, integerOption, type OptionSpecs, type OptionValues, pacedOption } from '../../model/options.ts';
import { classProblem, fileProblems } from '../kit/device-files.ts';
import { cardProblems } from '../kit/drm/cards.ts';
import { sensorProblems } from '../kit/temperature.ts';

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

export const problems = [
  classProblem(
    'The directory of graphics devices exists but cannot be listed, so the agent knows nothing about any GPU.',
    '/sys/class/drm',
  ),
  {
    code: 'metrics-version',
    meaning: 'The driver serves gpu_metrics in a version that the agent does not decode. Values of the hardware monitor remain.',
    remedy: 'Update the agent, or report the version with the kernel and the card.',
  },
  {
    code: 'metrics-garbage',
    meaning: 'The file gpu_metrics is shorter than its header says, or has another size than its version has. Its values are missing.',
    remedy: 'Search the kernel log for amdgpu. If the card works, report the header of the file with the kernel and the card.',
  },
  {
    code: 'metrics-unit',
    meaning:
      'Firmware of an APU writes powers in watts or in milliwatts. The agent compares them with the hardware monitor, and leaves out those whose unit stays unknown.',
    remedy: 'None. The power of the hardware monitor remains, where the kernel gives it.',
  },
  ...cardProblems(
    'amdgpu',
    'The kernel hides the open files of some or all processes from the agent, or one of them has very many, so processes of graphics and their time on the engines may be unknown.',
  ),
  ...sensorProblems,
  ...fileProblems('card', 'Search the kernel log for amdgpu; a card that does not answer may need a reset.'),
  {
    code: 'topology-unreadable',
    meaning: 'The topology of KFD exists but cannot be read, so partitions, links and compute processes are unknown.',
    remedy: "Mount the host's /sys read-only into the agent and let it read /sys/class/kfd.",
  },
] as const satisfies readonly ProblemSpec[];
