import type { Allocation } from '../model/allocation.ts';
import { hardwareKey, KnownHardware } from '../model/hardware.ts';
import type { Verdict } from '../model/health.ts';
import { KeptStep, keptList } from '../model/kept.ts';
import { podName } from '../model/pod-resources.ts';
import type { DeviceUsage, Usage } from '../model/usage.ts';
import {
  type ContainerAccount,
  charge,
  delegate,
  type EndedAccount,
  giveUpWaiting,
  type Moment,
  openAccount,
  renameDevice,
  seeRun,
  stepAge,
  stepEnded,
  usageOf,
  withFaults,
} from './container-account.ts';
import { type DeviceAccount, deviceOf, factsOf, identityOf, openDeviceAccount } from './device-account.ts';
import { type FamilyActivity, OwnReadings } from './device-work.ts';
import { type HeldIds, type Holder, hasMoved, holdersOf, isTaken, type UsageInput, type UsedDevice, withUsers } from './holders.ts';
import { type Held, type HeldPart, takeRead } from './take-read.ts';
import { type AccountsState, restoredAccounts, savedAccounts } from './usage-file.ts';

export interface AccountsSettings {
  /** A longer time between two collections counts as not observed. */
  readonly staleAfterMs: number;
  /** How long a device of an earlier run is awaited. */
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
  /** Time since the last step of that run. */
  readonly gapMs: number;
  /** Monotonic clock of this run to which `gapMs` leads. */
  readonly monotonicMs: number;
  readonly isSameBoot: boolean;
}

/** Time after the end of a container in which its faults still count for it. */
const LATE_FAULT_MS = 60_000;
const NO_USERS: readonly never[] = [];
const NO_HOLDER: Held = { parts: [], isShared: false };

/**
 * Accounts of all devices and of the containers that hold them. Each snapshot is one step. The time between two steps belongs to those who
 * held a device at the first of them. The use in that time is what the next read of the device shows.
 */
export class Accounts {
  #settings: AccountsSettings;
  readonly #isSameBoot: boolean;
  /** Keyed by device. */
  #devices: Map<string, DeviceAccount>;
  /** Accounts that have not ended, keyed by device and container. */
  #active: Map<string, ContainerAccount>;
  #ended: readonly EndedAccount[];
  #endedDevices: readonly EndedAccount<DeviceUsage>[];
  /** Containers that held each device at the last step, keyed by device. */
  #held: ReadonlyMap<string, Held> = new Map();
  /** The devices of the last step with their keys, while each of them, and nothing else, has an account. */
  #met: readonly unknown[] | undefined;
  readonly #holders = new KeptStep<readonly Holder[]>();
  /** At the last step the kubelet's answer was current. */
  #isAnswered = false;
  #answer: { readonly atMs: number; readonly monotonicMs: number } | undefined;
  #steppedMs: number | undefined;
  /** This run has made no step yet. */
  #isFirst = true;

