import type { Allocation } from '../../model/allocation.ts';
import type { HealthEvent } from '../../model/events.ts';
import { familyReading } from '../../model/family-reading.ts';
import type { ActiveCondition, IgnoredCondition, PendingCondition, Verdict } from '../../model/health.ts';
import { remedyNow } from '../../model/health.ts';
import type { MemoryBlock } from '../../model/pod-resources.ts';
import type { AllocationState, DeviceState, FamilyState, Snapshot } from '../../model/snapshot.ts';
import { readingViews, timeText } from './names.ts';

/** Returns the declared remedy of a problem code; undefined for an undeclared code. */
export type RemedyOf = (family: string, code: string) => string | undefined;

/** Converts a device for the API. Keys are stable and contain the unit; unknown values are left out. */
export function deviceView(state: DeviceState): object {
  const { device, processes } = state;
  return {
    ...device,
    present: state.missingSinceMs === undefined,
    missingSince: timeText(state.missingSinceMs),
    stale: state.stale,
    readAt: timeText(state.readAtMs),
    health: healthView(state.verdict),
    holders: state.holders.map(holderView),
    processes,
    readings: readingViews(state.readings),
  };
}

export function allocationsView(snapshot: Snapshot): object {
  const { exclusive, podExclusive, allocatable, answeredAtMs } = snapshot.podResources;
  const ids = new Map(snapshot.devices.map((state) => [state.key, state.device.id]));
  return {
    takenAt: timeText(snapshot.takenAtMs),
    kubeletAnsweredAt: timeText(answeredAtMs),
    allocations: snapshot.allocations.map((state) => allocationView(state, ids)),
    localities: snapshot.localities,
    exclusive: exclusive.map(({ memory, ...container }) => ({ ...container, memory: memory.map(memoryView) })),
    pods: snapshot.pods && [...snapshot.pods.values()],
    podExclusive: podExclusive.map(({ memory, ...pod }) => ({ ...pod, memory: memory.map(memoryView) })),
    allocatable: allocatable && { ...allocatable, memory: allocatable.memory.map(memoryView) },
  };
}

export function devicesView(snapshot: Snapshot): object {
  return {
    takenAt: timeText(snapshot.takenAtMs),
    sequence: snapshot.sequence,
    expected: snapshot.expected,
    families: snapshot.families.map(familyReading),
    devices: snapshot.devices.map(deviceView),
  };
}

/** Devices, allocations and problems of the probes: all that `list` prints. */
export function snapshotView(snapshot: Snapshot): object {
  const problems = snapshot.families.flatMap(({ family, problems: found }) => found.map((problem) => ({ family, ...problem })));
  return { ...devicesView(snapshot), ...allocationsView(snapshot), problems };
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

/**
 * Conditions in `conditions` count; those in `pending` hold but do not count yet. A condition with `recovering` has ended: its message
 * describes the past and its remedy is `none`. A condition with `unverifiedSince` held at that time.
 */
function healthView({ state, sinceMs, conditions, pending, ignored, unchecked, probation, incidents, transitions }: Verdict): object {
  return {
    state,
    since: sinceMs > 0 ? timeText(sinceMs) : undefined,
    conditions: conditions.map(conditionView),
    pending: pending?.map(pendingView),
    ignored: ignored?.map(ignoredView),
    unchecked,
    probation: probation && {
      condition: probation.condition,
      since: timeText(probation.sinceMs),
      busySeconds: probation.busyMs === undefined ? undefined : probation.busyMs / 1_000,
      neededSeconds: probation.neededMs / 1_000,
    },
    incidents: incidents?.map(({ state: reached, condition, count }) => ({ state: reached, condition, count })),
    transitions,
  };
}

function conditionView(condition: ActiveCondition): object {
  const { type, instance, severity, reason, message, sinceMs, unverifiedSinceMs, recovering } = condition;
  return {
    type,
    instance,
    severity,
    reason,
    message,
    remedy: remedyNow(condition),
    since: timeText(sinceMs),
    unverifiedSince: timeText(unverifiedSinceMs),
    recovering: recovering && { since: timeText(recovering.sinceMs), until: timeText(recovering.untilMs) },
  };
}

function pendingView(condition: PendingCondition): object {
  return { ...conditionView(condition), countsAt: timeText(condition.countsAtMs) };
}

function ignoredView(condition: IgnoredCondition): object {
  return { ...conditionView(condition), ignoreReason: condition.ignoreReason, ignoredUntil: timeText(condition.ignoredUntilMs) };
}

/** Returns events with the time as text. */
export function eventsView(events: readonly HealthEvent[]): object {
  return { events: events.map(({ timeMs, ...event }) => ({ ...event, time: timeText(timeMs) })) };
}

const holderView = ({ namespace, pod, container, resource, deviceId, claim }: Allocation): object => ({
  namespace,
  pod,
  container,
  resource,
  deviceId,
  claim,
});

function allocationView({ allocation, devices, unresolved, held }: AllocationState, ids: ReadonlyMap<string, string>): object {
  const { numaNodes } = allocation;
  return { ...holderView(allocation), numaNodes, devices: devices.map((key) => ids.get(key) ?? key), unresolved, held };
}

const memoryView = ({ type, bytes, numaNodes }: MemoryBlock): object => ({ type, bytes, numaNodes });
