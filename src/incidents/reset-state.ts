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

/** The last value of each such series. A device that is gone has no readings, so its history fills the gaps. */
export function resetState(readings: readonly Reading[], readAtMs: number, history: DeviceHistory | undefined): readonly StateValue[] {
  const values = new Map<string, StateValue>();
  for (const { metric, labels = {}, values: past } of history?.series ?? []) {
    const at = past.findLastIndex((value) => value !== null);
    const value = past[at];
    if (!isState(metric) || value === undefined || value === null) continue;
    values.set(nameOf(metric, labels), { metric, labels, value, time: timeText(history?.times[at] as number) });
  }
  for (const { metric, labels = {}, value } of readings) {
    if (!isState(metric) || (typeof value === 'number' && !Number.isFinite(value))) continue;
    values.set(nameOf(metric, labels), { metric, labels, value: exact(value), time: timeText(readAtMs) });
  }
  return [...values.values()];
}

const isState = (metric: string): boolean => VOLATILE.test(metric) && !NOMINAL.test(metric);

function exact(value: number | bigint): number | string {
  if (typeof value === 'number') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

export const timeText = (ms: number): string => new Date(ms).toISOString();

const nameOf = (metric: string, labels: Labels): string =>
  JSON.stringify([metric, ...Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);
