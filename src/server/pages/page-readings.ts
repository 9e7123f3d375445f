import { metricTitle, readingText } from '../../board/units.ts';
import type { Reading } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';

/** One line in the readings cell of a device. */
export interface ReadingLine {
  readonly title: string;
  readonly text: string;
}

interface MainReading {
  readonly title: string;
  readonly metric: string;
  readonly text: (reading: Reading, all: readonly Reading[]) => string | undefined;
}

/** The most important readings, in display order. A device shows those that it has. */
const MAIN: readonly MainReading[] = [
  { title: 'Busy', metric: shared.utilization.name, text: withLabels },
  { title: 'Memory', metric: shared.memoryUsed.name, text: ofTotalMemory },
  { title: 'Temperature', metric: shared.temperature.name, text: withLabels },
  { title: 'Power', metric: shared.power.name, text: withLabels },
  { title: 'Port', metric: shared.linkUp.name, text: linkState },
  { title: 'Received', metric: shared.receivedBytes.name, text: withLabels },
  { title: 'Transmitted', metric: shared.transmittedBytes.name, text: withLabels },
  { title: 'Throttled', metric: shared.throttled.name, text: (reading) => (Number(reading.value) === 1 ? labelList(reading) : undefined) },
];

const MOST_VALUES = 3;
const MOST_LINES_WITHOUT_MAIN = 3;

/** Returns the main readings of a device, or its first few readings if it has no main one. */
export function mainReadings(given: Iterable<Reading>): readonly ReadingLine[] {
  const readings = [...given].filter(isNumber);
  const lines = MAIN.flatMap(({ title, metric, text }) => {
    const texts = readings.filter((reading) => reading.metric === metric).flatMap((reading) => text(reading, readings) ?? []);
    return texts.length === 0 ? [] : [{ title, text: shortened(texts) }];
  });
  if (lines.length > 0) return lines;
  return readings.slice(0, MOST_LINES_WITHOUT_MAIN).map((reading) => ({ title: metricTitle(reading.metric), text: withLabels(reading) }));
}

/** True when a reading can be shown. Metrics and API leave out the same readings. */
export function isNumber({ value }: Reading): boolean {
  return typeof value === 'bigint' || Number.isFinite(value);
}

/** Returns the label values. A numeric value is prefixed with its label name. */
export function labelList(reading: Reading): string {
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
  const labels = labelList(reading);
  return labels === '' ? value : `${value} ${labels}`;
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
