import type { Allocation } from '../model/allocation.ts';
import { defined } from '../model/defined.ts';
import { isOtherDevice } from '../model/device.ts';
import type { Verdict } from '../model/health.ts';
import { podName } from '../model/pod-resources.ts';
import { Readings } from '../model/readings.ts';
import type { Usage } from '../model/usage.ts';
import {
  type ContainerAccount,
  charge,
  type DeviceAccount,
  delegate,
  giveUpWaiting,
  identityAfter,
  type Moment,
  openAccount,
  openDeviceAccount,
  seenAt,
  usageOf,
} from './account.ts';
import type { FamilyActivity } from './device-work.ts';
import { type Holder, type HolderIds, hasHoldMoved, holdersOf, type UsageInput, type UsedDevice, withUsers } from './holders.ts';
import { type AccountsState, restoredAccounts, savedAccounts } from './saved-accounts.ts';
import { type DeviceHolders, type HolderShare, takeRead } from './take-read.ts';

export interface AccountsSettings {
  /** A longer time between two collections counts as not observed. */
  readonly staleAfterMs: number;
  /** How long a device that a container had in an earlier run is awaited. */
  readonly missingRetentionMs: number;
  readonly zeroForMs: number;
  readonly lingerMs: number;
  /** How long a container that the kubelet's answers lack keeps its account. */
  readonly absentForMs: number;
  /** How each family shows work, keyed by family. */
  readonly activity: ReadonlyMap<string, FamilyActivity>;
  /** Whether containers have the counter too. */
  isCounter(metric: string): boolean;
}

/** Devices of a family that must be read for the counters of their containers. */
export interface Awaited {
  readonly ids: Set<string>;
  /** The monotonic time from which a read gives the base. */
  readonly fromMs: number;
}

/** What an earlier run of the agent saved. */
export interface SavedAccounts {
  readonly state: AccountsState;
  /** When it was so, on the wall clock, and on the monotonic clock of this run: absent after a reboot, which ends all accounts. */
  readonly savedAtMs: number;
  readonly atMs?: number | undefined;
}

/** Time after the end of a container in which its faults still count for it. */
const LATE_FAULT_MS = 60_000;
/** Most accounts that are kept after their end. */
const MOST_ENDED = 2_000;
const NO_HOLDER: DeviceHolders = { parts: [], isShared: false };

/**
 * Accounts of the containers that hold devices, and of the devices since the start of the agent. Each snapshot is one step. The time between two steps
 * belongs to those who held a device at the first of them. The use in that time is what the next read of the device shows.
 */
export class Accounts {
  #settings: AccountsSettings;
  /** Keyed by device. */
  #devices: ReadonlyMap<string, DeviceAccount> = new Map();
  /** Accounts that have not ended, keyed by device and container. */
  readonly #active: Map<string, ContainerAccount>;
  #ended: readonly ContainerAccount[];
  /** Containers that held each device at the last step, keyed by device. */
  #held: ReadonlyMap<string, DeviceHolders> = new Map();
  /** The kubelet's answer was current at the last step. */
  #isAnswered = false;
  #answer = { atMs: Number.NaN, monotonicMs: Number.NEGATIVE_INFINITY };
  #steppedMs: number | undefined;

  constructor(settings: AccountsSettings, earlier?: SavedAccounts) {
    this.#settings = settings;
    const containers = earlier === undefined ? [] : restoredAccounts(earlier.state, earlier.savedAtMs, earlier.atMs);
    this.#active = new Map(containers.filter(goesOn).map((one) => [keyOf(one), one]));
    this.#ended = containers.filter((one) => !goesOn(one));
  }

  /** Families with a container whose counters have no base yet. */
  get awaited(): ReadonlyMap<string, Awaited> {
    const awaited = new Map<string, Awaited>();
    for (const { usage, counters } of this.#active.values()) {
      const fromMs = counters.awaitedFromMs;
      if (fromMs === undefined) continue;
      const family = usage.device.slice(0, usage.device.indexOf('/'));
      const known = awaited.get(family);
      const ids = (known?.ids ?? new Set()).add(usage.device.slice(family.length + 1));
      awaited.set(family, { ids, fromMs: Math.max(fromMs, known?.fromMs ?? 0) });
    }
    return awaited;
  }

  /** Takes other settings from the next step on. */
  configure(settings: AccountsSettings): void {
    this.#settings = settings;
  }

