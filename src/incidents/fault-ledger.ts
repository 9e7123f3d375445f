import { CLOCK_STEP_MS } from '../model/clock-step.ts';
import type { DeviceProcess } from '../model/collection.ts';
import { defined } from '../model/defined.ts';
import type { DeviceRecord } from '../model/device-record.ts';
import type { HealthEvent } from '../model/events.ts';
import {
  type Fault,
  type FaultCounts,
  type FaultHolder,
  type FaultMark,
  isAfter,
  laterMark,
  MOST_FAULT_LINES,
  NO_MARK,
  type SavedFault,
  type SavedFaults,
  type SavedRepeat,
} from '../model/fault.ts';
import type { HardwareKeys } from '../model/hardware.ts';
import type { Finding } from '../model/health.ts';
import type { Reading } from '../model/metric.ts';
import { memoizedBy, Readings } from '../model/readings.ts';
import { type Blamed, blamed, blameText, holdersAfter, type PresentHolder } from './fault-holders.ts';
import { repeatFindings, withRepeat } from './fault-repeats.ts';
import { atPresent, shifted } from './fault-times.ts';
import { incidentId } from './record.ts';

export interface LedgerInput {
  readonly devices: readonly DeviceRecord[];
  /** Containers that hold a device. */
  holdersOf(key: string): readonly PresentHolder[];
  /** Wall clock of the kubelet's latest answer; absent before the first. */
  readonly answeredAtMs?: number | undefined;
  podOf(containerId: string): string | undefined;
  readonly nowMs: number;
  readonly monotonicMs: number;
}

const NOTHING: SavedFaults = { marks: {}, byEvents: {}, totals: {}, own: {}, held: {} };
/** An identical fault within this time, or any repeat of its kind, is added to the one before. */
const SAME_MS = 60_000;
const SAME_KIND_MS = 3_600_000;
/** A fault waits so long for an answer of the kubelet that is not older than the fault itself. */
const PATIENCE_MS = 15_000;
const MOST_SPANS = 16;
/** Processes of one device that are remembered, and for how long. */
const MOST_PROCESSES = 512;
const PROCESS_MS = 600_000;
/** An event tells a repeated fault again when its count is this multiple of the last one that was told. */
const TOLD_AGAIN = 10;

/**
 * Counts each fault once and finds whom it hit. It owns all that is known of faults: the counters of devices and containers, the list, and
 * how far each source was counted. All of it is saved in one write with the events, so that a kill neither loses nor repeats a fault.
 */
export class FaultLedger {
  #saved: SavedFaults;
  #kept: readonly SavedFault[];
  #keep: number;
  readonly #epochs = new Map<string, { readonly epoch: string; readonly seq: number }>();
  /** Processes that reads showed, keyed by hardware. */
  readonly #seen = new Map<string, Map<number, { readonly process: DeviceProcess; readonly atMs: number }>>();
  /** Monotonic clock since which a fault of the family waits for the kubelet. */
  readonly #waiting = new Map<string, number>();
  #hasNews = false;

  /** `keep`: number of faults in the list. */
  constructor(keep: number, saved: SavedFaults = NOTHING, kept: readonly SavedFault[] = []) {
    this.#keep = keep;
    this.#saved = saved;
    this.#kept = kept;
  }

  configure(keep: number): void {
    this.#keep = keep;
  }

  /** What was counted of the log of a family. */
  mark(family: string): FaultMark {
    return this.#saved.marks[family] ?? NO_MARK;
  }

  /** The oldest first. */
  get kept(): readonly SavedFault[] {
    return this.#kept;
  }

  get saved(): SavedFaults {
    return this.#saved;
  }

  /** A fault waits for the next answer of the kubelet. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Whether something changed since the last call that must be saved. */
  takeNews(): boolean {
    const had = this.#hasNews;
    this.#hasNews = false;
    return had;
  }

