import { defined } from '../../model/defined.ts';
import type { Severity } from '../../model/health.ts';
import {
  type NvidiaLine,
  newGroup,
  type RecordPlace,
  type SwitchLine,
  withChannel,
  withLine,
  type XidGroup,
  type XidLine,
} from './xid-line.ts';
import { judgeVictim, judgeXid, LINK_SOURCE, LINK_VICTIM, type XidJudgement, xidRow } from './xid-table.ts';

/**
 * Xid of removed channels. The driver logs it for each channel of a program, either because the program ended, or because another error
 * ended the program. In the second case the other error is the fault, and this Xid is only its consequence.
 */
export const CHANNELS_REMOVED = 45;

/** A program may take this long to end after the error that another line reports. */
const AFTER_CAUSE_MS = 60_000;
/** The driver may log the removal this long before the error. A removal without a cause is reported only after this time. */
export const BEFORE_CAUSE_MS = 5_000;
/** A removal is reported for this time, so that at least one read sees it. */
const REPORTED_MS = 60_000;
/** Limit for the causes and for the removals that are remembered of one GPU. */
const MAX_REMEMBERED = 64;

/** Place and time of a line. `atMs` is on the kernel's own clock, which is the same for lines from before and after a restart of the agent. */
interface Place {
  readonly atMs: number;
  readonly pid?: number | undefined;
  readonly gpuInstance?: number | undefined;
}

/** An error that may remove channels. */
interface Cause extends Place {
  /** The error of a program removes only channels of that program. Any other error may remove those of all programs. */
  readonly isOfProgram: boolean;
}

/** A removal that no error explains so far. */
interface Removal extends Place {
  /** Wall clock; absent when unknown. */
  readonly timeMs?: number | undefined;
  readonly line: XidLine;
}

/** Latest errors of one GPU, and the removals of the last minute that they do not explain. Immutable plain data. */
interface Removals {
  readonly causes: readonly Cause[];
  readonly alone: readonly Removal[];
}

const NO_REMOVALS: Removals = { causes: [], alone: [] };

/** Returns the memory after one more Xid. */
function rememberRemoval(before: Removals, line: XidLine, atMs: number, timeMs: number | undefined): Removals {
  const place = { atMs, pid: line.pid, gpuInstance: line.gpuInstance };
  if (line.xid !== CHANNELS_REMOVED) {
    const kind = xidRow(line.xid)?.class;
    const isReport = kind === 'Information' && line.xid !== 154;
    return isReport ? before : rememberCause(before, { ...place, isOfProgram: kind === 'Application' });
  }
  if (line.causedBy !== undefined || before.causes.some((cause) => explains(cause, place))) return before;
  const recent = before.alone.filter((removal) => atMs - removal.atMs <= REPORTED_MS + BEFORE_CAUSE_MS);
  // The oldest ones stay, because a newer one may still get a cause.
  return { ...before, alone: [...recent, { ...place, timeMs, line }].slice(0, MAX_REMEMBERED) };
}

/** Returns the memory after an error: removals of the last seconds now have a cause. */
function rememberCause({ causes, alone }: Removals, cause: Cause): Removals {
  const others = causes.filter((other) => !isReplacedBy(other, cause));
  return { causes: [...others, cause].slice(-MAX_REMEMBERED), alone: alone.filter((removal) => !explains(cause, removal)) };
}

/** Lines come in the order of their time, so an earlier error with the same reach, or one that is too old, explains nothing more. */
function isReplacedBy(before: Cause, after: Cause): boolean {
  if (after.atMs - before.atMs > AFTER_CAUSE_MS) return true;
  return before.isOfProgram === after.isOfProgram && before.pid === after.pid && before.gpuInstance === after.gpuInstance;
}

function explains(cause: Cause, removal: Place): boolean {
  const laterMs = removal.atMs - cause.atMs;
  if (laterMs < -BEFORE_CAUSE_MS || laterMs > AFTER_CAUSE_MS) return false;
  if (!mayBeSame(cause.gpuInstance, removal.gpuInstance)) return false;
  return !cause.isOfProgram || mayBeSame(cause.pid, removal.pid);
}

const mayBeSame = (a: number | undefined, b: number | undefined): boolean => a === undefined || b === undefined || a === b;