  /** Takes one snapshot. */
  step(input: UsageInput): Usage {
    const { monotonicMs, answeredAtMs } = input;
    const ms = Math.max(0, monotonicMs - (this.#steppedMs ?? monotonicMs));
    this.#steppedMs = monotonicMs;
    this.#charge(ms, monotonicMs);
    // The wall clock may be set, so the monotonic clock of the step that first has an answer gives the answer's age.
    if (answeredAtMs !== undefined && answeredAtMs !== this.#answer.atMs) this.#answer = { atMs: answeredAtMs, monotonicMs };
    this.#isAnswered = monotonicMs - this.#answer.monotonicMs <= this.#settings.staleAfterMs;
    this.#meet(input);
    this.#takeFaults(input);
    const before = this.#held;
    // While the kubelet does not answer, no more is known.
    if (this.#isAnswered) this.#held = this.#reconcile(input);
    this.#read(input, before);
    for (const account of this.#active.values()) {
      if (monotonicMs - account.lookedAtMs > this.#settings.staleAfterMs) giveUpWaiting(account);
    }
    return this.usage();
  }

  /** Takes the verdicts of the devices, as they are after the step. */
  judged(verdicts: ReadonlyMap<string, Verdict>): void {
    for (const [key, account] of this.#devices) account.isUnhealthy = verdicts.get(key)?.state === 'unhealthy';
  }

  /** What a later run of the agent needs. Plain data. */
  state(): AccountsState {
    return savedAccounts([...this.#active.values(), ...this.#ended]);
  }

  /** All accounts as the last step left them, also those that an earlier run saved. */
  usage(): Usage {
    return {
      containers: [...this.#active.values(), ...this.#ended].map((account) => usageOf(account, this.#settings.zeroForMs)),
      devices: Array.from(this.#devices.values(), ({ usage }) => ({ ...usage })),
    };
  }

  #charge(ms: number, monotonicMs: number): void {
    const { staleAfterMs, lingerMs, zeroForMs } = this.#settings;
    const isLooking = ms <= staleAfterMs;
    const seconds = ms / 1_000;
    for (const { usage, isUnhealthy } of this.#devices.values()) {
      const { parts } = this.#held.get(usage.device) ?? NO_HOLDER;
      if (isLooking && isUnhealthy) usage.unhealthySeconds += seconds;
      if (!isLooking || !this.#isAnswered) {
        usage.unobservedSeconds += seconds;
        continue;
      }
      usage[parts.length > 0 ? 'allocatedSeconds' : 'unallocatedSeconds'] += seconds;
      for (const { account, share, isDelegated } of parts)
        isDelegated === true ? delegate(account, ms, monotonicMs) : charge(account, ms, share, monotonicMs);
    }
    for (const account of [...this.#active.values(), ...this.#ended]) account.ageMs += ms;
    for (const account of this.#ended) account.endedForMs = (account.endedForMs ?? 0) + ms;
    const isShown = ({ endedForMs = 0, ageMs }: ContainerAccount): boolean => endedForMs < lingerMs || ageMs < zeroForMs + lingerMs;
    this.#ended = this.#ended.filter(isShown).slice(-MOST_ENDED);
  }

  /** Other hardware under a name begins anew. */
  #meet({ devices }: UsageInput): void {
    this.#devices = new Map(
      devices.map(({ key, device }) => {
        const known = this.#devices.get(key);
        const account = known === undefined || isOtherDevice(known.identity, device) ? openDeviceAccount(key) : known;
        account.identity = identityAfter(account.identity, device);
        return [key, account];
      }),
    );
  }

  /** Makes the accounts follow the kubelet's answer. Returns who holds what. */
  #reconcile(input: UsageInput): ReadonlyMap<string, DeviceHolders> {
    const podOf = this.#podsByUid();
    // The checkpoint can be older than the answer. It may then name the pod from which the device came.
    const ownUid = (allocation: Allocation): string | undefined => {
      const uid = input.uidOf(allocation);
      return uid === undefined || (podOf.get(uid) ?? podName(allocation)) === podName(allocation) ? uid : undefined;
    };
    const held = new Map<string, { readonly device: UsedDevice; readonly parts: readonly HolderShare[] }>();
    const idsOf = new Map<string, HolderIds>();
    for (const device of input.devices) {
      const found = withUsers(holdersOf(device.holders, ownUid), device);
      if (found.length === 0) continue;
      const parts = found.map((holder) => ({ ...holder, account: this.#accountOf(holder, device, input) }));
      held.set(device.key, { device, parts });
      idsOf.set(device.key, Object.assign({}, ...found.map(({ ids }) => ids)));
    }
    const absent = this.#absent(new Set([...held.values()].flatMap(({ parts }) => parts.map(({ account }) => account))), idsOf, input);
    return new Map(
      [...held].map(([key, { device, parts }]) => {
        const isShared = parts.length > 1 || absent.has(key) || device.users !== undefined || hasStrangers(device, parts);
        for (const { account } of parts) isShared ? account.counters.share() : account.counters.hold(input.monotonicMs);
        return [key, { parts, isShared }];
      }),
    );
  }

  /** Pods by the UIDs that are known. */
  #podsByUid(): ReadonlyMap<string, string> {
    const pods = new Map<string, string>();
    for (const { former } of this.#devices.values()) if (former !== undefined) pods.set(former.uid, former.pod);
    for (const { usage } of [...this.#active.values(), ...this.#ended]) if (usage.uid !== undefined) pods.set(usage.uid, podName(usage));
    return pods;
  }

  /**
   * Ends accounts that the answer lacks: at once when their id has another container or leads to another device, else when they were absent
   * for long. Returns the keys of the devices on which others go on.
   */
  #absent(present: ReadonlySet<ContainerAccount>, idsOf: ReadonlyMap<string, HolderIds>, now: Moment): ReadonlySet<string> {
    const { missingRetentionMs, absentForMs } = this.#settings;
    const absent = new Set<string>();
    for (const account of this.#active.values()) {
      const { device } = account.usage;
      if (present.has(account)) continue;
      account.absentFromMs ??= this.#answer.monotonicMs;
      // Before the first collection of the probe, the holder of a device of the earlier run is unknown.
      const longestMs = account.isAwaited && !this.#devices.has(device) ? missingRetentionMs : absentForMs;
      const isOver = this.#answer.monotonicMs - account.absentFromMs >= longestMs;
      if (isOver || hasHoldMoved(device, account.ids, idsOf)) this.#end(account, now);
      else {
        absent.add(device);
        if (idsOf.has(device)) account.counters.share();
      }
    }
    return absent;
  }

  /** A pod whose UID becomes known later has the account of its names. Another UID is another pod. */
  #accountOf(holder: Holder, { key, device }: UsedDevice, { pods, ...now }: UsageInput): ContainerAccount {
    let account = this.#active.get(`${key} ${holder.name}`);
    const isSame = account !== undefined && !isOtherDevice(account.identity, device) && !isOtherPod(account.usage, holder);
    if (account !== undefined && !isSame) this.#end(account, now);
    if (account === undefined || !isSame) {
      account = openAccount(holder, key, now);
      this.#active.set(keyOf(account), account);
    }
    const { usage } = account;
    const uid = holder.uid ?? usage.uid;
    const pod = pods?.get(podName(holder));
    // A successor of the same name has another UID.
    const labels = uid === undefined || uid === pod?.uid ? pod?.labels : undefined;
    Object.assign(usage, defined({ uid, labels, model: device.model }));
    Object.assign(account, { ids: holder.ids, identity: identityAfter(account.identity, device), absentFromMs: undefined });
    // The account of the earlier run goes on from now.
    if (account.isAwaited) Object.assign(account, { isAwaited: false, ...seenAt(now.monotonicMs) });
    return account;
  }

  #end(account: ContainerAccount, { nowMs, monotonicMs }: Moment): void {
    const { usage, counters, seenAtMs } = account;
    this.#active.delete(keyOf(account));
    giveUpWaiting(account);
    counters.share();
    usage.endedAtMs = nowMs - Math.max(0, monotonicMs - seenAtMs);
    const device = this.#devices.get(usage.device);
    if (device !== undefined && usage.uid !== undefined) device.former = { uid: usage.uid, pod: podName(usage) };
    this.#ended = [...this.#ended, Object.assign(account, { endedForMs: 0 })];
  }

  /** A fault can be the end of its container, so it counts before the account ends. The last one can be read after its end. */
  #takeFaults({ devices, faultsOf }: UsageInput): void {
    if (faultsOf === undefined) return;
    const named = new Map(devices.map(({ key, device }) => [key, device]));
    const isLate = ({ endedForMs = 0, usage }: ContainerAccount): boolean => endedForMs < LATE_FAULT_MS && usage.uid !== undefined;
    const late = this.#ended.filter((one) => isLate(one) && !this.#active.has(keyOf(one)));
    for (const { name, usage, counters } of [...this.#active.values(), ...late]) {
      const device = named.get(usage.device);
      if (device !== undefined) counters.assign(faultsOf(device, name, usage.uid));
    }
  }

  #read({ devices, containerReadings, ...now }: UsageInput, before: ReadonlyMap<string, DeviceHolders>): void {
    const own = new Map(containerReadings.map((one) => [`${one.namespace}/${one.pod}/${one.container} ${one.device}`, one.readings]));
    for (const device of devices) {
      const held = this.#held.get(device.key) ?? NO_HOLDER;
      if (!held.isShared)
        for (const { account } of held.parts) account.counters.take(device.readings, device.current?.startedMs, this.#settings.isCounter);
      const ownOf = (name: string): Readings => own.get(`${name} ${device.device.id}`) ?? Readings.NONE;
      const read = { ...held, device, wasShared: before.get(device.key)?.isShared === true, own: ownOf };
      takeRead(this.#devices.get(device.key) as DeviceAccount, read, now, this.#settings);
    }
  }
}

const isOtherPod = (before: { readonly uid?: string | undefined }, { uid }: Holder): boolean =>
  before.uid !== undefined && uid !== undefined && before.uid !== uid;
const goesOn = ({ endedForMs }: ContainerAccount): boolean => endedForMs === undefined;
const keyOf = ({ name, usage }: ContainerAccount): string => `${usage.device} ${name}`;

/** Whether a process of another pod uses the device beside its holders. A read from before their time shows the processes of the holders of then. */
const hasStrangers = ({ strangers = [], current }: UsedDevice, parts: readonly HolderShare[]): boolean =>
  strangers.length > 0 && current !== undefined && parts.every(({ account }) => current.startedMs >= account.countedFromAtMs);
