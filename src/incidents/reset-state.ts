import type { Labels, Reading } from '../model/metric.ts';
import type { DeviceHistory } from './history.ts';
import type { StateValue } from './record.ts';

/**
 * Metrics that a reset or a reboot can wipe, by their names: ECC errors, row remapping, retired pages, Xids, states of links, and other
 * counts of errors. NVIDIA's guide for debugging asks to save these before a reset: docs.nvidia.com/deploy/gpu-debug-guidelines.
 */
const VOLATILE =
  /_ecc_|remap|retired|_memory_(?:repair_pending|unrepairable)|_xid_|recovery_action|_link_|_port_(?:physical_)?state|_errors?(?:_total)?$|_errors_|_fault$|replay|_throttle_events_|firewall|_retransmitted_/;
/** Nominal values of the link say nothing about its state. */
const NOMINAL = /_max_/;

/** Labels of metrics that have one series, for the value that holds. Another value replaces it. */
const HELD = ['state', 'action'];

/** The last value of each such series. A device that is gone has no readings, so its history fills the gaps. */
export function resetState(readings: readonly Reading[], readAtMs: number, history: DeviceHistory | undefined): readonly StateValue[] {
  const past = (history?.series ?? []).flatMap(({ metric, labels, values }): Dated[] => {
    const at = values.findLastIndex((value) => value !== null);
    return at < 0 ? [] : [{ metric, labels, value: values[at] as number, atMs: history?.times[at] as number }];
  });
  const now = readings.map(({ metric, labels = {}, value }): Dated => ({ metric, labels, value, atMs: readAtMs }));
  const values = new Map<string, Dated>();
  for (const one of [...past.sort((a, b) => a.atMs - b.atMs), ...now]) {
    if (isState(one.metric) && (typeof one.value === 'bigint' || Number.isFinite(one.value))) values.set(nameOf(one), one);
  }
  return [...values.values()].map(({ metric, labels, value, atMs }) => ({ metric, labels, value: exact(value), time: timeText(atMs) }));
}

interface Dated {
  readonly metric: string;
  readonly labels: Labels;
  readonly value: number | bigint;
  readonly atMs: number;
}

const isState = (metric: string): boolean => VOLATILE.test(metric) && !NOMINAL.test(metric);

function exact(value: number | bigint): number | string {
  if (typeof value === 'number') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

export const timeText = (ms: number): string => new Date(ms).toISOString();

function nameOf({ metric, labels }: Dated): string {
  const kept = Object.entries(labels).filter(([name]) => !HELD.includes(name));
  return JSON.stringify([metric, ...kept.sort(([a], [b]) => (a < b ? -1 : 1))]);
}