  constructor(settings: AccountsSettings, earlier?: SavedAccounts) {
    this.#settings = settings;
    this.#isSameBoot = earlier?.isSameBoot ?? true;
    this.#steppedMs = earlier === undefined ? undefined : earlier.monotonicMs - earlier.gapMs;
    const { devices, active, ended, endedDevices } = restoredAccounts(earlier?.state, this.#steppedMs ?? 0, this.#isSameBoot);
    this.#devices = devices;
    this.#active = active;
    this.#ended = ended;
    this.#endedDevices = endedDevices;
  }

  /** The last step knew who holds which device. */
  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Families with a container whose counters have no base yet. */
  get awaited(): ReadonlyMap<string, Awaited> {
    const awaited = new Map<string, Awaited>();
    for (const [key, { parts }] of this.#held) {
      for (const { account } of parts) {
        const fromMs = account.counters.awaitedFromMs;
        if (fromMs === undefined) continue;
        const family = key.slice(0, key.indexOf('/'));
        const known = awaited.get(family);
        const ids = (known?.ids ?? new Set()).add(key.slice(family.length + 1));
        awaited.set(family, { ids, fromMs: Math.max(fromMs, known?.fromMs ?? 0) });
      }
    }
    return awaited;
  }

  /** Takes other settings from the next step on. */
  configure(settings: AccountsSettings): void {
    this.#settings = settings;
  }

  /** Takes one snapshot. */
  step(input: UsageInput): Usage {
    const { monotonicMs } = input;
    const ms = Math.max(0, monotonicMs - (this.#steppedMs ?? monotonicMs));
    this.#steppedMs = monotonicMs;
    this.#charge(ms, monotonicMs);
    this.#isAnswered = this.#answeredLately(input);
    this.#meet(input, ms);
    this.#takeFaults(input);
    const before = this.#held;
    if (this.#isAnswered) this.#reconcile(input);
    else this.#keepHolders();
    this.#read(input, before);
    for (const account of this.#active.values()) {
      if (monotonicMs - account.lookedAtMs > this.#settings.staleAfterMs) giveUpWaiting(account);
    }
    this.#isFirst = false;
    return this.#usage(input.devices.map(({ key }) => this.#devices.get(key) as DeviceAccount));
  }

  /** Takes the verdicts of the devices, as they are after the step. */
  judged(verdicts: ReadonlyMap<string, Verdict>): void {
    for (const account of this.#devices.values()) account.isUnhealthy = verdicts.get(account.usage.device)?.state === 'unhealthy';
  }

  /** What a later run of the agent needs. Plain data. */
  state(): AccountsState {
    const all = { devices: this.#devices, active: this.#active, ended: this.#ended, endedDevices: this.#endedDevices };
    return savedAccounts(all, this.#steppedMs ?? 0);
  }

  /** All accounts as the last step left them, also those that an earlier run saved. */
  usage(): Usage {
    return this.#usage([...this.#devices.values()]);
  }

  #charge(ms: number, monotonicMs: number): void {
    const { zeroForMs, lingerMs, staleAfterMs } = this.#settings;
    const isLooking = !this.#isFirst && ms <= staleAfterMs;
    const seconds = ms / 1_000;
    for (const { usage, awaitedMs, isUnhealthy } of this.#devices.values()) {
      const held = this.#held.get(usage.device) ?? NO_HOLDER;
      if (!isLooking || !this.#isAnswered || awaitedMs !== undefined) usage.unobservedSeconds += seconds;
      else if (held.parts.length > 0) usage.allocatedSeconds += seconds;
      else usage.unallocatedSeconds += seconds;
      if (isLooking && isUnhealthy) usage.unhealthySeconds += seconds;
      if (isLooking && this.#isAnswered)
        for (const { account: holder, share, isDelegated } of held.parts)
          isDelegated === true ? delegate(holder, ms, monotonicMs) : charge(holder, ms, share, monotonicMs);
    }
    for (const account of this.#active.values()) stepAge(account, ms, zeroForMs);
    // The last values are unknown while no agent runs, and the ledger may lack them after a kill.
    const shownMs = this.#isFirst ? 0 : ms;
    this.#ended = stepEnded(this.#ended, shownMs, { zeroForMs, lingerMs });
    this.#endedDevices = stepEnded(this.#endedDevices, shownMs, { zeroForMs: 0, lingerMs });
  }

  /** The wall clock may be set, so the monotonic clock of the step that first has an answer gives the answer's age. */
  #answeredLately({ answeredAtMs, monotonicMs }: UsageInput): boolean {
    if (answeredAtMs !== undefined && answeredAtMs !== this.#answer?.atMs) this.#answer = { atMs: answeredAtMs, monotonicMs };
    return this.#answer !== undefined && monotonicMs - this.#answer.monotonicMs <= this.#settings.staleAfterMs;
  }

  /** Opens the accounts of new hardware, and ends those of hardware that is forgotten or replaced. The others follow it to another name. */
  #meet({ devices, nowMs, monotonicMs }: UsageInput, ms: number): void {
    const now = { nowMs, monotonicMs };
    const list = devices.flatMap(({ key, device }) => [key, device]);
    if (this.#met !== undefined && keptList(this.#met, list) === this.#met) return;
    const known = new KnownHardware([...this.#devices.values()].map((account) => ({ account, device: deviceOf(account) })));
    const present = new Map(devices.map(({ key, device }) => [key, hardwareKey(device)]));
    const met = new Map<string, DeviceAccount>();
    const found = new Set<DeviceAccount>();
    for (const { key, device } of devices) {
      const account = known.of(device, present)?.account;
      // Two devices that report the same identity have accounts of their own.
      if (account === undefined || found.has(account)) {
        met.set(key, openDeviceAccount(key, device, nowMs));
        continue;
      }
      found.add(account);
      met.set(key, account);
      account.awaitedMs = undefined;
      account.identity = { ...account.identity, ...identityOf(device) };
      account.facts = factsOf(device);
    }
    for (const account of this.#devices.values()) {
      if (found.has(account)) continue;
      account.awaitedMs = account.awaitedMs === undefined ? Number.POSITIVE_INFINITY : account.awaitedMs + ms;
      const { device } = account.usage;
      if (met.has(device) || account.awaitedMs >= this.#settings.missingRetentionMs) this.#endDevice(account, now);
      else met.set(device, account);
    }
    this.#devices = met;
    this.#met = met.size === devices.length ? list : undefined;
    this.#rename(new Map([...met].flatMap(([key, { usage }]): [string, string][] => (usage.device === key ? [] : [[usage.device, key]]))));
  }

  /** `renamed`: present keys of devices by their earlier ones. Two devices may have swapped their names. */
  #rename(renamed: ReadonlyMap<string, string>): void {
    if (renamed.size === 0) return;
    for (const [key, { usage }] of this.#devices) if (usage.device !== key) renameDevice(usage, key);
    for (const { usage } of this.#active.values()) renameDevice(usage, renamed.get(usage.device) ?? usage.device);
    this.#active = new Map([...this.#active.values()].map((account) => [nameOf(account), account]));
    this.#held = new Map([...this.#held].map(([key, held]) => [renamed.get(key) ?? key, held]));
  }

  #endDevice(account: DeviceAccount, now: Moment): void {
    const { device } = account.usage;
    for (const [name, { usage }] of this.#active) if (usage.device === device) this.#end(name, now);
    this.#held = new Map([...this.#held].filter(([key]) => key !== device));
    const usage = { ...account.usage, ...account.facts, endedAtMs: now.nowMs };
    this.#endedDevices = [...this.#endedDevices, { usage, ageMs: 0, endedForMs: 0 }];
  }

  /** Makes the accounts follow the kubelet's answer. */
  #reconcile({ devices, nowMs, monotonicMs, uidOf }: UsageInput): void {
    const now = { nowMs, monotonicMs };
    const podOf = this.#podsByUid();
    // The checkpoint can be older than the answer. It may then name the pod from which the device came.
    const ownUid = (allocation: Allocation): string | undefined => {
      const uid = uidOf(allocation);
      return uid === undefined || (podOf.get(uid) ?? podName(allocation)) === podName(allocation) ? uid : undefined;
    };
    const held = new Map<string, readonly HeldPart[]>();
    const idsOf = new Map<string, HeldIds>();
    for (const { key, holders, users = NO_USERS, delegating = NO_USERS, processes } of devices) {
      if (holders.length + users.length === 0) continue;
      const found = this.#holders.of(key, [holders, users, delegating, ...holders.map(ownUid)], () =>
        withUsers(holdersOf(holders, ownUid), { users, delegating }),
      );
      const parts = found.map((holder): HeldPart => {
        const { share, isDelegated } = holder;
        const account = this.#accountOf(`${key} ${holder.name}`, holder, key, now);
        return { account, share, ...(isDelegated && { isDelegated }) };
      });
      held.set(key, parts);
      if (processes.length > 0) for (const { account } of parts) seeRun(account, runOf(processes, account.usage.uid, parts), nowMs);
      idsOf.set(key, found.length === 1 ? (found[0] as Holder).ids : Object.assign({}, ...found.map(({ ids }) => ids)));
    }
    this.#holders.end();
    const absent = this.#absent(held, idsOf, now);
    const withOthers = new Set(
      devices.flatMap((one) => (one.users !== undefined || hasStrangers(one, held.get(one.key) ?? []) ? [one.key] : [])),
    );
    this.#held = new Map(
      [...held].map(([key, parts]) => [key, { parts, isShared: parts.length > 1 || absent.has(key) || withOthers.has(key) }]),
    );
    for (const { parts, isShared } of this.#held.values()) {
      for (const { account } of parts) isShared ? account.counters.share() : account.counters.hold(monotonicMs);
    }
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
  #absent(held: ReadonlyMap<string, readonly HeldPart[]>, idsOf: ReadonlyMap<string, HeldIds>, now: Moment): ReadonlySet<string> {
    const answeredMs = (this.#answer as { readonly monotonicMs: number }).monotonicMs;
    const present = new Set<ContainerAccount>();
    for (const parts of held.values()) for (const { account } of parts) present.add(account);
    const absent = new Set<string>();
    for (const [name, account] of this.#active) {
      const { device } = account.usage;
      // Before the first collection of the probe, the holder of a device of the earlier run is unknown.
      const isDecided = !account.isAwaited || this.#devices.get(device)?.awaitedMs === undefined;
      if (present.has(account) || !isDecided) continue;
      account.absentFromMs ??= answeredMs;
      const isOver = answeredMs - account.absentFromMs >= this.#settings.absentForMs;
      if (isOver || isTaken(account.ids, idsOf.get(device) ?? {}) || hasMoved(device, account.ids, idsOf)) this.#end(name, now);
      else {
        absent.add(device);
        if (held.has(device)) account.counters.share();
      }
    }
    return absent;
  }

  /** A pod whose UID becomes known later has the account of its names. Another UID is another pod. */
  #accountOf(name: string, holder: Holder, key: string, now: Moment): ContainerAccount {
    const known = this.#active.get(name);
    if (known !== undefined) {
      const { uid } = known.usage;
      const isNamed = uid === undefined || holder.uid === undefined;
      const isSame = isNamed ? !known.isAwaited || this.#isSameBoot || uid !== undefined : uid === holder.uid;
      if (isSame) {
        if (holder.uid !== undefined) known.usage.uid ??= holder.uid;
        known.ids = holder.ids;
        known.absentFromMs = undefined;
        if (known.isAwaited) goOn(known, now.monotonicMs);
        return known;
      }
      this.#end(name, now);
    }
    const account = openAccount(holder, key, now);
    this.#active.set(name, account);
    return account;
  }

  /** While the kubelet does not answer, no more is known. */
  #keepHolders(): void {
    const isActive = ({ account }: HeldPart): boolean => this.#active.get(nameOf(account)) === account;
    this.#held = new Map([...this.#held].map(([key, { parts, isShared }]) => [key, { parts: parts.filter(isActive), isShared }]));
  }

  #end(name: string, { nowMs, monotonicMs }: Moment): void {
    const account = this.#active.get(name) as ContainerAccount;
    this.#active.delete(name);
    giveUpWaiting(account);
    account.counters.share();
    const usage = { ...usageOf(account), endedAtMs: nowMs - Math.max(0, monotonicMs - account.seenAtMs) };
    const device = this.#devices.get(usage.device);
    if (device !== undefined && usage.uid !== undefined) device.former = { uid: usage.uid, pod: podName(usage) };
    this.#ended = [...this.#ended, { usage, ageMs: account.ageMs, endedForMs: 0 }];
  }

  /** A fault can be the end of its container, so it counts before the account ends. */
  #takeFaults({ devices, faultsOf }: UsageInput): void {
    if (faultsOf === undefined) return;
    const named = new Map(devices.map(({ key, device }) => [key, device]));
    for (const { name, usage, counters } of this.#active.values()) {
      const device = named.get(usage.device);
      if (device !== undefined) counters.assign(faultsOf(device, name, usage.uid));
    }
    // The last fault of a container can be read after its end.
    this.#ended = this.#ended.map((one) => {
      const { device: key, uid, namespace, pod, container } = one.usage;
      const name = `${namespace}/${pod}/${container}`;
      const device = named.get(key);
      if (one.endedForMs >= LATE_FAULT_MS || device === undefined || uid === undefined || this.#active.has(`${key} ${name}`)) return one;
      return withFaults(one, faultsOf(device, name, uid));
    });
  }

  #read(input: UsageInput, before: ReadonlyMap<string, Held>): void {
    const own = new OwnReadings(input.containerReadings);
    for (const device of input.devices) {
      const held = this.#held.get(device.key) ?? NO_HOLDER;
      const wasShared = before.get(device.key)?.isShared === true;
      if (!held.isShared)
        for (const { account } of held.parts) account.counters.take(device.readings, device.current?.startedMs, this.#settings.isCounter);
      takeRead(this.#devices.get(device.key) as DeviceAccount, { device, held, wasShared, own }, input, this.#settings);
    }
  }

  #usage(devices: readonly DeviceAccount[]): Usage {
    return {
      containers: [...Array.from(this.#active.values(), usageOf), ...this.#ended.map(({ usage }) => usage)],
      devices: [...devices.map(({ usage }) => ({ ...usage })), ...this.#endedDevices.map(({ usage }) => usage)],
    };
  }
}

const nameOf = ({ name, usage }: ContainerAccount): string => `${usage.device} ${name}`;

/** Whether a process of another pod uses the device beside its holders. A read from before their time shows the processes of the holders of then. */
const hasStrangers = ({ strangers = [], current }: UsedDevice, parts: readonly HeldPart[]): boolean =>
  strangers.length > 0 && current !== undefined && parts.every(({ account }) => current.startedMs >= account.countedFromAtMs);

/** The one container of a pod whose processes use the device; undefined when there is none, or several. */
function runOf(processes: UsedDevice['processes'], uid: string | undefined, parts: readonly HeldPart[]): string | undefined {
  if (uid === undefined || parts.filter(({ account }) => account.usage.uid === uid).length > 1) return undefined;
  const ids = new Set(processes.flatMap(({ podUid, containerId }) => (podUid === uid ? (containerId ?? []) : [])));
  const [only] = ids;
  return ids.size === 1 ? only : undefined;
}

/** The account of the earlier run goes on from now. */
function goOn(account: ContainerAccount, monotonicMs: number): void {
  account.isAwaited = false;
  account.countedFromAtMs = monotonicMs;
  account.lookedAtMs = monotonicMs;
  account.observedAtMs = monotonicMs;
  account.seenAtMs = monotonicMs;
  giveUpWaiting(account);
}
