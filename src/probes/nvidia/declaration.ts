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

export const problems = [
  {
    code: 'smi-not-found',
    meaning: 'The node has NVIDIA hardware, but the command nvidia-smi is missing.',
    remedy:
      'Let the container runtime mount it (runtimeClassName nvidia, NVIDIA_DRIVER_CAPABILITIES=utility), or set --probe.nvidia.smi-path.',
  },
  {
    code: 'smi-not-executable',
    meaning: 'The command exists, but the agent may not run it.',
    remedy: 'Check the mode of the file and the security context of the container.',
  },
  {
    code: 'driver-not-loaded',
    meaning: 'The command cannot reach the kernel driver.',
    remedy: 'Load the driver (modprobe nvidia) and search the kernel log for the reason.',
  },
  {
    code: 'driver-library-mismatch',
    meaning: 'Library and kernel driver have different versions, as after an upgrade without a reload.',
    remedy: 'Reload the driver or reboot; in a container, restart it so that the new library is mounted.',
  },
  {
    code: 'driver-released',
    meaning: 'A person, a program or the driver asked the agent to close the driver. The agent reads no GPU until the release ends.',
    remedy:
      'Do nothing while the driver is reset or upgraded. Then remove the file of --probe.nvidia.release-file, or run `device-agent release nvidia --end`.',
  },
  {
    code: 'library-not-found',
    meaning: "The command exists, but the driver's library libnvidia-ml is missing.",
    remedy:
      'In a container, let the runtime mount it (NVIDIA_DRIVER_CAPABILITIES=utility); on the node, install the library of the same version as the driver.',
  },
  {
    code: 'no-permission',
    meaning: 'The driver refuses access: device nodes are missing, or the agent may not open them.',
    remedy: 'Give the container the device nodes /dev/nvidiactl and /dev/nvidia*, through the container runtime or as privileged.',
  },
  {
    code: 'driver-unreachable',
    meaning: 'The command failed and the driver gives no reason. In containers the usual cause is a rewritten device cgroup.',
    remedy: 'Restart the container. If the problem returns after daemon-reload, pass the device nodes explicitly.',
  },
  {
    code: 'no-devices',
    meaning: 'NVIDIA hardware is on the bus, but the driver shows no GPU.',
    remedy: 'Search the kernel log for the reason why the driver did not bind to the GPUs. GPUs of virtual machines are not shown.',
  },
  {
    code: 'gpus-unshown',
    meaning: 'The driver announces more GPUs than it shows, and gives no reason. The other GPUs count as unknown, not as missing.',
    remedy: 'Run nvidia-smi on the node and search the kernel log for Xids.',
  },
  {
    code: 'gpu-unreadable',
    meaning: 'The driver lists this GPU but cannot read it.',
    remedy: 'Search the kernel log for Xids of this GPU. Usually a reboot is needed.',
  },
  {
    code: 'gpu-drained',
    meaning: 'An administrator drains this GPU, so the driver shows it to no program. Its state is unknown.',
    remedy: 'End it with nvidia-smi drain -p <address> -m 0 when the work on the GPU is done.',
  },
  {
    code: 'start-failed',
    meaning: 'The driver says that it could not start a PCI function, and no listed GPU is known to be that function.',
    remedy: 'Compare lspci -d 10de: with nvidia-smi -L on the node, and read the lines of the kernel log before that line.',
  },
  {
    code: 'reset-required',
    meaning:
      'The driver refuses new work on one of the GPUs until it is reset, and names none. No GPU asks for a recovery, so none is blamed. The problem ends when the driver is loaded again, or a day after the last such line.',
    remedy: 'Start a small program on each GPU: the one on which it fails needs a reset.',
  },
  {
    code: 'inforom-corrupted',
    meaning: 'The command reports a damaged infoROM but does not name the GPU.',
    remedy: 'Run nvidia-smi manually: a warning names the GPU. Reset it; if the warning stays, replace the board.',
  },
  { code: 'insufficient-power', meaning: 'The power cables of a GPU are not connected.', remedy: 'Check the power cables of the boards.' },
  {
    code: 'mig-names-unknown',
    meaning: 'The UUIDs of MIG instances could not be read; only nvidia-smi -L prints them. Names from earlier reads are kept.',
    remedy: 'Run nvidia-smi -L manually.',
  },
  {
    code: 'smi-failed',
    meaning: 'The command ended with an unknown exit status and text.',
    remedy: 'Run the command manually on the node.',
  },
  {
    code: 'smi-garbage',
    meaning: 'The output of the command is not the requested XML document.',
    remedy: 'Run nvidia-smi -q -x manually; a wrapper script may print other text.',
  },
  {
    code: 'smi-truncated',
    meaning: 'The XML document is incomplete: the command stopped too early.',
    remedy: 'Keep the driver initialised (nvidia-persistenced), so that nvidia-smi answers in its ten seconds.',
  },
  {
    code: 'smi-timeout',
    meaning: 'The command did not end in time and was killed.',
    remedy: 'Turn persistence mode on (nvidia-persistenced). If the problem stays, a GPU or the driver hangs: read the kernel log.',
  },
  {
    code: 'smi-unreaped',
    meaning: 'A killed command blocks in the kernel and does not end. The agent starts no new command until it ends.',
    remedy: 'The driver hangs. Reboot the node.',
  },
  {
    code: 'smi-too-large',
    meaning: 'The output of the command is larger than the agent accepts.',
    remedy: 'Run nvidia-smi -q -x manually; a wrapper script may print other text.',
  },
  {
    code: 'value-unreadable',
    meaning: 'The driver failed to read values of this GPU. These values are missing.',
    remedy: 'Search the kernel log for Xids of this GPU. Usually it needs a reset.',
  },
  {
    code: 'unknown-value',
    meaning: 'The driver printed a text that the agent does not know in place of a value. The value is missing.',
    remedy: 'Report the text with the driver version.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