  /** Counts the new faults of a snapshot. Returns an event for each, and for repeats at each power of ten. */
  step(input: LedgerInput, keys: HardwareKeys): readonly Omit<HealthEvent, 'id'>[] {
    this.#shift(input);
    this.#hold(input, keys);
    this.#see(input, keys);
    const told: Omit<HealthEvent, 'id'>[] = [];
    for (const [family, records] of familiesOf(input.devices)) {
      const found = records.flatMap((record) => (record.faults ?? []).map((fault) => ({ record, fault: atPresent(fault, input) })));
      const fresh = found.filter(({ fault }) => this.#isNew(family, fault));
      if (fresh.length === 0) this.#waiting.delete(family);
      if (fresh.length === 0 || this.#mustWait(family, fresh, input)) continue;
      for (const { record, fault } of fresh.toSorted((a, b) => orderOf(a.fault, b.fault)))
        told.push(...this.#take(record, fault, input, keys));
      for (const { fault } of fresh) this.#pass(family, fault, input);
      this.#hasNews = true;
    }
    told.push(...this.#settled(input));
    return told;
  }

  /** Counters of a device. */
  readingsOf(hardware: string): Readings {
    return Readings.of(readings(this.#saved.totals[hardware]));
  }

  /** How often faults of a device came, as findings of the conditions that the family declares for it; the same list while nothing was counted. */
  findingsOf(hardware: string): readonly Finding[] {
    const known = this.#saved.repeats?.[hardware];
    return known === undefined ? NO_FINDINGS : repeatFindings(known);
  }

  /** Counters of one container on a device. Its UID can have become known after its first fault. */
  ownReadings(hardware: string, holder: string, uid: string | undefined): readonly Reading[] {
    const { own } = this.#saved;
    if (isNothing(own)) return NO_READINGS;
    const [first, later] = [own[ownKey(hardware, holder, undefined)], uid === undefined ? undefined : own[ownKey(hardware, holder, uid)]];
    if (first === undefined || later === undefined) return readings(first ?? later);
    return readings(Object.entries(later).reduce((sum: FaultCounts, [series, count]) => withCount(sum, series, count), first));
  }

  #isNew(family: string, fault: Fault): boolean {
    if (fault.witness === 'log') return isAfter(fault.first, this.mark(family)) && !this.#wasToldByEvents(family, fault);
    const last = this.#epochs.get(family);
    return last?.epoch !== fault.epoch || fault.first.seq > last.seq;
  }

  /** A log that becomes readable has the faults that events told before. */
  #wasToldByEvents(family: string, { timeMs }: Fault): boolean {
    const spans = this.#saved.byEvents[family] ?? [];
    return timeMs !== undefined && spans.some(([from, to]) => timeMs >= from && timeMs <= to);
  }

  /** The pod that the kubelet named last may have ended before the fault. */
  #mustWait(family: string, fresh: readonly { readonly fault: Fault }[], { answeredAtMs, nowMs, monotonicMs }: LedgerInput): boolean {
    const latestMs = Math.max(...fresh.map(({ fault }) => Math.min(fault.lastMs ?? 0, nowMs)));
    const sinceMs = this.#waiting.get(family) ?? monotonicMs;
    if (answeredAtMs === undefined || answeredAtMs >= latestMs || monotonicMs - sinceMs >= PATIENCE_MS) {
      this.#waiting.delete(family);
      return false;
    }
    this.#waiting.set(family, sinceMs);
    return true;
  }

  #pass(family: string, fault: Fault, { nowMs, monotonicMs }: LedgerInput): void {
    const { marks, byEvents } = this.#saved;
    if (fault.witness === 'log') {
      this.#saved = { ...this.#saved, marks: { ...marks, [family]: laterMark(laterMark(this.mark(family), fault.first), fault.last) } };
      return;
    }
    const before = this.#epochs.get(family);
    const seq = Math.max(fault.last.seq, before?.epoch === fault.epoch ? before.seq : 0);
    this.#epochs.set(family, { epoch: fault.epoch, seq });
    // No log will ever tell it, and what the log reports of that time is new.
    if (fault.isLost === true) return;
    const beganMs = nowMs - (monotonicMs - Number(fault.epoch));
    const known = byEvents[family] ?? [];
    const same = known.find(([from]) => Math.abs(from - beganMs) <= CLOCK_STEP_MS);
    const [fromMs, untilMs] = same ?? [beganMs, beganMs];
    const spans = known.filter((one) => one !== same);
    const span = [fromMs, Math.max(untilMs, fault.lastMs ?? nowMs)] as const;
    this.#saved = { ...this.#saved, byEvents: { ...byEvents, [family]: [...spans, span].slice(-MOST_SPANS) } };
  }

  #take(record: DeviceRecord, fault: Fault, input: LedgerInput, keys: HardwareKeys): readonly Omit<HealthEvent, 'id'>[] {
    const atMs = Math.min(fault.lastMs ?? input.nowMs, input.nowMs);
    const hardware = keys.of(record.device);
    const related = this.#related(record, fault, input, keys);
    const found = blamed(
      fault,
      related.flatMap((key) => this.#saved.held[key] ?? []),
      atMs,
      {
        processOf: (pid) => related.map((key) => this.#seen.get(key)?.get(pid)?.process).find((one) => one !== undefined),
        podOf: (id) => input.podOf(id),
      },
    );
    this.#count(hardware, fault, found);
    this.#repeat(hardware, fault, atMs);
    return this.#keepFault(record, fault, found, atMs);
  }

  /** The device with its parts, or the parts that the fault names. */
  #related({ device }: DeviceRecord, { parts }: Fault, { devices }: LedgerInput, keys: HardwareKeys): readonly string[] {
    const ofFamily = devices.filter((one) => one.device.family === device.family);
    const own = ofFamily.filter(({ device: { id, parent } }) =>
      parts === undefined ? id === device.id || parent === device.id : parts.includes(id),
    );
    return own.map((one) => keys.of(one.device));
  }

  #count(hardware: string, { counter, count }: Fault, { blame, holders }: Blamed): void {
    const series = seriesOf(counter);
    const totals = { ...this.#saved.totals, [hardware]: withCount(this.#saved.totals[hardware], series, count) };
    let { own } = this.#saved;
    // Of several containers of a pod, it is unknown which one it was.
    const [only] = holders;
    if (only !== undefined && holders.length === 1 && (blame === 'process' || blame === 'only')) {
      const key = ownKey(hardware, nameOf(only.holder), only.uid);
      own = { ...own, [key]: withCount(own[key], series, count) };
    }
    this.#saved = { ...this.#saved, totals, own };
  }

  #repeat(hardware: string, { repeats = [] }: Fault, atMs: number): void {
    if (repeats.length === 0) return;
    const known = this.#saved.repeats?.[hardware];
    const after = repeats.reduce<readonly SavedRepeat[] | undefined>((before, one) => withRepeat(before, one, atMs), known) ?? [];
    this.#saved = { ...this.#saved, repeats: { ...this.#saved.repeats, [hardware]: after } };
  }

  #keepFault(record: DeviceRecord, fault: Fault, found: Blamed, atMs: number): readonly Omit<HealthEvent, 'id'>[] {
    const holders = found.holders.map(({ holder }) => holder);
    const known = this.#kept.findLast((kept) => isRepeat(kept, record.key, fault, { ...found, names: holders.map(nameOf) }, atMs));
    if (known !== undefined) {
      const count = known.count + fault.count;
      const isTold = count >= known.toldCount * TOLD_AGAIN;
      const lines = [...new Set([...known.lines, ...fault.lines])].slice(0, MOST_FAULT_LINES);
      const next = { ...known, count, lastMs: Math.max(known.lastMs, atMs), lines, ...(isTold ? { toldCount: count } : {}) };
      this.#kept = this.#kept.map((kept) => (kept === known ? next : kept));
      return isTold ? [eventOf(next, record.device.family)] : [];
    }
    const { type, code, reason, severity, remedy, lines, process, count } = fault;
    const { containerId } = found;
    const of = blameText(found);
    const kept: SavedFault = {
      id: incidentId(atMs, record.device, (id) => this.#kept.some((one) => one.id === id)),
      device: record.key,
      ...{ type, code, reason, severity, remedy },
      message: of === '' ? fault.message : `${fault.message}; ${of}`,
      timeMs: Math.min(fault.timeMs ?? atMs, atMs),
      lastMs: atMs,
      ...{ count, lines },
      ...defined({ process: process && { ...process, ...defined({ containerId }) } }),
      blame: found.blame,
      holders,
      toldCount: count,
    };
    this.#kept = withinKeep([...this.#kept, kept], this.#keep);
    return [eventOf(kept, record.device.family)];
  }

  /** Tells the final count of faults that no longer repeat. */
  #settled({ nowMs }: LedgerInput): readonly Omit<HealthEvent, 'id'>[] {
    const due = this.#kept.filter(({ count, toldCount, lastMs }) => count > toldCount && Math.abs(nowMs - lastMs) > SAME_MS);
    if (due.length === 0) return [];
    this.#kept = this.#kept.map((kept) => (due.includes(kept) ? { ...kept, toldCount: kept.count } : kept));
    this.#hasNews = true;
    return due.map((kept) => eventOf(kept, kept.device.slice(0, kept.device.indexOf('/'))));
  }

