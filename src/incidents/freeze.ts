import type { HostFacts } from '../model/agent-stats.ts';
import type { DeviceProcess } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { HealthEvent } from '../model/events.ts';
import type { FaultHolder } from '../model/fault.ts';
import { type ActiveCondition, remedyNow } from '../model/health.ts';
import type { Labels } from '../model/metric.ts';
import { oneLine } from '../model/one-line.ts';
import type { DeviceState } from '../model/snapshot.ts';
import type { DeviceHistory } from './history.ts';
import type {
  IncidentChange,
  IncidentCondition,
  IncidentEvent,
  IncidentHolder,
  IncidentProcess,
  IncidentReadings,
  IncidentRecord,
  StateValue,
} from './record.ts';

/** What a record says about the node and the agent. */
export interface IncidentPlace {
  readonly node: string;
  readonly agentVersion: string;
  readonly host: HostFacts;
  /** Where people reach the pages of the agent. */
  readonly pagesUrl?: string | undefined;
}

export interface Scene {
  readonly id: string;
  readonly place: IncidentPlace;
  readonly event: HealthEvent;
  readonly state: DeviceState;
  /** State in the snapshot before; absent when this run of the agent did not see the device before. */
  readonly before?: DeviceState | undefined;
  /** The latest state with processes. */
  readonly withProcesses?: DeviceState | undefined;
  readonly holders: readonly FaultHolder[];
  readonly areHoldersKnown: boolean;
  readonly history?: DeviceHistory | undefined;
  /** Metrics that a reset or a reboot can wipe, by their names. */
  isWiped(metric: string): boolean;
  /** Events of the device before this one. */
  readonly events: readonly HealthEvent[];
}

/** A column of more values makes a record large and shows nothing more. */
const MOST_SAMPLES = 300;
const MOST_PROCESSES = 256;
export const MOST_HOLDERS = 128;
const MOST_CONDITIONS = 64;
const MOST_EVENTS = 50;

/** Makes the record of a moment, without the lines of the kernel log and the changes of other devices. */
export function freeze(scene: Scene): IncidentRecord {
  const { id, event, state, before, holders, history, events } = scene;
  const { pagesUrl, ...place } = scene.place;
  const { device, key, verdict, missingSinceMs, readAtMs } = state;
  const processes = state.processes.length > 0 ? state : scene.withProcesses;
  const conditions = conditionFacts(verdict.conditions);
  const pending = conditionFacts(verdict.pending ?? []);
  return cleaned({
    id,
    time: timeText(event.timeMs),
    ...place,
    ...(pagesUrl === undefined ? {} : { url: `${pagesUrl}/incidents/${encodeURIComponent(id)}` }),
    device: { ...device, key },
    ...(missingSinceMs === undefined ? {} : { missingSince: timeText(missingSinceMs) }),
    ...(readAtMs > 0 ? { readAt: timeText(readAtMs) } : {}),
    before: verdictBefore(event, before),
    after: { state: verdict.state, ...sinceOf(verdict.sinceMs), conditions, ...(pending.length === 0 ? {} : { pending }) },
    changes: [changeOf(event)],
    ...(scene.areHoldersKnown ? {} : { holdersUnknown: true as const }),
    holders: holders.slice(0, MOST_HOLDERS).map(holderFact),
    processes: (processes?.processes ?? []).slice(0, MOST_PROCESSES).map(processFact),
    ...(processes === undefined || processes.readAtMs <= 0 ? {} : { processesReadAt: timeText(processes.readAtMs) }),
    state: resetState(scene),
    readings: columns(history),
    kernel: { lines: [], problem: 'the agent ended before it read the kernel log' },
    events: events.slice(-MOST_EVENTS).map((one): IncidentEvent => ({ transition: one.transition, ...changeOf(one) })),
    others: [],
  });
}

export function changeOf({ timeMs, from, to, condition, instance, reason, message, remedy }: HealthEvent): IncidentChange {
  return cleaned({
    time: timeText(timeMs),
    ...defined({ from, to, condition, instance }),
    reason,
    message,
    remedy,
  });
}

function verdictBefore({ from }: HealthEvent, before: DeviceState | undefined): IncidentRecord['before'] {
  const state = from ?? before?.verdict.state ?? 'unknown';
  if (before?.verdict.state !== state) return { state };
  const { sinceMs, conditions } = before.verdict;
  return { state, ...sinceOf(sinceMs), conditions: conditionFacts(conditions) };
}

const sinceOf = (ms: number): { readonly since?: string } => (ms > 0 ? { since: timeText(ms) } : {});

export const conditionFacts = (conditions: readonly Parameters<typeof conditionFact>[0][]): readonly IncidentCondition[] =>
  conditions.slice(0, MOST_CONDITIONS).map(conditionFact);

function conditionFact(condition: ActiveCondition | Omit<ActiveCondition, 'recovering'>): IncidentCondition {
  const { type, instance, severity, reason, message, sinceMs, causedBy } = condition;
  const base = { type, ...defined({ instance }), severity, reason, message };
  return { ...base, remedy: remedyNow(condition), ...defined({ causedBy }), ...sinceOf(sinceMs) };
}

export function holderFact({ holder, uid, fromMs, untilMs }: FaultHolder): IncidentHolder {
  const base = { ...holder, ...defined({ uid }), since: timeText(fromMs) };
  return untilMs === undefined ? base : { ...base, until: timeText(untilMs) };
}

function processFact({ pid, name, isStuck, memoryUsedBytes, podUid, containerId }: DeviceProcess): IncidentProcess {
  return defined({ pid, name, isStuck, memoryUsedBytes, podUid, containerId });
}

/** Takes every n-th sample when there are too many; the last one always stays. */
function columns(history: DeviceHistory | undefined): IncidentReadings {
  if (history === undefined) return { times: [], series: [] };
  const last = history.times.length - 1;
  const step = Math.max(1, Math.ceil(history.times.length / MOST_SAMPLES));
  const isKept = (_: unknown, at: number): boolean => (last - at) % step === 0;
  const series = history.series.map(({ reads: _, ...one }) => ({ ...one, values: one.values.filter(isKept) }));
  return {
    times: history.times.filter(isKept).map(timeText),
    series: series.filter(({ values }) => values.some((value) => value !== null)),
  };
}

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
  const now = [...readings].map(({ metric, labels = {}, value }): Dated => ({ metric, labels, value, atMs: readAtMs }));
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

/** Cleans every text in plain data, and leaves out undefined values. */
export function cleaned<T>(value: T): T {
  if (typeof value === 'string') return oneLine(value) as T;
  if (Array.isArray(value)) return value.map(cleaned) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [oneLine(name), cleaned(part)])) as T;
}
