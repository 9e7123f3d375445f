import { minutes, seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, type OptionSpecs, type OptionValues, stringOption } from '../../model/options.ts';

export const options = {
  smart: booleanOption(
    false,
    'Read the SMART log of each drive by one read-only admin command on /dev/nvme<N>. It is the only option that opens a device node; it needs the nodes and the capability SYS_ADMIN',
  ),
  'smart-directory': stringOption(
    '',
    'Directory with files <serial number>.json, the output of nvme smart-log -o json, which another program writes at least every 30 minutes; empty means none',
  ),
  'smart-interval': durationOption(
    minutes(5),
    'Time between two reads of the SMART log. A read by an admin command ends the low-power state that the drive chose by itself',
    seconds(10),
  ),
  'temperature-interval': durationOption(
    seconds(60),
    'Time between two reads of the temperatures. Each read makes the kernel send one admin command to the drive; 0 turns these reads off',
  ),
  'facts-interval': durationOption(seconds(60), 'Time between two reads of facts that rarely change: names, firmware, sizes', seconds(1)),
} as const satisfies OptionSpecs;

export type NvmeOptions = OptionValues<typeof options>;
