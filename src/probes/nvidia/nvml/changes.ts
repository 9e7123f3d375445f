/**
 * What a round changed of one device, as bits: `numbers` of readings and nothing else; `temperature`, judged by its own finding;
 * `judged` numbers, on which other findings hang; `processes`, of which the number stayed; `other`, anything at all.
 */
export const CHANGE = { none: 0, numbers: 1, temperature: 2, judged: 4, processes: 8, other: 16 } as const;

const NUMBERS =
  /^(?:utilization|fb_memory_usage|bar1_memory_usage|clocks|[a-z_]*power_readings|nvml\/(?:throttled|pcie)|clocks_event_reasons_counters)\/|^fan_speed$|^nvml\/energy$|^temperature\/memory_temp$|^pci\/replay_|^pci\/pci_gpu_link_info\/pcie_gen\/current_link_gen$/;
const TEMPERATURE = /^temperature\/gpu_temp(?:_tlimit)?$/;
const JUDGED = /^clocks_event_reasons\//;

/** What changes with another number at this path. A word in the place of a number, or nothing, always changes `other`. */
export function changeAt(path: string): number {
  if (NUMBERS.test(path)) return CHANGE.numbers;
  if (TEMPERATURE.test(path)) return CHANGE.temperature;
  return JUDGED.test(path) ? CHANGE.judged : CHANGE.other;
}

export const changeOf = (paths: readonly string[]): number => paths.reduce<number>((bits, path) => bits | changeAt(path), CHANGE.none);
