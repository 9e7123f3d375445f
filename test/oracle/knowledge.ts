import type { ConditionSpec } from '../../src/model/health.ts';
import type { Fault, OracleFamily } from './family.ts';
import type { OracleNode } from './node.ts';
import { INTERVAL_MS, SLACK_MS, STALE_MS } from './node.ts';

/** A device whose hanging read returned is read again within a minute. */
const RELEASE_MS = 60_000;
/** Two deadlines: other devices may be unread for this time after a read starts to hang. */
const HANG_MS = 30_000;

/** Longest recovery of the conditions that a blinding may raise. */
const LONGEST_RECOVERY_MS = 60_000;
/** After this time, state without an event is on disk. */
const WRITTEN_MS = 45_000;

/** Visibility of one fault in one collection: surely seen present, surely seen absent, possibly seen, or not visible. */
type ReadFreshness = 'true' | 'false' | 'unsure' | 'hidden';

/** What the agent must or may know about one fault of one device. */
class FaultKnowledge {
  readonly fault: Fault;
  readonly spec: ConditionSpec;
  /** The device of the same identity that has the fault, and whose files show it. */
  readonly of: string | undefined;
  isPresent = false;
  wasEverPresent = false;
  /** The device has the other value of a compared fault. */
  isOther = false;
  /** The log has records of hardware that was here before. */
  wasOfAnother = false;
  /** Monotonic time of the last change of the fault. */
  changedMs = Number.NEGATIVE_INFINITY;
  /** Since then every collection could have seen it. */
  visibleFromMs: number | undefined;
  /** Until then its files may not be read yet, although they are there again. */
  unreadUntilMs = Number.NEGATIVE_INFINITY;
  /** The condition must count: it was seen for long enough and is not yet cleared. */
  isRaised = false;
  #trueFromMs: number | undefined;
  #maybeFalseFromMs: number | undefined;
  #falseFromMs: number | undefined;
  /** Time at which the fault was first surely seen absent. */
  #soundFromMs: number | undefined;
  /** The condition must not count: the fault was surely seen absent for long enough. */
  isCleared = true;
  /** The hardware was replaced and surely read since, and never had the fault. */
  isFresh = false;

  constructor(fault: Fault, spec: ConditionSpec, of?: string) {
    this.fault = fault;
    this.spec = spec;
    this.of = of;
  }

