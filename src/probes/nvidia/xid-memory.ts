import { defined } from '../../model/defined.ts';
import type { Severity } from '../../model/health.ts';
import { rootCauses } from '../kit/root-cause.ts';
import { CHANNELS_REMOVED, NO_REMOVALS, type Removals, rememberCause, rememberRemoval } from './channel-removals.ts';
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
import { isLinkError, judgeVictim, judgeXid, LINK_RULES, LINK_VICTIM, linkCode, type XidJudgement } from './xid-table.ts';

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
  /**
   * GPUs of the fabric on which NVLinks failed together, keyed as `gpus`. Empty when that is over or has a source; absent when there was no such fault since the
   * driver was loaded.
   */
  readonly fabric?: ReadonlySet<string>;
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
  /** Key of the GPU whose fault is the source of this one. */
  readonly causedBy?: string;
  /** True when the error has not ended. It is always false for errors that end by themselves. */
  readonly isOpen: boolean;
  /** The driver was loaded since. That ended all programs and set up the links again, so an error that had ended by then explains no later one. */
  readonly isPast?: true;
}

export const EMPTY_MEMORY: XidMemory = { gpus: new Map(), switches: new Map() };
const EMPTY_GPU: GpuMemory = { tallies: [], hasRecovered: false, removals: NO_REMOVALS, recent: [] };

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
      return afterLoad(rest, place.timeMs);
    case 'other':
      return line.isMiddle ? memory : rest;
  }
}

/** A load of the driver sets up the fabric again. It does not end faults of GPUs: see `endFaults`. */
function afterLoad({ fabric: _, ...memory }: XidMemory, timeMs: number | undefined): XidMemory {
  const past = ({ tallies, ...gpu }: GpuMemory): GpuMemory => ({ ...gpu, tallies: tallies.map((tally) => ({ ...tally, isPast: true })) });
  const gpus = new Map([...memory.gpus].map(([key, gpu]) => [key, past(gpu)]));
  return { ...memory, gpus, switches: new Map(), ...(timeMs !== undefined && { driverLoadedAtMs: timeMs }) };
}

function withXid(memory: XidMemory, line: XidLine, place: RecordPlace): XidMemory {
  const after = changeGpu(memory, line.pciAddress, (gpu) =>
    once(gpu, place, () => rememberNamedCause(rememberXid(gpu, line, place), line, place)),
  );
  if (after === memory) return memory;
  return isLinkError(line.causedBy ?? line.xid) ? withFabric(withVictims(after), place.timeMs) : withoutReset(after, line);
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
  const lost = defined({ lastMs: place.timeMs });
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

/** Whether an error can still explain another one. */
const isRelevant = ({ isOpen, isPast }: XidTally): boolean => isOpen || isPast !== true;

/** Tells source and victims of NVLink errors apart. */
function withVictims(memory: XidMemory): XidMemory {
  const faults = [...memory.gpus].flatMap(([device, { tallies }]) =>
    tallies
      .filter((tally) => isLinkError(tally.xid) && isRelevant(tally))
      .map((tally) => ({
        ...{ device, tally, code: linkCode(tally.line), atMs: tally.lastMs, isOpen: tally.isOpen },
        isFatal: tally.line.nvlink?.isFatal === true,
      })),
  );
  const victims = new Map([...rootCauses(LINK_RULES, faults)].map(([victim, source]) => [victim.tally, source]));
  if (victims.size === 0) return memory;
  const change = (tally: XidTally): XidTally => {
    const source = victims.get(tally);
    if (source === undefined) return tally;
    return { ...tally, judgement: judgeVictim(tally.judgement, source.device, source.tally.xid), causedBy: source.device, isOpen: false };
  };
  return { ...memory, gpus: new Map([...memory.gpus].map(([key, gpu]) => [key, { ...gpu, tallies: gpu.tallies.map(change) }])) };
}

/** NVLink errors of two GPUs within this time are one fault of the fabric: as long as the first of them counts. */
const ONE_FABRIC_MS = 600_000;
/** Links fail after a program that crashed on another GPU. */
const AFTER_CRASH_MS = 60_000;

/**
 * NVLink errors that no line calls fatal, on several GPUs, without a source: the fabric can stay broken for all pairs of GPUs until it is set up
 * again, as on boards with B200 and B300. The crash of a program explains them, because its peers lose their links with it.
 */
function withFabric(memory: XidMemory, atMs: number | undefined): XidMemory {
  if (atMs === undefined) return memory;
  const isNear = ({ lastMs }: XidTally, ms: number): boolean => lastMs !== undefined && Math.abs(atMs - lastMs) <= ms;
  const told = new Map([...memory.gpus].map(([key, { tallies }]) => [key, tallies.filter(isRelevant)]));
  const gpus = [...told];
  const isHit = (tally: XidTally): boolean => isLinkError(tally.xid) && tally.causedBy === undefined && !tally.isOpen;
  const isCrash = (tally: XidTally): boolean =>
    tally.judgement.class === 'Application' && tally.xid !== CHANNELS_REMOVED && isNear(tally, AFTER_CRASH_MS);
  const isVictim = (key: string): boolean => told.get(key)?.some(({ causedBy }) => causedBy !== undefined) === true;
  const known = [...(memory.fabric ?? [])].filter((key) => !isVictim(key));
  const hit = gpus.filter(([, tallies]) => tallies.some((tally) => isHit(tally) && isNear(tally, ONE_FABRIC_MS))).map(([key]) => key);
  const isCrashed = known.length === 0 && gpus.some(([, tallies]) => tallies.some(isCrash));
  const all = new Set([...known, ...(isCrashed ? [] : hit)]);
  if (all.size >= 2) return { ...memory, fabric: all };
  return memory.fabric === undefined ? memory : { ...memory, fabric: NO_GPUS };
}

const NO_GPUS: ReadonlySet<string> = new Set();

/** A reset of a GPU sets up its part of the fabric again. */
function withoutReset(memory: XidMemory, { xid, recoveryAction, pciAddress }: XidLine): XidMemory {
  const key = gpuKey(pciAddress);
  if (xid !== 154 || recoveryAction?.action !== 'none' || memory.fabric?.has(key) !== true) return memory;
  return { ...memory, fabric: new Set([...memory.fabric].filter((other) => other !== key)) };
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
