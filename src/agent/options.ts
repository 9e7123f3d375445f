import { hours, minutes, seconds } from '../model/duration.ts';
import { durationOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const refreshOptions = {
  interval: durationOption(seconds(10), 'How often probes read the hardware and the kubelet is asked.', 100),
  timeout: durationOption(seconds(15), 'How long one run of a probe may take before it counts as hung and is replaced.', 100),
  'stale-after': durationOption(minutes(1), 'Age at which readings that could not be renewed are no longer exported.', 100),
} as const satisfies OptionSpecs;
export type RefreshOptions = OptionValues<typeof refreshOptions>;

export const deviceOptions = {
  'missing-retention': durationOption(hours(24), 'How long a device that disappeared is still listed, as missing.'),
} as const satisfies OptionSpecs;
export type DeviceOptions = OptionValues<typeof deviceOptions>;

export const stateOptions = {
  file: stringOption(
    '/var/lib/device-agent/health.json',
    'Where the judgement of health is kept over restarts of the agent, for the present boot of the machine. Empty: nowhere.',
  ),
} as const satisfies OptionSpecs;
export type StateOptions = OptionValues<typeof stateOptions>;