  /** Moves all times by a step of the wall clock: what came before another thing still does, and is as old as it was. */
  #shift({ nowMs, monotonicMs }: LedgerInput): void {
    const aheadMs = nowMs - monotonicMs;
    const stepMs = aheadMs - (this.#saved.aheadMs ?? aheadMs);
    if (this.#saved.aheadMs !== undefined && Math.abs(stepMs) <= CLOCK_STEP_MS) return;
    this.#saved = { ...(stepMs === 0 ? this.#saved : shifted(this.#saved, stepMs)), aheadMs };
    if (stepMs === 0) return;
    this.#kept = this.#kept.map((kept) => ({ ...kept, timeMs: kept.timeMs + stepMs, lastMs: kept.lastMs + stepMs }));
    this.#hasNews = true;
  }

  #hold({ devices, holdersOf, answeredAtMs }: LedgerInput, keys: HardwareKeys): void {
    if (answeredAtMs === undefined) return;
    const beforeMs = this.#saved.answeredAtMs;
    const held: Record<string, readonly FaultHolder[]> = {};
    let isSame = true;
    for (const { key, device } of devices) {
      const hardware = keys.of(device);
      const before = this.#saved.held[hardware] ?? NOBODY;
      const now = holdersAfter(before, holdersOf(key), answeredAtMs, beforeMs);
      if (now.length > 0) held[hardware] = now;
      isSame &&= now === before || (now.length === 0 && before.length === 0);
    }
    if (!isSame) {
      this.#forgetOwn(held);
      this.#hasNews = true;
    }
    this.#saved = { ...this.#saved, held: isSame ? this.#saved.held : held, answeredAtMs };
  }

