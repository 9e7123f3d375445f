import type { ProblemSpec } from '../../model/collection.ts';
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

/** What can prevent the family from reading: meaning and remedy by code. */
const PROBLEMS = {
  'smi-not-found': [
    'The node has NVIDIA hardware, but the command nvidia-smi is missing.',
    'Let the container runtime mount it (runtimeClassName nvidia, NVIDIA_DRIVER_CAPABILITIES=utility), or set --probe.nvidia.smi-path.',
  ],
  'smi-not-executable': [
    'The command exists, but the agent may not run it.',
    'Check the mode of the file and the security context of the container.',
  ],
  'driver-not-loaded': [
    'The command cannot reach the kernel driver.',
    'Load the driver (modprobe nvidia) and search the kernel log for the reason.',
  ],
  'driver-library-mismatch': [
    'Library and kernel driver have different versions, as after an upgrade without a reload.',
    'Reload the driver or reboot; in a container, restart it so that the new library is mounted.',
  ],
  'driver-released': [
    'A person, a program or the driver asked the agent to close the driver. The agent reads no GPU until the release ends.',
    'Do nothing while the driver is reset or upgraded. Then remove the file of --probe.nvidia.release-file, or run `device-agent release nvidia --end`.',
  ],
  'library-not-found': [
    "The command exists, but the driver's library libnvidia-ml is missing.",
    'In a container, let the runtime mount it (NVIDIA_DRIVER_CAPABILITIES=utility); on the node, install the library of the same version as the driver.',
  ],
  'no-permission': [
    'The driver refuses access: device nodes are missing, or the agent may not open them.',
    'Give the container the device nodes /dev/nvidiactl and /dev/nvidia*, through the container runtime or as privileged.',
  ],
  'driver-unreachable': [
    'The command failed and the driver gives no reason. In containers the usual cause is a rewritten device cgroup.',
    'Restart the container. If the problem returns after daemon-reload, pass the device nodes explicitly.',
  ],
  'no-devices': [
    'NVIDIA hardware is on the bus, but the driver shows no GPU.',
    'Search the kernel log for the reason why the driver did not bind to the GPUs. GPUs of virtual machines are not shown.',
  ],
  'gpus-unshown': [
    'The driver announces more GPUs than it shows, and gives no reason. The other GPUs count as unknown, not as missing.',
    'Run nvidia-smi on the node and search the kernel log for Xids.',
  ],
  'gpu-unreadable': [
    'The driver lists this GPU but cannot read it.',
    'Search the kernel log for Xids of this GPU. Usually a reboot is needed.',
  ],
  'gpu-drained': [
    'An administrator drains this GPU, so the driver shows it to no program. Its state is unknown.',
    'End it with nvidia-smi drain -p <address> -m 0 when the work on the GPU is done.',
  ],
  'start-failed': [
    'The driver says that it could not start a PCI function, and no listed GPU is known to be that function.',
    'Compare lspci -d 10de: with nvidia-smi -L on the node, and read the lines of the kernel log before that line.',
  ],
  'reset-required': [
    'The driver refuses new work on one of the GPUs until it is reset, and names none. No GPU asks for a recovery, so none is blamed. The problem ends when the driver is loaded again, or a day after the last such line.',
    'Start a small program on each GPU: the one on which it fails needs a reset.',
  ],
  'inforom-corrupted': [
    'The command reports a damaged infoROM but does not name the GPU.',
    'Run nvidia-smi manually: a warning names the GPU. Reset it; if the warning stays, replace the board.',
  ],
  'insufficient-power': ['The power cables of a GPU are not connected.', 'Check the power cables of the boards.'],
  'mig-names-unknown': [
    'The UUIDs of MIG instances could not be read; only nvidia-smi -L prints them. Names from earlier reads are kept.',
    'Run nvidia-smi -L manually.',
  ],
  'smi-failed': ['The command ended with an unknown exit status and text.', 'Run the command manually on the node.'],
  'smi-garbage': [
    'The output of the command is not the requested XML document.',
    'Run nvidia-smi -q -x manually; a wrapper script may print other text.',
  ],
  'smi-truncated': [
    'The XML document is incomplete: the command stopped too early.',
    'Keep the driver initialised (nvidia-persistenced), so that nvidia-smi answers in its ten seconds.',
  ],
  'smi-timeout': [
    'The command did not end in time and was killed.',
    'Turn persistence mode on (nvidia-persistenced). If the problem stays, a GPU or the driver hangs: read the kernel log.',
  ],
  'smi-unreaped': [
    'A killed command blocks in the kernel and does not end. The agent starts no new command until it ends.',
    'The driver hangs. Reboot the node.',
  ],
  'smi-too-large': [
    'The output of the command is larger than the agent accepts.',
    'Run nvidia-smi -q -x manually; a wrapper script may print other text.',
  ],
  'value-unreadable': [
    'The driver failed to read values of this GPU. These values are missing.',
    'Search the kernel log for Xids of this GPU. Usually it needs a reset.',
  ],
  'unknown-value': [
    'The driver printed a text that the agent does not know in place of a value. The value is missing.',
    'Report the text with the driver version.',
  ],
} as const satisfies Readonly<Record<string, readonly [meaning: string, remedy: string]>>;
export type ProblemCode = keyof typeof PROBLEMS;
export const problems: readonly ProblemSpec[] = Object.entries(PROBLEMS).map(([code, [meaning, remedy]]) => ({ code, meaning, remedy }));
