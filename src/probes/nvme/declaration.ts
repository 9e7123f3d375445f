import type { ProblemSpec } from '../../model/collection.ts';
import { minutes, seconds } from '../../model/duration.ts';
import { booleanOption, type OptionSpecs, type OptionValues, pacedOption, stringOption } from '../../model/options.ts';
import { classProblem, fileProblems } from '../kit/device-files.ts';
import { sensorProblems } from '../kit/temperature.ts';

export const options = {
  smart: booleanOption(
    false,
    'Read the SMART log of each drive by one read-only admin command on /dev/nvme<N>. It is the only option that opens a device node; it needs the nodes and the capability SYS_ADMIN',
  ),
  'smart-directory': stringOption(
    '',
    'Directory with files <serial number>.json, the output of nvme smart-log -o json, which another program writes at least every 30 minutes; empty means none',
  ),
  /** A read of the SMART log by an admin command ends the low-power state that the drive chose by itself. */
  'smart-interval': pacedOption('refresh.slow', minutes(5)),
  /** Each read of the temperatures makes the kernel send one admin command to the drive. */
  'temperature-interval': pacedOption('refresh.slow', seconds(60)),
  /** Names, firmware, sizes. */
  'facts-interval': pacedOption('refresh.facts', seconds(60)),
} as const satisfies OptionSpecs;

export type NvmeOptions = OptionValues<typeof options>;

export const problems = [
  classProblem(
    'The directory of NVMe controllers exists but cannot be listed, so the agent knows nothing about any drive.',
    '/sys/class/nvme',
  ),
  {
    code: 'identity-unknown',
    meaning: 'Neither the PCI address of a controller nor its subsystem name can be read, so the controller has no stable name.',
    remedy: 'Check that the agent sees the complete /sys of the host.',
  },
  {
    code: 'head-unknown',
    meaning: 'A controller shows a path to a namespace, but the namespace itself is in no subsystem that the agent sees.',
    remedy: 'Let the agent read /sys/class/nvme-subsystem of the host.',
  },
  {
    code: 'same-name-twice',
    meaning: 'Several namespaces have the same unique id, so the id names none of them. They are named by their controllers instead.',
    remedy: 'Update the firmware of the drive. Some drives are known to have ids that are not unique.',
  },
  {
    code: 'drive-hangs',
    meaning: 'A read of a file of the drive does not return, so the drive is not read.',
    remedy: 'Search the kernel log for nvme. A reset of the controller, or a reboot of the node, may be needed.',
  },
  ...sensorProblems,
  ...fileProblems('drive', 'Search the kernel log for nvme; a controller that does not answer may need a reset.'),
  {
    code: 'smart-refused',
    meaning: 'The agent may not send the command that reads the SMART log, so spare, wear and media errors are unknown.',
    remedy:
      'Give the agent the device nodes /dev/nvme<N> and the capability SYS_ADMIN (nvme.smart.enabled in the values of the chart), or let another program write the logs to smart-directory. Or turn the option smart off.',
  },
  {
    code: 'smart-failed',
    meaning: 'The SMART log could not be read, so spare, wear and media errors are unknown.',
    remedy: 'Run nvme smart-log on the drive. If it works there, report the message with the kernel and the drive.',
  },
  {
    code: 'smart-file',
    meaning: 'The file with the SMART log of a drive is absent, too old, or holds no such log.',
    remedy: 'Check the program that writes the files: one for each serial number, by nvme smart-log -o json.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
