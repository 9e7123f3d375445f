import { defined } from '../model/defined.ts';
import { deviceKey } from '../model/device.ts';
import type { EventHolder, HealthEvent } from '../model/events.ts';
import type { FaultHolder } from '../model/fault.ts';
import { areHoldersKnown, podName } from '../model/pod-resources.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';
import { holdersAfter, REMEMBERED_MS } from './fault-holders.ts';
import type { OtherChange } from './record.ts';

/** Time within which changes of other devices can have the same cause. */
export const COMMON_CAUSE_MS = 60_000;
const MOST_CHANGES = 512;

interface Past {
  /** Those that go on, and those that ended a short time ago. */
  holders: readonly FaultHolder[];
  last: DeviceState;
  /** The last state with processes. */
  withProcesses?: DeviceState;
}

type Change = Omit<OtherChange, 'time'> & { readonly atMs: number };

/** Who held each device, and how the verdicts of the node changed. It keeps only changes, for a short time. */
export class Timeline {
  readonly #devices = new Map<string, Past>();
  #changes: readonly Change[] = [];
  /** Grows with each change of a holder. */
  changesOfHolders = 0;

  /** The state of a device in the last snapshot that was taken. */
  lastOf(key: string): DeviceState | undefined {
    return this.#devices.get(key)?.last;
  }

  /** The latest state of a device that shows processes. */
  processesOf(key: string): DeviceState | undefined {
    return this.#devices.get(key)?.withProcesses;
  }

