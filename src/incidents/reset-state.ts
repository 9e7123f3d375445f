import type { Labels } from '../model/metric.ts';
import type { DeviceState } from '../model/snapshot.ts';
import type { DeviceHistory } from './history.ts';
import type { StateValue } from './record.ts';

/** Labels of metrics that have one series, for the value that holds. Another value replaces it. */
const HELD = ['state', 'action'];

/**
 * The last value of each series that a reset or a reboot can wipe. A device that is gone has no readings, so its history fills the gaps.
 * Guides of vendors for debugging ask to save such values before a reset.
 */
export function resetState({ state: { readings, readAtMs }, history, isWiped }: Wiped): readonly StateValue[] {
  const past = (history?.series ?? []).flatMap(({ metric, labels, values }): Dated[] => {
    const at = values.findLastIndex((value) => value !== null);
    return at < 0 ? [] : [{ metric, labels, value: values[at] as number, atMs: history?.times[at] as number }];
  });
  const now = readings.map(({ metric, labels = {}, value }): Dated => ({ metric, labels, value, atMs: readAtMs }));
  const values = new Map<string, Dated>();
  for (const one of [...past.sort((a, b) => a.atMs - b.atMs), ...now]) {
    if (isWiped(one.metric) && (typeof one.value === 'bigint' || Number.isFinite(one.value))) values.set(nameOf(one), one);
  }
  return [...values.values()].map(({ metric, labels, value, atMs }) => ({ metric, labels, value: exact(value), time: timeText(atMs) }));
}

interface Wiped {
  readonly state: Pick<DeviceState, 'readings' | 'readAtMs'>;
  readonly history?: DeviceHistory | undefined;
  isWiped(metric: string): boolean;
}

interface Dated {
  readonly metric: string;
  readonly labels: Labels;
  readonly value: number | bigint;
  readonly atMs: number;
}

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
