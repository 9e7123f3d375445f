import { hours, minutes, seconds } from '../model/duration.ts';
import { durationOption, listOption, type OptionSpecs, type OptionValues, stringOption } from '../model/options.ts';

export const refreshOptions = {
  interval: durationOption(seconds(10), 'How often the agent reads hardware and kubelet.', 100),
  timeout: durationOption(
    seconds(15),
    'How long one run of a probe may take before the agent treats it as hung and replaces it. A new probe has at least ten seconds until its first read.',
    100,
  ),
  'stale-after': durationOption(minutes(1), 'Age at which readings that were not renewed are no longer exported.', 100),
  slow: durationOption(
    seconds(30),
    'Time between two reads of values that cost the hardware something: sensors behind a board controller, links and processes of NVML. Some are read less often all the same: error counts of AMD and temperatures of NVMe each minute, SMART logs each 5 minutes, bad pages each 10 minutes. 0: all of them at each refresh.',
  ),
  facts: durationOption(
    minutes(1),
    'Time between two reads of what seldom changes: names, firmware, limits, topology. amdgpu reads it each 2 minutes at most, NVML each 5 minutes. 0: at each refresh.',
  ),
} as const satisfies OptionSpecs;
export type RefreshOptions = OptionValues<typeof refreshOptions>;

export const deviceOptions = {
  'missing-retention': durationOption(hours(24), 'How long a device that disappeared stays listed as missing.'),
} as const satisfies OptionSpecs;

export const excludeOptions = {
  exclude: listOption(
    [],
    'Devices to leave out, as family/id or id, with * for any characters: `infiniband/mlx5_1,nvme/*`. The agent opens no file of an excluded device of infiniband and of a declared family; it reads those of other families and drops what it read.',
  ),
} as const satisfies OptionSpecs;
export type DeviceOptions = OptionValues<typeof deviceOptions>;

export const stateOptions = {
  file: stringOption(
    '/var/lib/device-agent/health.json',
    'File of the health state, which lasts over restarts of the agent until the machine reboots. Empty: no file.',
  ),
} as const satisfies OptionSpecs;
export type StateOptions = OptionValues<typeof stateOptions>;