/** Returns the latest removal that is to be reported: no error has explained it, and none can any more. */
export function removalToReport({ alone }: Removals, isWanted: (removal: Removal) => boolean, nowMs: number): Removal | undefined {
  return alone.findLast((removal) => {
    const { timeMs } = removal;
    const ageMs = timeMs === undefined ? Number.NaN : nowMs - timeMs;
    return ageMs >= BEFORE_CAUSE_MS && ageMs < REPORTED_MS + BEFORE_CAUSE_MS && isWanted(removal);
  });
}

/**
 * State of the node's GPUs from the kernel log of this boot. It is immutable plain data.
 *
 * It is not stored on disk. The log exists until the next boot, and each start of the agent reads it from the oldest record on, which
 * gives the same state. If a small log has overwritten records, the state file of the health engine still has the conditions from
 * them.
 */
export interface XidMemory {
  /** Keyed by {@link gpuKey}. */
  readonly gpus: ReadonlyMap<string, GpuMemory>;
  /** Latest fatal error of each NVSwitch, keyed by its address. */
  readonly switches: ReadonlyMap<string, SwitchLine>;
  /** Time of the last load of the driver; absent when the log does not contain it. */
  readonly driverLoadedAtMs?: number;
  /** Address of the GPU that the current message of several records names. */
  readonly namedGpu?: string;
}

export interface GpuMemory {
  readonly uuid?: string;
  readonly tallies: readonly XidTally[];
  /** Present when the driver reported the loss of the GPU without an Xid. `lastMs` is absent when the time is unknown. */
  readonly lost?: { readonly lastMs?: number };
  /** Latest recovery action of the driver; absent when it is "none". */
  readonly recovery?: XidTally;
  /** True when faults of this boot have ended at least once. Faults from before a restart of the agent have then also ended. */
  readonly hasRecovered: boolean;
  /** Removals of channels (Xid 45) that no other error explains. */
  readonly removals: Removals;
  /** Latest records. They make a second read of the same log harmless. */
  readonly recent: readonly string[];
}

/** All lines with one Xid about one GPU, or one instance of it. */
export interface XidTally {
  readonly xid: number;
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** Number of faults. One fault may have several lines. */
  readonly count: number;
  /** The latest fault. Absent while only another line names this Xid, as the cause of its own. */
  readonly group?: XidGroup;
  /** Time of the latest line, see {@link RecordPlace.timeMs}; absent when unknown. */
  readonly lastMs?: number;
  /** Wall clock time of the latest line; absent when unknown. */
  readonly lastWallMs?: number;
  /** The latest line, or an earlier and more severe line that has not ended. */
  readonly line: XidLine;
  readonly judgement: XidJudgement;
  /** True when the error has not ended. It is always false for errors that end by themselves. */
  readonly isOpen: boolean;
}

export const EMPTY_MEMORY: XidMemory = { gpus: new Map(), switches: new Map() };
const EMPTY_GPU: GpuMemory = { tallies: [], hasRecovered: false, removals: NO_REMOVALS, recent: [] };

/** An NVLink error of another GPU within this time is the source of one that tells a fault of the other end. */
const SAME_LINK_FAULT_MS = 60_000;
/** Number of records per GPU that are recognized as known when a log is read again. */
const RECENT_RECORDS = 256;
const RANK: Readonly<Record<Severity, number>> = { info: 1, degraded: 2, fatal: 3 };

/** Returns the address without the function, because Xids do not contain the function. */
export function gpuKey(pciAddress: string): string {
  return pciAddress.replace(/\.[0-7]$/, '');
}

/** Returns the memory after one more line of the driver. It is the same object when the line is irrelevant. */
export function rememberLine(memory: XidMemory, line: NvidiaLine, place: RecordPlace): XidMemory {
  const { namedGpu, ...rest } = memory;
  switch (line.kind) {
    case 'xid':
      return withXid(rest, line, place);
    case 'identity':
      return changeGpu(rest, line.pciAddress, (gpu) => ({ ...gpu, uuid: line.uuid }));
    case 'lost':
      return lose(rest, line.pciAddress, place);
    case 'gpu-named':
      return { ...rest, namedGpu: line.pciAddress };
    case 'named-gpu-lost':
      return namedGpu === undefined ? rest : lose(rest, namedGpu, place);
    case 'switch':
      return line.isFatal === true ? { ...rest, switches: new Map([...rest.switches, [line.pciAddress, line]]) } : rest;
    case 'driver-loaded':
      // A load of the driver sets up the fabric again. It does not end faults of GPUs: see `endFaults`.
      return { ...rest, switches: new Map(), ...(place.timeMs !== undefined && { driverLoadedAtMs: place.timeMs }) };
    case 'other':
      return line.isMiddle ? memory : rest;
  }
}

