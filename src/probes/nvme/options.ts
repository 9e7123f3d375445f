import { minutes, seconds } from '../../model/duration.ts';
import { booleanOption, type OptionSpecs, type OptionValues, pacedOption, stringOption } from '../../model/options.ts';

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