  follow(changes: NameChanges): void {
    follow(this.#devices, changes);
  }

  take(snapshot: Snapshot): void {
    const { takenAtMs, devices } = snapshot;
    for (const state of devices) {
      const past = this.#devices.get(state.key);
      if (past === undefined) this.#devices.set(state.key, begun(state, snapshot));
      else if (advance(past, state, snapshot)) this.changesOfHolders += 1;
    }
    if (this.#devices.size === devices.length) return;
    const listed = new Set(devices.map(({ key }) => key));
    for (const [key, past] of this.#devices) {
      if (!listed.has(key) && Math.abs(takenAtMs - past.last.readAtMs) > REMEMBERED_MS) this.#devices.delete(key);
    }
  }

  changed({ device, from, to, condition, timeMs }: HealthEvent): void {
    if (to === undefined) return;
    const change = defined({ device, to, atMs: timeMs, from, condition });
    this.#changes = [...this.#changes.slice(1 - MOST_CHANGES), change];
  }

  /** Containers that hold the device or a part of it, and then those that held it a short time ago, the latest first. */
  holdersOf(key: string, nowMs: number): readonly FaultHolder[] {
    const spans = new Map<string, FaultHolder>();
    for (const one of [key, ...this.#partsOf(key)].flatMap((each) => this.#devices.get(each)?.holders ?? [])) {
      // A device can have the holders of its parts, too.
      const span = `${nameOf(one.holder)}\u0000${one.fromMs}`;
      const known = spans.get(span);
      spans.set(span, known?.uid === undefined ? { ...known, ...one } : known);
    }
    const holders = [...spans.values()];
    const ended = holders.filter(({ untilMs }) => untilMs !== undefined && Math.abs(nowMs - untilMs) <= REMEMBERED_MS);
    return [...holders.filter(isPresent), ...ended.toReversed()];
  }

  /** Parts have parts: a virtual function in a port of a card. A circle, which no hardware should report, ends. */
  #partsOf(key: string, found = new Set<string>()): ReadonlySet<string> {
    for (const [own, { last }] of this.#devices) {
      const { family, parent } = last.device;
      if (parent === undefined || found.has(own) || deviceKey({ family, id: parent }) !== key) continue;
      found.add(own);
      this.#partsOf(own, found);
    }
    return found;
  }

  /** Changes of other devices from {@link COMMON_CAUSE_MS} before to `untilMs`, oldest first, one for each device. */
  others(key: string, atMs: number, untilMs: number): readonly Change[] {
    const near = this.#changes.filter(
      (change) => change.device !== key && change.to !== 'healthy' && change.atMs >= atMs - COMMON_CAUSE_MS && change.atMs <= untilMs,
    );
    return [...new Map(near.map((change) => [change.device, change])).values()];
  }
}

const isPresent = ({ untilMs }: FaultHolder): boolean => untilMs === undefined;

const nameOf = ({ namespace, pod, container, resource, deviceId }: EventHolder): string =>
  [namespace, pod, container, resource, deviceId].join('\u0000');

function begun(state: DeviceState, snapshot: Snapshot): Past {
  const past: Past = { holders: [], last: state };
  advance(past, state, snapshot);
  return past;
}

/** Whether the holders changed. */
function advance(past: Past, state: DeviceState, snapshot: Snapshot): boolean {
  past.last = state;
  if (state.processes.length > 0) past.withProcesses = state;
  // The holders of an unchanged device are mostly the same; then nothing is copied.
  const open = past.holders.filter(isPresent);
  const known = new Set(open.flatMap(({ holder, uid }) => (uid === undefined ? [] : [nameOf(holder)])));
  if (open.length === state.holders.length && state.holders.every((holder) => known.has(nameOf(holder)))) return false;
  const present = state.holders.map(({ namespace, pod, container, resource, deviceId }) => {
    const holder = { namespace, pod, container, resource, deviceId };
    return { holder, uid: uidOf(holder, snapshot) };
  });
  const kept = areHoldersKnown(snapshot.podResources) ? [] : open;
  past.holders = holdersAfter(past.holders, [...kept.map(({ holder, uid }) => ({ holder, uid })), ...present], snapshot.takenAtMs);
  return true;
}

/** The Pods API gives the UID of a pod. The accounts of use also have it, from the kubelet's checkpoint. */
function uidOf(holder: EventHolder, { pods, usage }: Snapshot): string | undefined {
  const { namespace, pod, container } = holder;
  const account = usage?.containers.find(
    (one) => one.namespace === namespace && one.pod === pod && one.container === container && one.endedAtMs === undefined,
  );
  return pods?.get(podName(holder))?.uid ?? account?.uid;
}

/** What happened to the names of devices in one judgement. */
export interface NameChanges {
  /** Present keys, keyed by earlier keys. Two devices may have swapped their names. */
  readonly renamed: ReadonlyMap<string, string>;
  /** Keys that now belong to other hardware. */
  readonly replaced: readonly string[];
}

export function nameChanges(events: readonly HealthEvent[]): NameChanges {
  return {
    renamed: new Map(events.flatMap(({ was, device }): [string, string][] => (was === undefined ? [] : [[was, device]]))),
    replaced: events.flatMap(({ transition, device }) => (transition === 'replaced' ? [device] : [])),
  };
}

/** Events of the hardware that has the key, also those under its earlier names. `events`: oldest first. */
export function eventsOfHardware(events: readonly HealthEvent[], key: string): readonly HealthEvent[] {
  const found: HealthEvent[] = [];
  let name = key;
  // In the judgement that renamed the hardware, the earlier name can already be that of other hardware.
  let renamedAtMs: number | undefined;
  for (const event of events.toReversed()) {
    if (event.device !== name || event.timeMs === renamedAtMs) continue;
    found.unshift(event);
    if (event.transition === 'replaced') break;
    if (event.was === undefined) continue;
    name = event.was;
    renamedAtMs = event.timeMs;
  }
  return found;
}

/** Events of hardware that had the name at `fromMs` and is not listed now. They end when other hardware takes the name. `events`: oldest first. */
export function eventsUnderName(events: readonly HealthEvent[], key: string, fromMs: number): readonly HealthEvent[] {
  const later = events.filter(({ device, was, timeMs }) => (device === key || was === key) && timeMs >= fromMs);
  const until = later.findIndex(({ was, transition }) => was === key || transition === 'replaced');
  return until < 0 ? later : later.slice(0, until);
}

/** Makes what is remembered by name follow the devices. What belongs to replaced hardware is dropped. */
export function follow<T>(remembered: Map<string, T>, { renamed, replaced }: NameChanges): void {
  for (const key of replaced) if (!renamed.has(key)) remembered.delete(key);
  const moving = [...renamed].flatMap(([was, now]): [string, T][] => {
    const value = remembered.get(was);
    return value === undefined ? [] : [[now, value]];
  });
  for (const was of renamed.keys()) remembered.delete(was);
  for (const [now, value] of moving) remembered.set(now, value);
}
