import { fabric } from './fabric-getter.ts';
import type { Getter } from './getter.ts';
import { MEMORY } from './layouts.ts';
import { clock, LINK_GENERATION, LINK_WIDTH, one, percent, u32, usage } from './ways.ts';

export const bar1Getter: Getter = {
  paths: ['bar1_memory_usage/total', 'bar1_memory_usage/used'],
  ways: [{ symbol: 'nvmlDeviceGetBAR1MemoryInfo', size: MEMORY.size, tell: (out, values) => usage(out, values, 'bar1_memory_usage') }],
};

/** What can wait for half a minute: engines that most programs leave alone, links, the fabric. */
export const slowGetters: readonly Getter[] = [
  ...Object.entries({ Encoder: 'encoder', Decoder: 'decoder', Jpg: 'jpeg', Ofa: 'ofa' }).map(([name, engine]) =>
    one(`utilization/${engine}_util`, { ...u32(`nvmlDeviceGet${name}Utilization`, `utilization/${engine}_util`, percent), outs: 2 }),
  ),
  // The first is that of the multiprocessors on boards for computing, the last hardly moves.
  ...['graphics_clock', 'video_clock', 'mem_clock'].map((name) => clock(name, 'clocks', 'nvmlDeviceGetClockInfo')),
  one(
    'performance_state',
    u32('nvmlDeviceGetPerformanceState', 'performance_state', (state) => (state <= 15 ? `P${state}` : undefined)),
  ),
  one('fan_speed', u32('nvmlDeviceGetFanSpeed_v2', 'fan_speed', percent, [0]), u32('nvmlDeviceGetFanSpeed', 'fan_speed', percent)),
  one(`${LINK_GENERATION}/current_link_gen`, u32('nvmlDeviceGetCurrPcieLinkGeneration', `${LINK_GENERATION}/current_link_gen`)),
  one(`${LINK_WIDTH}/current_link_width`, u32('nvmlDeviceGetCurrPcieLinkWidth', `${LINK_WIDTH}/current_link_width`)),
  one('pci/replay_counter', u32('nvmlDeviceGetPcieReplayCounter', 'pci/replay_counter')),
  fabric,
  bar1Getter,
  { paths: ['encoder_stats/session_count'], ways: [{ ...u32('nvmlDeviceGetEncoderStats', 'encoder_stats/session_count'), outs: 3 }] },
];

/** Of confidential computing. Most boards have none, and then for as long as the driver is loaded. */
export const protectedMemory: Getter = {
  paths: ['cc_protected_memory_usage/total', 'cc_protected_memory_usage/used'],
  ways: [
    {
      symbol: 'nvmlDeviceGetConfComputeProtectedMemoryUsage',
      size: MEMORY.size,
      tell: (out, values) => usage(out, values, 'cc_protected_memory_usage'),
    },
  ],
};