function withXid(memory: XidMemory, line: XidLine, place: RecordPlace): XidMemory {
  const after = changeGpu(memory, line.pciAddress, (gpu) =>
    once(gpu, place, () => rememberNamedCause(rememberXid(gpu, line, place), line, place)),
  );
  return after === memory ? memory : withVictims(after, line, place);
}

function changeGpu(memory: XidMemory, pciAddress: string, change: (gpu: GpuMemory) => GpuMemory): XidMemory {
  const key = gpuKey(pciAddress);
  const before = memory.gpus.get(key) ?? EMPTY_GPU;
  const after = change(before);
  return after === before ? memory : { ...memory, gpus: new Map([...memory.gpus, [key, after]]) };
}

/** Ignores a record that was read before: one with the same number, time and text. */
function once(gpu: GpuMemory, { seq, timeUsec, text }: RecordPlace, change: () => GpuMemory): GpuMemory {
  const id = `${seq} ${timeUsec} ${text}`;
  if (gpu.recent.includes(id)) return gpu;
  return { ...change(), recent: [...gpu.recent, id].slice(-RECENT_RECORDS) };
}

function lose(memory: XidMemory, pciAddress: string, place: RecordPlace): XidMemory {
  const lost = place.timeMs === undefined ? {} : { lastMs: place.timeMs };
  const cause = { atMs: place.timeUsec / 1_000, isOfProgram: false };
  return changeGpu(memory, pciAddress, (gpu) => once(gpu, place, () => ({ ...gpu, lost, removals: rememberCause(gpu.removals, cause) })));
}

function rememberXid(before: GpuMemory, line: XidLine, place: RecordPlace): GpuMemory {
  const gpu = { ...before, removals: rememberRemoval(before.removals, line, place.timeUsec / 1_000, place.timeMs) };
  const known = tallyOf(gpu, line);
  const tally = addLine(known, line, place);
  const tallies = [...gpu.tallies.filter((other) => other !== known).map((other) => toldProcess(other, line, place)), tally];
  // An Xid 154 of the library has no action. The values of the GPU contain the action.
  if (line.xid !== 154 || line.isEvent === true) return { ...gpu, tallies };
  if (line.recoveryAction?.action !== 'none') return { ...gpu, tallies, recovery: tally };
  return withoutFaults({ ...gpu, tallies }, () => true);
}

const tallyOf = ({ tallies }: GpuMemory, line: XidLine): XidTally | undefined =>
  tallies.find((tally) => isSamePart(tally, line) && tally.xid === line.xid);

type Part = Pick<XidTally, 'gpuInstance' | 'computeInstance'>;

export function isSamePart(a: Part, b: Part): boolean {
  return a.gpuInstance === b.gpuInstance && a.computeInstance === b.computeInstance;
}

/** A later line of another Xid can name the process of the latest fault. */
function toldProcess(tally: XidTally, line: XidLine, place: RecordPlace): XidTally {
  if (tally.group === undefined || !isSamePart(tally, line)) return tally;
  const group = withChannel(tally.group, line, place);
  return group === tally.group ? tally : { ...tally, group, line: group.line };
}

function addLine(before: XidTally | undefined, line: XidLine, place: RecordPlace): XidTally {
  const { xid, gpuInstance, computeInstance } = line;
  const joined = before?.group === undefined ? undefined : withLine(before.group, line, place);
  const group = joined ?? newGroup(line, place);
  const judgement = judgeXid(line);
  const isBeforeWorse = before?.isOpen === true && RANK[before.judgement.severity] > RANK[judgement.severity];
  const lastMs = place.timeMs ?? before?.lastMs;
  const lastWallMs = place.wallMs ?? place.timeMs ?? before?.lastWallMs;
  return defined({
    xid,
    gpuInstance,
    computeInstance,
    count: (before?.count ?? 0) + (joined === undefined ? 1 : 0),
    group,
    lastMs,
    lastWallMs,
    ...(isBeforeWorse ? { line: before.line, judgement: before.judgement } : { line: group.line, judgement }),
    isOpen: xid !== 154 && (isBeforeWorse || judgement.lasts !== 'quiet'),
  });
}

/**
 * Takes the Xid that a removal of channels names as its cause. The log may have overwritten the line of the cause itself. Then this is the
 * only evidence of it, and no fault to count.
 */
