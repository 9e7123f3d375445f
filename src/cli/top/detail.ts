import type { Trend, Trends } from '../../board/trend.ts';
import { metricTitle, readingText } from '../../board/units.ts';
import { conditionName } from '../../model/condition-text.ts';

/** What the screen of one device shows beside its row. All texts are ready to be shown. */
export interface DeviceDetail {
  readonly facts: readonly Fact[];
  readonly readings: readonly Fact[];
  /** The latest event first; undefined when they were not read. */
  readonly events: readonly DeviceEvent[] | undefined;
  /** The last half hour of the readings of its row, by their label; empty without an agent. */
  readonly trends: ReadonlyMap<string, Trend>;
}

export interface Fact {
  readonly name: string;
  readonly text: string;
}

export interface DeviceEvent {
  readonly time: string;
  readonly what: string;
  readonly message: string;
  /** Containers that held the device then. */
  readonly holders: readonly string[];
}

const FACTS: Readonly<Record<string, string>> = {
  id: 'Id',
  uuid: 'UUID',
  serial: 'Serial',
  vendor: 'Vendor',
  driver: 'Driver',
  firmware: 'Firmware',
  profile: 'Profile',
  parent: 'Part of',
  physicalFunction: 'Function of',
};
const MOST_EVENTS = 20;

/** Reads a device and its events in the form of the API. Whatever does not have that form is left out. */
export function detailOf(device: unknown, events: unknown, key: string, trends?: unknown): DeviceDetail | undefined {
  if (!isObject(device)) return undefined;
  const facts = Object.entries(FACTS).flatMap(([field, name]): Fact[] => {
    const value = device[field];
    return typeof value === 'string' && value !== '' ? [{ name, text: value }] : [];
  });
  const readings = isObject(device.readings)
    ? Object.entries(device.readings).flatMap(([name, value]) => (isInfo(name) ? [] : readingFacts(name, value)))
    : [];
  const listed = isObject(events) && Array.isArray(events.events) ? events.events : undefined;
  const own = listed?.filter(isObject).filter((event) => event.device === key);
  return { facts, readings, events: own?.slice(-MOST_EVENTS).toReversed().map(eventOf), trends: trendsIn(trends) };
}

const isTrend = (trend: unknown): trend is Trend =>
  Array.isArray(trend) && trend.every((value) => value === null || typeof value === 'number');

/** Trends of all devices in the form of the API. */
export function deviceTrendsIn(answer: unknown): Trends {
  const listed = isObject(answer) && isObject(answer.trends) ? Object.entries(answer.trends) : [];
  return Object.fromEntries(listed.flatMap(([key, trend]) => (isTrend(trend) ? [[key, trend] as const] : [])));
}

function trendsIn(answer: unknown): ReadonlyMap<string, Trend> {
  const listed = isObject(answer) && Array.isArray(answer.trends) ? answer.trends.filter(isObject) : [];
  return new Map(listed.flatMap(({ label, trend }) => (typeof label === 'string' && isTrend(trend) ? [[label, trend] as const] : [])));
}

/** The labels of such a series are facts of the device; its value says nothing. */
const isInfo = (name: string): boolean => /Info$|^info$/.test(name);

/** One reading, or one for each set of labels. */
function readingFacts(name: string, value: unknown): Fact[] {
  const metric = metricOf(name);
  // A counter grows since the driver was loaded, or longer.
  const inAll = metric.endsWith('_total') ? ', in all' : '';
  const fact = (reading: unknown, labels: string): Fact[] =>
    typeof reading === 'number' || typeof reading === 'bigint'
      ? [{ name: `${metricTitle(metric)}${labels}${inAll}`, text: readingText(metric, reading) }]
      : [];
  if (!Array.isArray(value)) return fact(value, '');
  return value.filter(isObject).flatMap((one) => fact(one.value, isObject(one.labels) ? ` ${Object.values(one.labels).join(' ')}` : ''));
}

/** Undoes what the API makes of a metric's name: `memoryUsedBytes` was `device_memory_used_bytes`. */
const metricOf = (name: string): string => `device_${name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`;

function eventOf(event: Readonly<Record<string, unknown>>): DeviceEvent {
  const { time, transition, condition, instance, from, to, message } = event;
  const name = conditionName({ type: textOf(condition ?? event.reason), instance: instance === undefined ? undefined : textOf(instance) });
  const what = transition === 'state' ? `${textOf(from)} → ${textOf(to)}` : `${name} ${textOf(transition)}`;
  const holders = (Array.isArray(event.holders) ? event.holders : []).filter(isObject);
  return {
    time: textOf(time)
      .replace('T', ' ')
      .replace(/\.\d+Z$/, ' UTC'),
    what,
    message: textOf(message),
    holders: [...new Set(holders.map(({ namespace, pod, container }) => [namespace, pod, container].map(textOf).join('/')))],
  };
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null;
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
