import { hours, minutes, seconds } from '../model/duration.ts';
import { durationOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const refreshOptions = {
  interval: durationOption(seconds(10), 'How often the agent reads the hardware and queries the kubelet.', 100),
  timeout: durationOption(
    seconds(15),
    'How long one run of a probe may take before the agent treats it as hung and replaces it. A new thread has at least ten seconds until its first read.',
    100,
  ),
  'stale-after': durationOption(minutes(1), 'Age at which readings that were not renewed are no longer exported.', 100),
} as const satisfies OptionSpecs;
export type RefreshOptions = OptionValues<typeof refreshOptions>;

export const deviceOptions = {
  'missing-retention': durationOption(hours(24), 'How long a device that disappeared stays listed as missing.'),
} as const satisfies OptionSpecs;
export type DeviceOptions = OptionValues<typeof deviceOptions>;

export const stateOptions = {
  file: stringOption(
    '/var/lib/device-agent/health.json',
    'File that keeps the health state over restarts of the agent, until the machine reboots. Empty: no file.',
  ),
} as const satisfies OptionSpecs;
export type StateOptions = OptionValues<typeof stateOptions>;
