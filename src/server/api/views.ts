import type { Board, RemedyOf } from '../../board/board.ts';
import type { DeviceView } from '../../board/device-view.ts';
import { timeText } from '../../board/units.ts';
import type { PluginStats } from '../../model/agent-stats.ts';
import type { Device } from '../../model/device.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Reading } from '../../model/metric.ts';
import type { MemoryBlock } from '../../model/pod-resources.ts';
import type { AllocationState, DeviceState, FamilyState, Snapshot } from '../../model/snapshot.ts';

/** A device of the board with all facts. `processes` and `readings` are left out where they were not asked for. */
export interface WholeDevice extends Device, DeviceView {
  readonly processes?: DeviceState['processes'];
  readonly readings?: Readonly<Record<string, ReadingView>>;
}

/** The board with all facts of its devices. Keys are stable and contain the unit; unknown values are left out. */
export interface WholeBoard extends Board {
  readonly devices: readonly WholeDevice[];
}

/** `hasReadings`: with all readings, and not only with those that are shown first. */
export function wholeBoard(board: Board, snapshot: Snapshot, hasReadings = true): WholeBoard {
  const states = new Map(snapshot.devices.map((state) => [state.key, state]));
  const devices = board.devices.flatMap((view) => {
    const state = states.get(view.key);
    return state === undefined ? [] : [wholeDevice(view, state, hasReadings)];
  });
  return { ...board, devices };
}

export function wholeDevice(view: DeviceView, state: DeviceState, hasReadings = true): WholeDevice {
  const { processes, readings } = state;
  return { ...state.device, ...view, ...(hasReadings ? { processes, readings: readingViews(readings) } : {}) };
}

export function allocationsView(snapshot: Snapshot): object {
  const { exclusive, podExclusive, allocatable, answeredAtMs } = snapshot.podResources;
  return {
    takenAt: timeText(snapshot.takenAtMs),
    kubeletAnsweredAt: timeText(answeredAtMs),
    allocations: snapshot.allocations.map(allocationView),
    localities: snapshot.localities,
    exclusive: exclusive.map(({ memory, ...container }) => ({ ...container, memory: memory.map(memoryView) })),
    pods: snapshot.pods && [...snapshot.pods.values()],
    podExclusive: podExclusive.map(({ memory, ...pod }) => ({ ...pod, memory: memory.map(memoryView) })),
    allocatable: allocatable && { ...allocatable, memory: allocatable.memory.map(memoryView) },
  };
}

export function statusView(snapshot: Snapshot | undefined, nowMs: number, remedyOf: RemedyOf): object {
  if (snapshot === undefined) return {};
  const { api, answeredAtMs, problem, held } = snapshot.podResources;
  return {
    snapshot: {
      sequence: snapshot.sequence,
      takenAt: timeText(snapshot.takenAtMs),
      ageSeconds: Math.max(0, nowMs - snapshot.takenAtMs) / 1_000,
      devices: snapshot.devices.length,
      allocations: snapshot.allocations.length,
    },
    kubelet: { api, answeredAt: timeText(answeredAtMs), problem, heldAllocations: held.size },
    probes: snapshot.families.map((family) => probeView(family, remedyOf)),
  };
}

/** What the kubelet offers of each resource of the device plugin; `differing` is the number of ids that it offers otherwise than it was told. */
export function resourcesView(stats: PluginStats | undefined): readonly object[] | undefined {
  return stats?.resources.map(({ resource, registered, difference }) => ({
    resource,
    registered,
    differing: difference?.ids,
    differingSince: timeText(difference?.sinceMs),
  }));
}

function probeView(family: FamilyState, remedyOf: RemedyOf): object {
  return {
    family: family.family,
    succeeded: family.succeeded,
    lastSuccessAt: timeText(family.lastSuccessMs),
    durationSeconds: family.durationMs === undefined ? undefined : family.durationMs / 1_000,
    runs: family.runs,
    failures: family.failures,
    abandonedRuns: family.abandoned,
    hung: family.hung,
    disabledChecks: family.disabledChecks,
    problems: family.problems.map((problem) => ({ ...problem, remedy: remedyOf(family.family, problem.code) })),
  };
}

/** Returns events with the time as text. */
export function eventsView(events: readonly HealthEvent[]): object {
  return { events: events.map(({ timeMs, ...event }) => ({ ...event, time: timeText(timeMs) })) };
}

function allocationView({ allocation, devices, unresolved, held }: AllocationState): object {
  const { namespace, pod, container, resource, deviceId, claim, numaNodes } = allocation;
  return { namespace, pod, container, resource, deviceId, claim, numaNodes, devices, unresolved, held };
}

const memoryView = ({ type, bytes, numaNodes }: MemoryBlock): object => ({ type, bytes, numaNodes });

/** Name of a metric in the API, without the common prefix: `device_memory_used_bytes` becomes `memoryUsedBytes`. */
export function readingName(metric: string): string {
  return metric.replace(/^device_/, '').replace(/_+([a-z0-9])/g, (_match, letter: string) => letter.toUpperCase());
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
    [...byMetric].sort(([a], [b]) => (a < b ? -1 : 1)).map(([metric, list]) => [readingName(metric), readingView(list)]),
  );
}

function readingView(readings: readonly Reading[]): ReadingView {
  const [only] = readings;
  if (readings.length === 1 && only !== undefined && only.labels === undefined) return only.value;
  return readings.map(({ labels, value }) => ({ labels: labels ?? {}, value }));
}

/** Writes integers that a JSON parser would round as strings of digits. */
export function jsonText(value: unknown, indent?: number): string {
  return `${JSON.stringify(value, bigintSafe, indent)}\n`;
}

function bigintSafe(_key: string, value: unknown): unknown {
  if (typeof value !== 'bigint') return value;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}
