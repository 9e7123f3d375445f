import type { Reading } from '../../model/metric.ts';

/** Name of a metric in the API, without the common prefix: `device_memory_used_bytes` becomes `memoryUsedBytes`. */
export function readingName(metric: string): string {
  return metric.replace(/^device_/, '').replace(/_+([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
}

/** The latest time in RFC 3339. Rules without an end use this time or a slightly later one. */
const LATEST_MS = Date.parse('9999-12-31T23:59:59.999Z');

/** Formats a time as RFC 3339 in UTC; undefined stays undefined. */
export function timeText(ms: number | undefined): string | undefined {
  return ms === undefined || !Number.isFinite(ms) ? undefined : new Date(Math.min(ms, LATEST_MS)).toISOString();
}

type Value = number | bigint;
export type ReadingView = Value | readonly { readonly labels: Readonly<Record<string, string>>; readonly value: Value }[];

/** Returns a plain value for a metric with one series without labels, otherwise a list of values with their labels. */
export function readingViews(readings: Iterable<Reading>): Readonly<Record<string, ReadingView>> {
  const byMetric = new Map<string, Reading[]>();
  for (const reading of readings) {
    if (typeof reading.value === 'number' && !Number.isFinite(reading.value)) continue;
    const list = byMetric.get(reading.metric);
    if (list === undefined) byMetric.set(reading.metric, [reading]);
    else list.push(reading);
  }
  return Object.fromEntries(
    [...byMetric].sort(([a], [b]) => (a < b ? -1 : 1)).map(([metric, list]) => [readingName(metric), viewOf(list)]),
  );
}

function viewOf(readings: readonly Reading[]): ReadingView {
  const [only] = readings;
  if (readings.length === 1 && only !== undefined && only.labels === undefined) return only.value;
  return readings.map(({ labels, value }) => ({ labels: labels ?? {}, value }));
}
