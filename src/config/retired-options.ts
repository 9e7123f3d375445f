import type { Registry } from './registry.ts';

const SLOW = 'set refresh.slow';
const FACTS = 'set refresh.facts';
const EXCLUDE = 'list the devices to leave out in device.exclude, as family/id';
const EACH_REFRESH = 'it is read at each refresh; set refresh.interval';
const FIXED = 'remove it: the value is constant';
const KMSG = 'set path.kmsg';

/** Keys of options that are gone, with what to do in their place. Their flags, variables and keys in the file are errors. */
const RETIRED: Readonly<Record<string, string>> = {
  'probe.amdgpu.facts-interval': FACTS,
  'probe.amdgpu.ras-interval': SLOW,
  'probe.amdgpu.bad-pages-interval': SLOW,
  'probe.fpga.sensor-interval': SLOW,
  'probe.infiniband.facts-interval': FACTS,
  'probe.infiniband.state-interval': EACH_REFRESH,
  'probe.infiniband.counter-interval': EACH_REFRESH,
  'probe.intelgpu.facts-interval': FACTS,
  'probe.netdev.facts-interval': FACTS,
  'probe.netdev.counter-interval': EACH_REFRESH,
  'probe.nvidia.nvml-slow-every': SLOW,
  'probe.nvidia.nvml-facts-every': FACTS,
  'probe.nvme.facts-interval': FACTS,
  'probe.nvme.smart-interval': SLOW,
  'probe.nvme.temperature-interval': SLOW,
  'probe.infiniband.device-exclude': EXCLUDE,
  'probe.infiniband.device-include': EXCLUDE,
  'probe.nvidia.kmsg': KMSG,
  'probe.intelgpu.kmsg': KMSG,
  'stall.busy-percent': FIXED,
  'stall.activity-percent': FIXED,
  'stall.power-percent': FIXED,
  'stall.bytes-percent': FIXED,
  'podresources.min-interval': FIXED,
  'podresources.max-message-bytes': FIXED,
  'podsapi.max-message-bytes': FIXED,
  'plugin.stream-timeout': FIXED,
  'probe.amdgpu.processes-per-search': FIXED,
  'probe.intelgpu.processes-per-refresh': FIXED,
  'probe.netdev.ip-timeout': FIXED,
  'probe.nvidia.timeout': FIXED,
  'web.max-requests': FIXED,
  'usage.zero-for': FIXED,
  'usage.linger': FIXED,
  'usage.absent-for': FIXED,
};

/** All keys that are gone, also the lists of devices that each family had, with what is wrong when one is given. */
export function retiredOptions({ sections, entries }: Pick<Registry, 'sections' | 'entries'>): ReadonlyMap<string, string> {
  const known = new Set(entries.map(({ key }) => key));
  const families = sections.filter(({ path }) => path.startsWith('probe.'));
  const lists = families.flatMap(({ path }) => [`${path}.include`, `${path}.exclude`]).filter((key) => !known.has(key));
  const all = [...lists.map((key) => [key, EXCLUDE] as const), ...Object.entries(RETIRED)];
  return new Map(all.map(([key, instead]) => [key, `is no longer an option: ${instead}`]));
}

/** Values of options of commands that are gone, with what to do in their place. */
export const RETIRED_VALUES: Readonly<Record<string, string>> = {
  'taint-rule': 'Use device-agent publish --dry-run --publish.device-taint-rules=NoSchedule',
};
