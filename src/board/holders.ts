import type { Allocation } from '../model/allocation.ts';
import { defined } from '../model/defined.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';
import { type DeviceView, type HolderView, parentKey } from './device-view.ts';
import { nameOf } from './name.ts';

/** Who holds each device, and what that makes of its use. */
export class Holders {
  readonly #parts = new Map<string, DeviceState[]>();
  /** The kubelet answered, so that a device without a holder is free. */
  readonly isAnswered: boolean;
  /** Devices that share an id which a container holds. */
  readonly #candidates: ReadonlySet<string>;

  constructor({ devices, allocations, podResources }: Snapshot) {
    this.#candidates = new Set(allocations.flatMap(({ candidates = [] }) => candidates));
    this.isAnswered = podResources.answeredAtMs !== undefined && podResources.problem === undefined;
    for (const state of devices) {
      const whole = parentKey(state.device);
      if (whole === undefined) continue;
      const parts = this.#parts.get(whole);
      if (parts === undefined) this.#parts.set(whole, [state]);
      else parts.push(state);
    }
  }

  of(state: DeviceState): Pick<DeviceView, 'use' | 'holders' | 'users' | 'lastHolders'> {
    const { users = [], delegating = [], verdict, missingSinceMs, lastHolders } = state;
    const own = state.holders.map(
      (one): HolderView => (delegating.includes(one) ? { ...holderView(one), delegated: true } : holderView(one)),
    );
    const byParts = this.#ofParts(state, 0);
    const isUsable = missingSinceMs === undefined && verdict.state !== 'unhealthy';
    const nobody = this.isAnswered && !this.mayBeHeld(state) ? (isUsable ? 'free' : 'no holder') : 'unknown';
    const use = own.length > 0 ? 'held' : byParts.length > 0 ? 'held by parts' : users.length > 0 ? 'used' : nobody;
    const using = users.map(({ processes: _processes, ...user }) => user);
    const last = use === 'no holder' ? lastHolders?.pods.map(({ namespace, pod }) => `${namespace}/${pod}`) : undefined;
    return {
      ...{ use, holders: distinct([...own, ...byParts]) },
      ...(using.length === 0 ? {} : { users: using }),
      ...defined({ lastHolders: last }),
    };
  }

  /** Whether a container holds an id that can belong to this device or to a part of it. */
  mayBeHeld(state: DeviceState): boolean {
    return this.#candidates.size > 0 && [state, ...this.partsOf(state)].some(({ key }) => this.#candidates.has(key));
  }

  /** All parts of a device, whose holders are its holders too. */
  partsOf({ key }: DeviceState, depth = 0): readonly DeviceState[] {
    const parts = depth > 4 ? undefined : this.#parts.get(key);
    return parts === undefined ? NO_PARTS : parts.flatMap((part) => [part, ...this.partsOf(part, depth + 1)]);
  }

  /** Parts have parts: a virtual function in a port of a card. The limit ends a circle that no hardware should report. */
  #ofParts(state: DeviceState, depth: number): readonly HolderView[] {
    const parts = depth > 4 ? [] : (this.#parts.get(state.key) ?? []);
    return parts.flatMap((part) => [
      ...part.holders.map((holder) => ({ ...holderView(holder), part: nameOf(part.device) })),
      ...this.#ofParts(part, depth + 1),
    ]);
  }
}

const NO_PARTS: readonly DeviceState[] = [];

const holderView = ({ numaNodes: _numaNodes, ...holder }: Allocation): HolderView => holder;

/** A container that holds several replicas of one device is one holder; one that holds the device and its port is one holder, too. */
function distinct(holders: readonly HolderView[]): readonly HolderView[] {
  const byName = new Map<string, HolderView>();
  for (const holder of holders) {
    const { namespace, pod, container, resource } = holder;
    const name = [namespace, pod, container, resource].join('\u0000');
    const known = byName.get(name);
    if (known === undefined) byName.set(name, holder);
    else if (known.part !== undefined && holder.part !== undefined && !known.part.split(', ').includes(holder.part))
      byName.set(name, { ...known, part: `${known.part}, ${holder.part}` });
  }
  return [...byName.values()];
}