  look(sight: ReadFreshness, nowMs: number): void {
    const { forMs = 0, recoveryMs = 0 } = this.spec;
    // The agent may see more than expected.
    if (this.isPresent) this.isCleared = this.isFresh = false;
    if (sight === 'false') this.#soundFromMs ??= nowMs;
    if (sight === 'true') {
      this.isCleared = false;
      if (this.fault.isFromPast && this.#soundFromMs === undefined) return;
      this.#trueFromMs ??= nowMs;
      this.#falseFromMs = this.#maybeFalseFromMs = undefined;
      this.isCleared = false;
      if (nowMs - this.#trueFromMs >= (forMs === 0 ? 0 : forMs + INTERVAL_MS + SLACK_MS)) this.isRaised = true;
      return;
    }
    this.#trueFromMs = undefined;
    if (sight === 'hidden') {
      this.#falseFromMs = undefined;
      return;
    }
    this.isCleared &&= sight === 'false' || !this.wasEverPresent;
    if (sight === 'unsure') {
      this.#falseFromMs = undefined;
      this.#maybeFalseFromMs ??= nowMs;
    } else {
      this.#falseFromMs ??= nowMs;
      this.#maybeFalseFromMs ??= nowMs;
    }
    if (this.fault.recovery === 'never') return;
    if (nowMs - this.#maybeFalseFromMs >= recoveryMs - SLACK_MS) this.isRaised = false;
    if (this.#falseFromMs !== undefined && nowMs - this.#falseFromMs >= recoveryMs + 2 * INTERVAL_MS) this.isCleared = true;
  }

  /** Unwritten state is lost: hold and quiet times restart, and a recent past is forgotten. */
  restarted(nowMs: number): void {
    if (this.#soundFromMs !== undefined && nowMs - this.#soundFromMs < WRITTEN_MS) this.#soundFromMs = undefined;
    this.#trueFromMs = undefined;
    this.#falseFromMs = undefined;
    this.logIsReadAnew();
  }

  /** The agent remembers nothing: a fault that it can see only by comparison is not one until it ends and begins again. */
  forgotten(): void {
    this.isRaised = false;
    this.isFresh = false;
    this.#soundFromMs = this.#maybeFalseFromMs = undefined;
  }

  /** Other hardware, which has no fault, took the place. Until a collection has seen it, the agent may tell of the hardware before. */
  replaced(nowMs: number): void {
    this.forgotten();
    this.restarted(nowMs);
    this.wasOfAnother ||= this.wasEverPresent;
    this.isPresent = this.wasEverPresent = this.isCleared = this.isOther = false;
    this.changedMs = nowMs;
  }

  /** The condition begins or ends to hold. */
  changed(isPresent: boolean, nowMs: number): void {
    this.isPresent = isPresent;
    this.wasEverPresent ||= isPresent;
    this.changedMs = nowMs;
    // A log also reports faults that have already ended.
    if (isPresent && this.fault.endShownBy !== undefined) this.isCleared = false;
  }

  /** A collection surely read the new hardware. It may have had the fault since it came. */
  seenNew(): void {
    this.isCleared = this.isFresh = !this.wasEverPresent;
  }

  /** A device begins with what is remembered of its identity. */
  inherited({ isRaised, isCleared, wasEverPresent }: Pick<FaultKnowledge, 'isRaised' | 'isCleared' | 'wasEverPresent'>): void {
    this.isRaised = isRaised;
    this.isCleared &&= isCleared;
    this.wasEverPresent ||= wasEverPresent;
  }

  /** A log that is read again reports the fault again, so its end must be seen again. Its records name the place, not the hardware. */
  logIsReadAnew(): void {
    if (this.fault.endShownBy === undefined || !(this.wasEverPresent || this.wasOfAnother)) return;
    this.isCleared = this.isFresh = false;
  }
}

const isSame = (a: FaultKnowledge, b: FaultKnowledge): boolean => a.fault.name === b.fault.name && a.fault.condition === b.fault.condition;

const raises = ({ condition, alsoRaises = [] }: Fault, type: string): boolean => condition === type || alsoRaises.includes(type);

/** True state of one device, and what the agent could see of it. */
class DeviceKnowledge {
  readonly id: string;
  readonly faults: readonly FaultKnowledge[];
  /** Whether the latest collection read it. */
  reading: 'read' | 'unread' | 'unsure' = 'unread';
  /** Last time at which a collection may have read it, and surely read it. */
  maybeReadMs = Number.NEGATIVE_INFINITY;
  surelyReadMs = Number.NEGATIVE_INFINITY;
  /** Since then every collection read it. */
  surelyReadFromMs: number | undefined;
  /** Since then every collection read it completely and without faults. */
  soundFromMs: number | undefined;
  isGone = false;
  /** It appeared beside hardware of its identity, so that a read of that one may be one of its own. */
  joinedMs = Number.NEGATIVE_INFINITY;
  /** Other hardware took its place, and no collection surely read it since. */
  isReplaced = false;
  /** A collection since its first one may have read its state. */
  wasMaybeReached = false;
  /** Its present name. */
  name: string;
  /** It was renamed or replaced, and no collection surely read it since. */
  isChanged = false;
  /** A collection may have seen that it is absent. */
  wasMaybeSeenGone = false;
  /** It was unread for the stale age, and no collection may have read it since. A restart is not a collection. */
  isBlind = false;
  /** It hung when an agent that knew of it ended, and no collection may have read it since. */
  isWithoutGrace = false;

  constructor(id: string, faults: readonly FaultKnowledge[]) {
    this.id = id;
    this.name = id;
    this.faults = faults;
  }
}

/** A blinding in progress. */
export interface ActiveBlinding {
  readonly layer: string;
  readonly blinding: OracleFamily['blindings'][number];
  readonly device: string;
  readonly blindFromMs: number;
  /** Since then a collection could meet it. */
  fromMs: number;
  /** Time of the latest collection that another blinding may have stopped before this one. */
  hiddenUntilMs?: number;
}

/** Growth of a counter at one collection. */
interface Look {
  readonly atMs: number;
  readonly moved: number;
}

/** A pod that holds a device, and the growth of the counter during that time. */
interface Holding {
  readonly pod: string;
  readonly device: string;
  readonly fromMs: number;
  moved: number;
  /** Growth before the first collection that surely began after the agent had seen the pod. */
  beforeBase: number;
  hasBase: boolean;
  /** Growth up to the last collection after which the counter was surely read. */
  movedAtRead: number;
  /** Growth at each collection since one that is followed by collections which all could read the counter. */
  looks: readonly Look[];
}

/**
 * The true state, and a simple model of what the agent can know about it. The model does not depend on the implementation of the agent.
 * It uses only the facts, their visibility in each collection, and the times of the policy.
 */
export class Knowledge {
  readonly devices: readonly DeviceKnowledge[];
  readonly blindings = new Map<string, ActiveBlinding>();
  readonly holdings: Holding[] = [];
  readonly #family: OracleFamily;
  readonly #node: OracleNode;
  /** End of the last hang, keyed by device id. */
  #releasedMs = new Map<string, number>();
  #hangFromMs = Number.NEGATIVE_INFINITY;
  /** Growth of the counter of each device since the begin, and at each collection, keyed by its time. */
  readonly #moved = new Map<string, number>();
  readonly #movedAt = new Map<number, ReadonlyMap<string, number | undefined>>();
  /** The last value of the counter of each device that the agent told. */
  readonly #told = new Map<string, { readonly value: number; readonly atMs: number }>();
  #startedMs = 0;
  /** No file can be opened. Reads of files that are already open are not modelled. */
  isWithoutDescriptors = false;

  constructor(family: OracleFamily, node: OracleNode) {
    this.#family = family;
    this.#node = node;
    const specs = new Map(family.family.conditions.map((spec) => [spec.type, spec]));
    const faultsOf = (id: string): readonly Fault[] => [
      ...family.faults.filter(({ devices = [id] }) => devices.includes(id)),
      ...family.faults.flatMap((fault) =>
        (fault.shadows ?? []).filter(({ device }) => device === id).map(({ condition }): Fault => ({ ...fault, condition })),
      ),
    ];
    const known = (fault: Fault, of?: string): FaultKnowledge => new FaultKnowledge(fault, specs.get(fault.condition) as ConditionSpec, of);
    this.devices = family.devices.map(({ id }) => {
      const shared = this.#sameAs(id).flatMap((other) => faultsOf(other).map((fault) => known(fault, other)));
      return new DeviceKnowledge(id, [...faultsOf(id).map((fault) => known(fault)), ...shared]);
    });
  }

  /** Devices that may tell the identity of a device. */
  #sameAs(id: string): readonly string[] {
    return (this.#family.duplicates ?? []).flatMap(({ isIdentity, first, second }) => {
      const at = Math.max(first.indexOf(id), second.indexOf(id));
      return isIdentity && at >= 0 ? [first[at], second[at]].filter((other) => other !== undefined && other !== id) : [];
    }) as readonly string[];
  }

  get #nowMs(): number {
    return this.#node.clock.monotonic();
  }

  device(id: string): DeviceKnowledge {
    return this.devices.find((device) => device.id === id) as DeviceKnowledge;
  }

  faultBegan(id: string, name: string, isPresent: boolean): void {
    for (const device of this.devices) {
      const isConcerned = ({ fault, of = device.id }: FaultKnowledge): boolean =>
        fault.name === name && (of === id || (fault.shadows ?? []).some((shadow) => shadow.device === of));
      for (const known of device.faults.filter(isConcerned)) {
        if (known.fault.isCompared) known.isOther = isPresent;
        else known.changed(isPresent, this.#nowMs);
      }
    }
    this.#compare();
  }

  /** A condition that is compared holds on each device of the machine whose value is not the only most frequent one of these devices. */
  #compare(): void {
    const compared = this.#family.faults.filter(({ isCompared }) => isCompared);
    for (const condition of new Set(compared.map((fault) => fault.condition))) {
      const faultsOf = ({ faults }: DeviceKnowledge) => faults.filter(({ fault }) => fault.isCompared && fault.condition === condition);
      const tellsOf = (device: DeviceKnowledge): string => this.#valueOf(device, condition);
      const values = this.devices.filter(({ isGone }) => !isGone).map(tellsOf);
      const countOf = (value: string): number => values.filter((other) => other === value).length;
      for (const device of this.devices) {
        for (const known of faultsOf(device)) {
          const shownBy = this.device(known.of ?? device.id);
          if (shownBy.isGone) continue;
          const own = tellsOf(shownBy);
          const differs = values.some((value) => value !== own && countOf(value) >= countOf(own));
          if (differs !== known.isPresent) known.changed(differs, this.#nowMs);
        }
      }
    }
  }

  blindingBegan(active: ActiveBlinding): void {
    this.blindings.set(active.layer, active);
    if (active.blinding.hangs) this.#hangFromMs = this.#nowMs;
    if (active.blinding.leaves === 'gone') for (const { id } of this.#concerned(active)) this.device(id).isGone = true;
    this.#compare();
  }

  blindingEnded(layer: string): void {
    const active = this.blindings.get(layer) as ActiveBlinding;
    this.blindings.delete(layer);
    if (active.blinding.hangs) for (const { id } of this.#concerned(active)) this.#releasedMs.set(id, this.#nowMs);
    this.#delay(active);
    for (const { id } of this.#concerned(active)) {
      const isHidden = (path: string): boolean => active.blinding.hides(id).includes(path);
      for (const known of this.device(id).faults) if (known.fault.shownBy(id).some(isHidden)) known.logIsReadAnew();
    }
    if (active.blinding.leaves !== 'gone') return;
    for (const { id } of this.#concerned(active)) {
      this.device(id).isGone = this.#blindingsOf(id).some(({ blinding }) => blinding.leaves === 'gone');
    }
    this.#compare();
  }

  #delay(active: ActiveBlinding): void {
    const { returnsMs, hides } = active.blinding;
    if (returnsMs === undefined) return;
    const ids = this.#concerned(active).map(({ id }) => id);
    for (const { id, faults } of this.devices) {
      for (const known of faults) {
        const shownAt = known.of ?? id;
        if (ids.includes(shownAt) && known.fault.shownBy(shownAt).some((file) => hides(shownAt).includes(file)))
          known.unreadUntilMs = this.#nowMs + returnsMs;
      }
    }
  }

  /** Devices of a duplicate that were absent appear. A fatal error of the other one that does not end is remembered of their identity. */
  joined(ids: readonly string[]): void {
    for (const device of ids.map((id) => this.device(id))) {
      if (this.#sameAs(device.id).length > 0) device.joinedMs = this.#nowMs;
      for (const known of device.faults) {
        const own = this.devices.find(({ id }) => id === known.of)?.faults.find((one) => one.of === undefined && isSame(one, known));
        const isNew = device.maybeReadMs === Number.NEGATIVE_INFINITY && known.fault.recovery === 'never';
        if (own === undefined || !isNew) continue;
        // What cannot be read does not tell its identity.
        const isUnread = this.#blindingsOf(device.id).some(({ blinding }) => blinding.leaves === 'unread');
        known.inherited(isUnread ? { isRaised: false, isCleared: false, wasEverPresent: own.wasEverPresent } : own);
      }
    }
  }

  /** Whether the latest collection surely read all of them. */
  wereSeen(ids: readonly string[]): boolean {
    return ids.every((id) => this.device(id).surelyReadFromMs !== undefined && !this.#isUnsettled(id));
  }

  /** `wasRunning`: an agent ran until now, so that long hangs are saved on disk. */
  restarted(wasRunning: boolean): void {
    for (const active of wasRunning ? this.blindings.values() : []) {
      const hiddenUntilMs = Math.max(this.#startedMs, active.hiddenUntilMs ?? active.fromMs);
      const hangsForMs = this.#nowMs - hiddenUntilMs - (active.blinding.paceMs ?? 0);
      if (!active.blinding.hangs || hangsForMs < HANG_MS) continue;
      for (const { id } of this.#concerned(active)) this.device(id).isWithoutGrace = true;
    }
    this.#startedMs = this.#nowMs;
    for (const device of this.devices) {
      device.soundFromMs = undefined;
      for (const fault of device.faults) fault.visibleFromMs = undefined;
    }
    for (const { faults } of this.devices) for (const fault of faults) fault.restarted(this.#nowMs);
    // Counters of holders restart with the agent.
    for (const holding of this.holdings) {
      holding.moved = 0;
      holding.beforeBase = 0;
      holding.movedAtRead = 0;
      holding.hasBase = false;
      holding.looks = [];
    }
    this.#told.clear();
  }

  nameOf(id: string): string {
    return this.device(id).name;
  }

  renamed(id: string, name: string): void {
    this.device(id).name = name;
    this.device(id).isChanged = true;
    // A read that hangs is found anew under the other name.
    for (const active of this.#blindingsOf(id).filter(({ blinding }) => blinding.hangs)) {
      this.#hangFromMs = this.#nowMs;
      for (const { id: concerned } of this.#concerned(active)) this.#releasedMs.set(concerned, this.#nowMs);
    }
  }

  /** `name`: the name of the other hardware; absent when it has the same name. */
  replaced(id: string, name?: string): void {
    const device = this.device(id);
    if (name !== undefined) {
      device.maybeReadMs = device.surelyReadMs = Number.NEGATIVE_INFINITY;
      device.surelyReadFromMs = undefined;
      device.isBlind = device.isWithoutGrace = device.wasMaybeSeenGone = false;
    }
    device.isReplaced = true;
    device.wasMaybeReached = false;
    device.soundFromMs = undefined;
    for (const fault of device.faults) fault.replaced(this.#nowMs);
    this.#compare();
    // The account of the hardware before ends, and another one begins at the first read of this hardware.
    for (const holding of this.holdings) {
      if (holding.device !== id) continue;
      holding.hasBase = false;
      holding.looks = [];
    }
    this.#told.delete(id);
    this.renamed(id, name ?? device.name);
  }

  /** The state file is gone. */
  forgotten(): void {
    for (const device of this.devices) {
      device.maybeReadMs = device.surelyReadMs = Number.NEGATIVE_INFINITY;
      device.surelyReadFromMs = undefined;
      device.isBlind = device.isWithoutGrace = device.wasMaybeReached = false;
      for (const fault of device.faults) fault.forgotten();
    }
  }

  podStarted(pod: string, device: string): void {
    this.holdings.push({ pod, device, fromMs: this.#nowMs, moved: 0, beforeBase: 0, movedAtRead: 0, hasBase: false, looks: [] });
  }

  podEnded(pod: string): void {
    const at = this.holdings.findIndex((holding) => holding.pod === pod);
    if (at >= 0) this.holdings.splice(at, 1);
  }

  moved(device: string, by: number): void {
    this.#moved.set(device, (this.#moved.get(device) ?? 0) + by);
    for (const holding of this.holdings) if (holding.device === device) holding.moved += by;
  }

  #concerned({ blinding, device }: ActiveBlinding): readonly { readonly id: string }[] {
    if (blinding.concerns !== undefined) return blinding.concerns.map((id) => ({ id }));
    return blinding.scope === 'family' ? this.devices : [{ id: device }];
  }

  /** Whether a readable device may be unread for a short time: after the begin of any hang, or after the end of its own. */
  #isUnsettled(id: string): boolean {
    return this.#nowMs - this.#hangFromMs < HANG_MS || this.#nowMs - (this.#releasedMs.get(id) ?? Number.NEGATIVE_INFINITY) < RELEASE_MS;
  }

  /** Whether another blinding may stop a collection before this one. */
  #isBehindOthers(active: ActiveBlinding): boolean {
    const others = this.#concerned(active).flatMap(({ id }) => this.#blindingsOf(id).filter((other) => other !== active));
    return this.isWithoutDescriptors || others.some(({ blinding }) => blinding.leaves !== 'read');
  }

  /** Whether looks have surely come across it by now. */
  #isFound({ blinding: { paceMs = 0 }, fromMs }: ActiveBlinding): boolean {
    return this.#nowMs - fromMs >= paceMs;
  }

  #blindingsOf(id: string): readonly ActiveBlinding[] {
    return [...this.blindings.values()].filter(({ blinding: { scope, concerns }, device }) =>
      scope === 'family' ? (concerns?.includes(id) ?? true) : device === id,
    );
  }

  #freshnessOf(id: string, known: FaultKnowledge): ReadFreshness {
    const sight = this.#visibilityOf(id, known);
    known.visibleFromMs = sight === undefined ? (known.visibleFromMs ?? this.#nowMs) : undefined;
    if (sight !== undefined) return sight;
    const settledFromMs = Math.max(known.changedMs, known.visibleFromMs as number);
    if (this.#nowMs - settledFromMs < (known.fault.paceMs ?? 0)) return 'unsure';
    return known.isPresent ? 'true' : 'false';
  }

  /** A fault of another device is one of this device while both are read, and until the other one leaves. */
  #sharedSightOf(device: DeviceKnowledge, known: FaultKnowledge, of: string): ReadFreshness {
    const sight = this.#freshnessOf(of, known);
    // Then some reads of this device deny the fault, and others say nothing of it.
    if (this.device(of).isGone) known.isRaised = false;
    const readings = [device.reading, this.device(of).reading];
    return readings.includes('unread') ? 'hidden' : readings.includes('unsure') ? 'unsure' : sight;
  }

  /** At its start an agent treats a device as just read, unless it knows that the device hung. */
  #isUnreadForLong({ maybeReadMs, joinedMs, isWithoutGrace }: DeviceKnowledge): boolean {
    const readMs = Math.max(maybeReadMs, joinedMs);
    const fromMs = isWithoutGrace ? readMs : Math.max(readMs, this.#startedMs);
    return this.#nowMs - fromMs >= STALE_MS + INTERVAL_MS + SLACK_MS;
  }

  /** Whether a fault of a device hides one of the files, other than the fault that is looked for. */
  #isHiddenByFault(id: string, files: readonly string[], name?: string): boolean {
    return this.device(id).faults.some(
      ({ fault, isPresent, of }) =>
        isPresent && of === undefined && fault.name !== name && fault.hides?.(id).some((file) => files.includes(file)) === true,
    );
  }

  /** Whether the value that tells its end has the value of another fault of its group. */
  #isEndHidden(id: string, { fault, isPresent }: FaultKnowledge): boolean {
    if (isPresent || fault.endShownBy === undefined || fault.group === undefined) return false;
    return this.device(id).faults.some((other) => other.isPresent && other.of === undefined && other.fault.group === fault.group);
  }

  /** Undefined when the fault or its absence is visible. */
  #visibilityOf(id: string, known: FaultKnowledge): 'hidden' | 'unsure' | undefined {
    const { fault, isPresent, unreadUntilMs } = known;
    const files = (isPresent ? fault.shownBy : (fault.endShownBy ?? fault.shownBy)).call(fault, id);
    if (this.#isHiddenByFault(id, files, fault.name) || this.#isEndHidden(id, known)) return 'hidden';
    const hiding = this.#blindingsOf(id).filter(({ blinding }) => blinding.hides(id).some((file) => files.includes(file)));
    const mayShow = !isPresent && hiding.every(({ blinding }) => files.every((file) => blinding.mayShow?.(id).includes(file)));
    if (!mayShow && hiding.some((active) => this.#isFound(active))) return 'hidden';
    if (hiding.length > 0 || this.#nowMs < unreadUntilMs) return 'unsure';
    return this.isWithoutDescriptors || this.#isUnsettled(id) ? 'unsure' : this.#comparisonOf(id, fault);
  }

  /** Whether a compared fault is open, because devices whose value is hidden may have any. */
  #comparisonOf(id: string, fault: Fault): 'hidden' | 'unsure' | undefined {
    if (!fault.isCompared) return undefined;
    const present = this.devices.filter(({ isGone }) => !isGone);
    const hidingOf = (other: string): readonly ActiveBlinding[] =>
      this.#blindingsOf(other).filter(({ blinding }) => blinding.hides(other).some((file) => fault.shownBy(other).includes(file)));
    const isUnseen = (other: string): boolean =>
      hidingOf(other).length > 0 || this.#isHiddenByFault(other, fault.shownBy(other), fault.name);
    const unseen = present.filter((device) => device.id !== id && isUnseen(device.id));
    const tellsOf = (device: DeviceKnowledge): string => this.#valueOf(device, fault.condition);
    const values = present.filter((device) => !unseen.includes(device)).map(tellsOf);
    const own = tellsOf(this.device(id));
    const countOf = (value: string): number => values.filter((other) => other === value).length;
    const most = Math.max(0, ...values.filter((value) => value !== own).map(countOf));
    if (countOf(own) > most + unseen.length || countOf(own) + unseen.length <= most) return undefined;
    // A device that is not read may still tell its value.
    return unseen.some((device) => hidingOf(device.id).every(({ blinding }) => blinding.leaves === 'read')) ? 'hidden' : 'unsure';
  }

  /** Names of the compared faults that a device has. */
  #valueOf({ faults }: DeviceKnowledge, condition: string): string {
    return faults
      .flatMap(({ fault, of, isOther }) => (fault.condition === condition && of === undefined && isOther ? [fault.name] : []))
      .join();
  }

  /** Must be called after each refresh, successful or not. `failed`: the run failed by itself. */
  looked(failed: boolean): void {
    const nowMs = this.#nowMs;
    const isThreadReplaced = failed || [...this.blindings.values()].some(({ blinding }) => blinding.hangs);
    // Without descriptors the agent cannot meet a hanging file.
    for (const active of this.blindings.values()) if (this.#isBehindOthers(active)) active.hiddenUntilMs = nowMs;
    for (const active of this.blindings.values()) {
      const isAbsent = this.#concerned(active).some(({ id }) => this.device(id).isGone);
      if (active.blinding.paceMs !== undefined && (this.isWithoutDescriptors || isAbsent)) active.fromMs = nowMs;
    }
    for (const device of this.devices) {
      const own = this.#blindingsOf(device.id);
      const unread = own.filter(
        (active) => active.blinding.leaves === 'unread' && this.#concerned(active).some(({ id }) => id === device.id),
      );
      // Nothing more is read of a device that its driver does not show.
      const isBehindFault = ({ blinding }: ActiveBlinding): boolean =>
        blinding.hides(device.id).every((file) => this.#isHiddenByFault(device.id, [file]));
      const isUnread = failed || device.isGone || unread.some((active) => this.#isFound(active) && !isBehindFault(active));
      const isHidden = device.faults.some(({ fault, isPresent }) => isPresent && fault.hides !== undefined);
      // The name of hardware that its driver never showed is unknown. In its place the agent knows the name of the hardware before it.
      const isNameless = isHidden && device.isReplaced && device.name !== device.id;
      const isUnsure = isNameless || this.isWithoutDescriptors || unread.length > 0 || this.#isUnsettled(device.id);
      if (!isUnread) {
        device.maybeReadMs = nowMs;
        device.isBlind = false;
        device.isWithoutGrace = false;
      }
      const isSilent = own.some(({ blinding }) => blinding.leaves === 'read' && blinding.unknownAfterMs !== undefined);
      if (!isUnread && !isSilent) device.wasMaybeReached = true;
      // A blinding may hide what tells the hardware.
      if (!isUnread && !isUnsure && own.length === 0 && !isHidden && device.isReplaced) {
        device.isReplaced = false;
        for (const fault of device.faults) fault.seenNew();
      }
      if (!isUnread && !isUnsure) {
        device.surelyReadMs = nowMs;
        device.surelyReadFromMs ??= nowMs;
        device.wasMaybeSeenGone = device.isChanged = false;
      } else device.surelyReadFromMs = undefined;
      const isSound = own.length === 0 && device.faults.every(({ isPresent }) => !isPresent);
      device.soundFromMs = isSound && device.surelyReadFromMs !== undefined ? (device.soundFromMs ?? nowMs) : undefined;
      device.isBlind ||= this.#isUnreadForLong(device);
      if (device.isGone) device.wasMaybeSeenGone = true;
      device.reading = isUnread ? 'unread' : isUnsure ? 'unsure' : 'read';
    }
    for (const device of this.devices) {
      for (const fault of device.faults) {
        const sight = fault.of === undefined ? this.#freshnessOf(device.id, fault) : this.#sharedSightOf(device, fault, fault.of);
        fault.look(failed ? 'hidden' : sight, nowMs);
      }
      if (isThreadReplaced) for (const fault of device.faults) fault.logIsReadAnew();
    }
    this.#movedAt.set(
      nowMs,
      new Map(this.devices.map(({ id }) => [id, this.#isCounterHidden(id) ? undefined : (this.#moved.get(id) ?? 0)])),
    );
    const { paceMs = 0 } = this.#family.counter ?? {};
    for (const holding of this.holdings) {
      const device = this.device(holding.device);
      const path = this.#family.counter?.path(device.id) ?? '';
      const isHidden = this.#isCounterHidden(device.id);
      const isRead =
        !isHidden &&
        !this.#isHiddenByFault(device.id, [path]) &&
        device.surelyReadFromMs !== undefined &&
        device.surelyReadMs === nowMs &&
        nowMs > holding.fromMs;
      holding.looks = isRead ? [...holding.looks, { atMs: nowMs, moved: holding.moved }] : [];
      // Between a collection and the one a pace later, one read the counter.
      const past = holding.looks.findLast(({ atMs }) => atMs <= nowMs - paceMs);
      if (past === undefined) continue;
      if (!holding.hasBase) holding.beforeBase = holding.moved;
      holding.hasBase = true;
      holding.movedAtRead = past.moved;
    }
  }

  /** A blinding shows another file in the place of that of the counter, such as a copy, in which nothing moves. */
  #isCounterHidden(id: string): boolean {
    const path = this.#family.counter?.path(id) ?? '';
    return this.#blindingsOf(id).some(({ blinding }) => blinding.hides(id).includes(path));
  }

  /** Contradictions between the model and the state of the agent, one sentence each. */
  violations(): readonly string[] {
    const { snapshot, offered } = this.#node;
    if (snapshot === undefined) return [];
    const found: string[] = [];
    for (const device of this.devices) found.push(...this.#violationsOf(device, snapshot));
    found.push(...this.#strangerViolations(snapshot), ...this.#duplicateViolations(snapshot));
    found.push(...this.#offerViolations(snapshot, offered));
    found.push(...this.#counterViolations(snapshot), ...this.#growthViolations(snapshot));
    return found;
  }

  /** Whether the latest collection surely read it as it is now. */
  #isSeen({ surelyReadMs, isChanged }: DeviceKnowledge): boolean {
    return surelyReadMs === this.#nowMs - INTERVAL_MS && !isChanged;
  }

  #violationsOf(device: DeviceKnowledge, snapshot: NonNullable<OracleNode['snapshot']>): readonly string[] {
    const nowMs = this.#nowMs;
    const { kernelNames, devices } = this.#family;
    const areNamesIds = kernelNames?.areIds === true;
    const { deviceId } = devices.find(({ id }) => id === device.id) as (typeof devices)[number];
    const names = [device.name, this.#family.placeOf?.(device.id)];
    const states = snapshot.devices.filter((one) => (areNamesIds ? one.device.pciAddress === deviceId : names.includes(one.device.id)));
    const isSeen = this.#isSeen(device);
    if (states.length > 1) {
      // While its identity cannot be read, a new name may be that of another device.
      const isGood = states.some((one) => one.verdict.state === 'healthy' || one.verdict.state === 'degraded');
      return isSeen || isGood
        ? [`${device.id} is listed as ${states.map((one) => `${one.device.id} (${one.verdict.state})`).join(' and ')}`]
        : [];
    }
    const [state] = states;
    const raised = device.faults.filter(({ isRaised }) => isRaised);
    if (state === undefined) {
      // Another device may have the name of one that is gone.
      const wasRead = device.surelyReadMs > Number.NEGATIVE_INFINITY && !(device.isGone && device.isChanged);
      return wasRead ? [`${device.id} was read but is no longer listed`] : [];
    }
    const { verdict, missingSinceMs, readAtMs } = state;
    const found: string[] = [];
    const says = `${device.id} is ${verdict.state} (${verdict.conditions.map(({ type, instance }) => [type, instance].filter(Boolean).join('/')).join(', ')})`;
    const fatal = raised.filter(({ spec }) => spec.severity === 'fatal');
    const degraded = raised.filter(({ spec }) => spec.severity === 'degraded');
    if (fatal.length > 0 && verdict.state !== 'unhealthy') found.push(`${says} although ${fatal[0]?.fault.name} was seen last`);
    if (degraded.length > 0 && verdict.state === 'healthy') found.push(`${says} although ${degraded[0]?.fault.name} was seen last`);
    for (const { fault } of raised) {
      if (!verdict.conditions.some(({ type }) => type === fault.condition))
        found.push(`${says}: ${fault.condition} was seen last but does not count`);
    }
    if (!device.wasMaybeReached && isSeen && (verdict.state === 'healthy' || verdict.state === 'degraded'))
      found.push(`${says} although no read ever told its state`);
    const isBlind = device.isBlind || this.#isUnreadForLong(device);
    if (isBlind && (verdict.state === 'healthy' || verdict.state === 'degraded'))
      found.push(`${says} although nothing was read of it since ${device.maybeReadMs} ms`);
    for (const { fault, isCleared, isFresh, spec } of device.faults) {
      const counts = verdict.conditions.some(({ type }) => type === fault.condition);
      const isAlone = device.faults
        .filter((other) => raises(other.fault, fault.condition))
        .every((other) => (other.fault.condition === fault.condition ? other.isCleared : !other.wasEverPresent));
      if (isCleared && isAlone && counts && (isFresh || spec.class !== 'rate'))
        found.push(`${says}: ${fault.condition} counts although it was seen to be over`);
    }
    const isSound = device.soundFromMs !== undefined && nowMs - device.soundFromMs >= LONGEST_RECOVERY_MS + 2 * INTERVAL_MS;
    if (isSound && device.faults.every(({ isCleared }) => isCleared) && verdict.state !== 'healthy')
      found.push(`${says} although it is sound and was read for a minute and a half`);
    for (const { blinding, blindFromMs } of this.#blindingsOf(device.id)) {
      const isGood = verdict.state === 'healthy' || verdict.state === 'degraded';
      const isLate = nowMs - Math.max(blindFromMs, this.#startedMs) >= (blinding.unknownAfterMs ?? Number.POSITIVE_INFINITY);
      const isRead = device.surelyReadFromMs !== undefined && device.surelyReadFromMs <= blindFromMs;
      if (isGood && isLate && isRead) found.push(`${says} although ${blinding.name}`);
    }
    if (isSeen && areNamesIds && state.device.id !== device.name) found.push(`${says} although its name is ${device.name}`);
    if (missingSinceMs !== undefined && !device.isGone && !device.wasMaybeSeenGone)
      found.push(`${says} and missing although it was never gone`);
    const lastReadMs = readAtMs - (this.#node.clock.now() - nowMs);
    // A clock that is set back right before a restart leaves future times. They count as the time of the start at the latest.
    if (lastReadMs > Math.max(device.maybeReadMs, this.#startedMs) + SLACK_MS + INTERVAL_MS)
      found.push(`${says}: last read at ${lastReadMs} ms although nothing was read since ${device.maybeReadMs} ms`);
    return found;
  }

  /** Names that no hardware has, once all hardware was read: each is of hardware that is gone. */
  #strangerViolations({ devices }: NonNullable<OracleNode['snapshot']>): readonly string[] {
    // The agent does not look again at once whether hardware whose read hangs has left.
    const hangs = (id: string): boolean => this.#blindingsOf(id).some(({ blinding }) => blinding.hangs);
    if (!this.devices.every((device) => (device.isGone && !hangs(device.id)) || this.#isSeen(device))) return [];
    const names = new Set(this.devices.flatMap(({ id, name }) => [name, this.#family.placeOf?.(id)]));
    return devices
      .filter(({ device, missingSinceMs }) => !names.has(device.id) && device.parent === undefined && missingSinceMs === undefined)
      .map(({ device, verdict }) => `${device.id} is listed as ${verdict.state} although no hardware has that name`);
  }

  #duplicateViolations({ families }: NonNullable<OracleNode['snapshot']>): readonly string[] {
    // An agent that just started has no problems yet.
    if (this.#startedMs > this.#nowMs - INTERVAL_MS) return [];
    return (this.#family.duplicates ?? []).flatMap(({ first, second, problem }) => {
      const areRead = [...first, ...second].every((id) => this.#isSeen(this.device(id)));
      const isReported = families.some(({ problems }) => problems.some(({ code }) => code === problem));
      return problem !== undefined && areRead && !isReported
        ? [`${first[0]} and ${second[0]} were read, but there is no problem ${problem}`]
        : [];
    });
  }

  #offerViolations(snapshot: NonNullable<OracleNode['snapshot']>, offered: ReadonlyMap<string, string> | undefined): readonly string[] {
    if (offered === undefined) return [];
    // A resource never offers a device together with its parts.
    const divided = new Set(snapshot.devices.filter((state) => state.missingSinceMs === undefined).map(({ device }) => device.parent));
    return snapshot.devices.flatMap(({ device, verdict, missingSinceMs }) => {
      if (divided.has(device.id)) return [];
      const isGood = missingSinceMs === undefined && (verdict.state === 'healthy' || verdict.state === 'degraded');
      const sent = offered.get(device.id);
      const wanted = isGood ? 'Healthy' : 'Unhealthy';
      return sent === wanted ? [] : [`the kubelet gets ${sent} for ${device.id}, but the verdict is ${verdict.state}`];
    });
  }

  /** The growth between two values that the agent tells must be that between the times which it tells of them. */
  #growthViolations({ devices }: NonNullable<OracleNode['snapshot']>): readonly string[] {
    const { counter } = this.#family;
    return devices.flatMap(({ device: { id }, readings, monotonicMs }) => {
      const reading = [...readings].find(({ metric }) => metric === counter?.metric);
      const known = this.devices.find(({ name, isChanged, isReplaced }) => name === id && !isChanged && !isReplaced);
      if (reading === undefined || known === undefined || monotonicMs === undefined || counter === undefined) return [];
      const atMs = reading.readMs ?? monotonicMs;
      const movedAt = (ms: number): number | undefined => this.#movedAt.get(ms)?.get(known.id);
      const value = Number(reading.value) / counter.scale;
      const before = this.#told.get(known.id);
      const [from, to] = [before && movedAt(before.atMs), movedAt(atMs)];
      if (to !== undefined) this.#told.set(known.id, { value, atMs });
      if (before === undefined || from === undefined || to === undefined || Math.abs(value - before.value - (to - from)) < 1e-3) return [];
      return [`${id} tells ${value - before.value} from ${before.atMs} to ${atMs} ms, but ${to - from} moved`];
    });
  }

  #counterViolations(snapshot: NonNullable<OracleNode['snapshot']>): readonly string[] {
    const { counter } = this.#family;
    if (counter === undefined) return [];
    return this.holdings.flatMap((holding) => {
      // Each pod holds one device, by an id that does not change with its name.
      const [account, ...others] =
        snapshot.usage?.containers.filter(({ pod, endedAtMs }) => pod === holding.pod && endedAtMs === undefined) ?? [];
      if (others.length > 0) return [`${holding.pod} has ${1 + others.length} accounts of ${holding.device}`];
      const reading = account?.counters?.find(({ metric }) => metric === counter.metric)?.value;
      const value = reading === undefined ? undefined : Number(reading) / counter.scale;
      const least = holding.hasBase ? holding.movedAtRead - holding.beforeBase : 0;
      if (value === undefined) return [];
      if (value > holding.moved + 1e-6)
        return [`${holding.pod} gets ${value} of ${holding.device}, but only ${holding.moved} moved while it held the device`];
      if (value < least - 1e-6) return [`${holding.pod} gets ${value} of ${holding.device}, but at least ${least} moved and were read`];
      return [];
    });
  }
}
