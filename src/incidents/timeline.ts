import { type Allocation, allocationKey } from '../model/allocation.ts';
import { defined } from '../model/defined.ts';
import type { HealthEvent } from '../model/events.ts';
import { podName } from '../model/pod-resources.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';
import { follow, type NameChanges } from './names.ts';
import type { OtherChange } from './record.ts';

/** Time for which an ended holder is remembered. */
export const HOLDER_MEMORY_MS = 600_000;
/** Time within which changes of other devices can have the same cause. */
export const COMMON_CAUSE_MS = 60_000;
const MOST_ENDED = 64;
const MOST_CHANGES = 512;

/** A container with a device, over the time for which the agent saw it. */
export interface HolderSpan {
  readonly allocation: Allocation;
  readonly uid?: string;
  readonly sinceMs: number;
  readonly untilMs?: number;
}

interface Past {
  spans: ReadonlyMap<string, HolderSpan>;
  ended: readonly HolderSpan[];
  last: DeviceState;
  /** The last state with processes. */
  withProcesses?: DeviceState;
}

type Change = Omit<OtherChange, 'time'> & { readonly atMs: number };

/** Who held each device, and how the verdicts of the node changed. It keeps only changes, for a short time. */
export class Timeline {
  readonly #devices = new Map<string, Past>();
  #changes: readonly Change[] = [];

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
      else advance(past, state, snapshot);
    }
    if (this.#devices.size === devices.length) return;
    const listed = new Set(devices.map(({ key }) => key));
    for (const [key, past] of this.#devices) {
      if (!listed.has(key) && Math.abs(takenAtMs - past.last.readAtMs) > HOLDER_MEMORY_MS) this.#devices.delete(key);
    }
  }

  changed({ device, from, to, condition, timeMs }: HealthEvent): void {
    if (to === undefined) return;
    const change = defined({ device, to, atMs: timeMs, from, condition });
    this.#changes = [...this.#changes.slice(1 - MOST_CHANGES), change];
  }

  /** Containers that hold the device, and then those that held it within {@link HOLDER_MEMORY_MS}, the latest first. */
  holdersOf(key: string, nowMs: number): readonly HolderSpan[] {
    const past = this.#devices.get(key);
    if (past === undefined) return [];
    const ended = past.ended.filter(({ untilMs = nowMs }) => Math.abs(nowMs - untilMs) <= HOLDER_MEMORY_MS);
    return [...past.spans.values(), ...ended.toReversed()];
  }

  /** Changes of other devices from {@link COMMON_CAUSE_MS} before to `untilMs`, oldest first, one for each device. */
  others(key: string, atMs: number, untilMs: number): readonly Change[] {
    const near = this.#changes.filter(
      (change) => change.device !== key && change.to !== 'healthy' && change.atMs >= atMs - COMMON_CAUSE_MS && change.atMs <= untilMs,
    );
    return [...new Map(near.map((change) => [change.device, change])).values()];
  }
}

function begun(state: DeviceState, snapshot: Snapshot): Past {
  const past: Past = { spans: new Map(), ended: [], last: state };
  advance(past, state, snapshot);
  return past;
}

function advance(past: Past, state: DeviceState, snapshot: Snapshot): void {
  const { takenAtMs } = snapshot;
  past.last = state;
  if (state.processes.length > 0) past.withProcesses = state;
  // The holders of an unchanged device are mostly the same; then nothing is copied.
  const names = new Map(state.holders.map((holder) => [allocationKey(holder), holder]));
  const isSame = names.size === past.spans.size && [...names.keys()].every((name) => past.spans.get(name)?.uid !== undefined);
  if (isSame || (names.size === 0 && past.spans.size === 0)) return;
  const ended = [...past.spans].filter(([name]) => !names.has(name)).map(([, span]) => ({ ...span, untilMs: takenAtMs }));
  past.ended = [...past.ended, ...ended].slice(-MOST_ENDED);
  past.spans = new Map([...names].map(([name, holder]) => [name, spanOf(past.spans.get(name), holder, snapshot)]));
}

function spanOf(known: HolderSpan | undefined, allocation: Allocation, snapshot: Snapshot): HolderSpan {
  if (known?.uid !== undefined) return known;
  const uid = uidOf(allocation, snapshot);
  return { allocation, sinceMs: known?.sinceMs ?? snapshot.takenAtMs, ...(uid === undefined ? {} : { uid }) };
}

/** The Pods API gives the UID of a pod. The accounts of use also have it, from the kubelet's checkpoint. */
function uidOf(holder: Allocation, { pods, usage }: Snapshot): string | undefined {
  const { namespace, pod, container } = holder;
  const account = usage?.containers.find(
    (one) => one.namespace === namespace && one.pod === pod && one.container === container && one.endedAtMs === undefined,
  );
  return pods?.get(podName(holder))?.uid ?? account?.uid;
}
