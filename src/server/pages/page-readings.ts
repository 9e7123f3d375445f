import type { Reading } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import { metricTitle, readingText } from './units.ts';

/** One line of a device's cell of readings. */
export interface ReadingLine {
  readonly title: string;
  readonly text: string;
}

interface MainReading {
  readonly title: string;
  readonly metric: string;
  readonly text: (reading: Reading, all: readonly Reading[]) => string | undefined;
}

/** What tells most about a device, in the order of reading. A device shows those that it has. */
const MAIN: readonly MainReading[] = [
  { title: 'Busy', metric: shared.utilization.name, text: withLabels },
  { title: 'Memory', metric: shared.memoryUsed.name, text: ofTotalMemory },
  { title: 'Temperature', metric: shared.temperature.name, text: withLabels },
  { title: 'Power', metric: shared.power.name, text: withLabels },
  { title: 'Port', metric: shared.linkUp.name, text: linkState },
  { title: 'Received', metric: shared.receivedBytes.name, text: withLabels },
  { title: 'Transmitted', metric: shared.transmittedBytes.name, text: withLabels },
  { title: 'Throttled', metric: shared.throttled.name, text: (reading) => (Number(reading.value) === 1 ? labelWords(reading) : undefined) },
];

const MOST_VALUES = 3;
const MOST_LINES_WITHOUT_MAIN = 3;

/** The main readings of a device; of one that has none of them, its first few others. */
export function mainReadings(given: Iterable<Reading>): readonly ReadingLine[] {
  const readings = [...given].filter(isNumber);
  const lines = MAIN.flatMap(({ title, metric, text }) => {
    const texts = readings.filter((reading) => reading.metric === metric).flatMap((reading) => text(reading, readings) ?? []);
    return texts.length === 0 ? [] : [{ title, text: shortened(texts) }];
  });
  if (lines.length > 0) return lines;
  return readings.slice(0, MOST_LINES_WITHOUT_MAIN).map((reading) => ({ title: metricTitle(reading.metric), text: withLabels(reading) }));
}

/** Whether a reading is fit to be shown: metrics and API leave out the same ones. */
export function isNumber({ value }: Reading): boolean {
  return typeof value === 'bigint' || Number.isFinite(value);
}

/** Values of the labels; a bare number says what it counts. */
export function labelWords(reading: Reading): string {
  return Object.entries(reading.labels ?? {})
    .map(([name, value]) => (/^\d+$/.test(value) ? `${name} ${value}` : value))
    .join(', ');
}

function shortened(texts: readonly string[]): string {
  const rest = texts.length - MOST_VALUES;
  return rest > 0 ? `${texts.slice(0, MOST_VALUES).join(', ')} and ${rest} more` : texts.join(', ');
}

function withLabels(reading: Reading): string {
  const value = readingText(reading.metric, reading.value);
  const words = labelWords(reading);
  return words === '' ? value : `${value} ${words}`;
}

function ofTotalMemory(reading: Reading, all: readonly Reading[]): string {
  const total = all.find((one) => one.metric === shared.memoryTotal.name);
  const used = readingText(reading.metric, reading.value);
  return total === undefined ? used : `${used} of ${readingText(total.metric, total.value)}`;
}

function linkState(reading: Reading, all: readonly Reading[]): string {
  const port = reading.labels?.port;
  const speed = all.find((one) => one.metric === shared.linkSpeed.name && one.labels?.port === port);
  const state = Number(reading.value) === 1 ? 'up' : 'down';
  const text = speed === undefined || state === 'down' ? state : `${state}, ${readingText(speed.metric, speed.value)}`;
  return port === undefined ? text : `${port} ${text}`;
}