  /** The account of a container keeps what it had at its end. */
  #forgetOwn(held: SavedFaults['held']): void {
    if (isNothing(this.#saved.own)) return;
    const names = new Set(
      Object.entries(held).flatMap(([hardware, spans]) =>
        spans.flatMap(({ holder, uid }) => [ownKey(hardware, nameOf(holder), uid), ownKey(hardware, nameOf(holder), undefined)]),
      ),
    );
    const own = Object.fromEntries(Object.entries(this.#saved.own).filter(([key]) => names.has(key)));
    this.#saved = { ...this.#saved, own };
  }

  #see({ devices, monotonicMs }: LedgerInput, keys: HardwareKeys): void {
    for (const { device, read } of devices) {
      if (read?.processes === undefined || read.processes.length === 0) continue;
      const key = keys.of(device);
      const seen = this.#seen.get(key) ?? new Map();
      this.#seen.set(key, seen);
      for (const process of read.processes) {
        seen.delete(process.pid);
        seen.set(process.pid, { process, atMs: read.monotonicMs });
      }
      for (const [pid, { atMs }] of seen) if (seen.size > MOST_PROCESSES || monotonicMs - atMs > PROCESS_MS) seen.delete(pid);
    }
  }
}

const NO_FINDINGS: readonly Finding[] = [];
const NOBODY: readonly FaultHolder[] = [];

function isNothing(counts: object): boolean {
  for (const _ in counts) return false;
  return true;
}

const nameOf = ({ namespace, pod, container }: { readonly namespace: string; readonly pod: string; readonly container: string }): string =>
  `${namespace}/${pod}/${container}`;

const ownKey = (hardware: string, holder: string, uid = ''): string => `${hardware} ${holder} ${uid}`;

/** Metric, and names and values of its labels. */
const seriesOf = ({ metric, labels }: Fault['counter']): string => [metric, ...Object.entries(labels).flat()].join('\u0000');

const withCount = (counts: FaultCounts = {}, series: string, count: number): FaultCounts => ({
  ...counts,
  [series]: (counts[series] ?? 0) + count,
});

const readings = (counts: FaultCounts | undefined): readonly Reading[] => (counts === undefined ? NO_READINGS : readingsOf(counts));

const NO_READINGS: readonly Reading[] = [];

const readingsOf = memoizedBy((counts: FaultCounts): readonly Reading[] =>
  Object.entries(counts).map(([series, value]) => {
    const [metric = '', ...parts] = series.split('\u0000');
    const labels: Record<string, string> = {};
    for (let at = 0; at < parts.length; at += 2) labels[parts[at] as string] = parts[at + 1] as string;
    return { metric, labels, value };
  }),
);

function familiesOf(devices: readonly DeviceRecord[]): ReadonlyMap<string, readonly DeviceRecord[]> {
  const families = new Map<string, DeviceRecord[]>();
  for (const record of devices) {
    const { family } = record.device;
    if (record.faults === undefined) continue;
    families.set(family, [...(families.get(family) ?? []), record]);
  }
  return families;
}

const orderOf = (a: Fault, b: Fault): number => a.first.usec - b.first.usec || a.first.seq - b.first.seq;

/** Whether a fault is the same as a kept one that came again. */
function isRepeat(
  kept: SavedFault,
  device: string,
  fault: Fault,
  { blame, containerId, names }: Pick<Blamed, 'blame' | 'containerId'> & { readonly names: readonly string[] },
  atMs: number,
): boolean {
  if (kept.device !== device || kept.type !== fault.type || kept.code !== fault.code || kept.blame !== blame) return false;
  if (kept.holders.length !== names.length || kept.holders.some((holder, at) => nameOf(holder) !== names[at])) return false;
  // A container that restarts within its pod gets another id, and its next job has faults of its own.
  const before = kept.process?.containerId;
  if (before !== undefined && containerId !== undefined && before !== containerId) return false;
  if (fault.isRepeat === true) return Math.abs(atMs - kept.lastMs) <= SAME_KIND_MS;
  const isIdentical = kept.process?.pid === fault.process?.pid && kept.lines[0] === fault.lines[0];
  return fault.witness === 'log' && isIdentical && Math.abs(atMs - kept.lastMs) <= SAME_MS;
}

/** The oldest fault of the device that has the most goes first, so that one device does not push out the faults of the others. */
function withinKeep(faults: readonly SavedFault[], keep: number): readonly SavedFault[] {
  let kept = faults;
  while (kept.length > keep) {
    const counts = new Map<string, number>();
    for (const { device } of kept) counts.set(device, (counts.get(device) ?? 0) + 1);
    const [most] = [...counts].reduce((a, b) => (b[1] > a[1] ? b : a));
    const oldest = kept.findIndex(({ device }) => device === most);
    kept = kept.toSpliced(oldest, 1);
  }
  return kept;
}

function eventOf(kept: SavedFault, family: string): Omit<HealthEvent, 'id'> {
  const { device, type, code, severity, reason, message, remedy, holders, lastMs, count, blame } = kept;
  return {
    timeMs: lastMs,
    ...{ device, family },
    transition: 'fault',
    condition: type,
    instance: code,
    ...{ severity, reason },
    message: count > 1 ? `${message}; ${count} times` : message,
    remedy,
    holders,
    count,
    blame,
  };
}