function rememberNamedCause(gpu: GpuMemory, removal: XidLine, place: RecordPlace): GpuMemory {
  const { causedBy: xid, pciAddress, gpuInstance, computeInstance } = removal;
  if (xid === undefined || gpu.tallies.some((tally) => tally.xid === xid)) return gpu;
  const text = `Xid ${removal.xid} names it as its cause, and the log does not have its own line`;
  // The driver removes channels only after a fatal error of a link. That of the other end says nothing of this GPU.
  const nvlink = { unit: '', isFatal: xid !== LINK_VICTIM };
  const line = defined({ kind: 'xid' as const, pciAddress, xid, gpuInstance, computeInstance, text, nvlink });
  const { group: _, ...tally } = addLine(undefined, line, place);
  return { ...gpu, tallies: [...gpu.tallies, { ...tally, count: 0 }] };
}

/** Tells source and victims apart: an error of the other end of a link, while another GPU tells an error of its own. */
function withVictims(memory: XidMemory, { xid, pciAddress, causedBy = xid }: XidLine, place: RecordPlace): XidMemory {
  if (causedBy !== LINK_SOURCE && causedBy !== LINK_VICTIM) return memory;
  const gpus = [...memory.gpus];
  const isNear = ({ lastMs }: XidTally): boolean =>
    lastMs !== undefined && place.timeMs !== undefined && Math.abs(place.timeMs - lastMs) <= SAME_LINK_FAULT_MS;
  const isSource = ([, { tallies }]: (typeof gpus)[number]): boolean => tallies.some((tally) => tally.xid === LINK_SOURCE && isNear(tally));
  const sources = gpus.filter(isSource).map(([key]) => key);
  const own = gpuKey(pciAddress);
  // The line of a source concerns all other GPUs, and that of a victim itself.
  const isMeant = (key: string): boolean => !sources.includes(key) && (causedBy === LINK_SOURCE || key === own);
  const [source] = sources;
  if (source === undefined || !gpus.some(([key]) => isMeant(key))) return memory;
  const change = (tally: XidTally): XidTally =>
    tally.xid === LINK_VICTIM && isNear(tally) ? { ...tally, judgement: judgeVictim(tally.judgement, source), isOpen: false } : tally;
  return { ...memory, gpus: new Map(gpus.map(([key, gpu]) => [key, isMeant(key) ? { ...gpu, tallies: gpu.tallies.map(change) } : gpu])) };
}

/** Reason why the faults of a GPU have ended although the log has no line about it. */
type EndEvidence =
  /** The GPU was reset, or a newly loaded driver uses it, and it answers. Faults that a reset does not repair stay. */
  | 'reset'
  /** The driver's recovery action is "none", which has priority over the Xid table. */
  | 'driver-asks-nothing'
  /** An earlier read of the GPU returned the recovery action "none". A fault of unknown time may be later, so this does not end it. */
  | 'driver-asked-nothing';

/**
 * Ends the faults of one GPU and its instances from before `atMs`, the time of the evidence. Later faults stay. Faults of unknown time
 * are older than the agent's start, so they end.
 */
export function endFaults(memory: XidMemory, pciAddress: string, evidence: EndEvidence, atMs: number): XidMemory {
  const isBefore = ({ lastMs }: { readonly lastMs?: number }): boolean =>
    lastMs === undefined ? evidence !== 'driver-asked-nothing' : lastMs < atMs;
  const ends = (fault: Fault): boolean =>
    isBefore(fault) && (evidence !== 'reset' || fault.judgement === undefined || fault.judgement.lasts !== 'boot');
  return changeGpu(memory, pciAddress, (gpu) => {
    const faults = [gpu.lost, gpu.recovery, ...gpu.tallies.filter((tally) => tally.isOpen)];
    return gpu.hasRecovered && !faults.some((fault) => fault !== undefined && ends(fault)) ? gpu : withoutFaults(gpu, ends);
  });
}

type Fault = { readonly lastMs?: number; readonly judgement?: XidJudgement };

function withoutFaults(gpu: GpuMemory, ends: (fault: Fault) => boolean): GpuMemory {
  const { lost, recovery, ...rest } = gpu;
  return {
    ...rest,
    tallies: gpu.tallies.map((tally) => (tally.isOpen && ends(tally) ? { ...tally, isOpen: false } : tally)),
    ...(lost !== undefined && !ends(lost) && { lost }),
    ...(recovery !== undefined && !ends(recovery) && { recovery }),
    hasRecovered: true,
  };
}
