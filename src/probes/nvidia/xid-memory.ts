import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import { defined } from '../../model/defined.ts';
import type { Severity } from '../../model/health.ts';
import type { NvidiaLine, SwitchLine, XidLine } from './xid-line.ts';
import { NO_REMOVALS, type Removals, rememberCause, rememberRemoval } from './xid-removals.ts';
import { judgeXid, type XidJudgement } from './xid-table.ts';

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
  /** Identical lines within a minute count once. */
  readonly count: number;
  /** Time of the latest line, see {@link RecordPlace.timeMs}; absent when unknown. */
  readonly lastMs?: number;
  /** Wall clock time of the latest line; absent when unknown. */
  readonly lastWallMs?: number;
  /** The latest line, or an earlier and more severe line that has not ended. */
  readonly line: XidLine;
  readonly judgement: XidJudgement;
  /** True when the error has not ended. It is always false for errors that end by themselves. */
  readonly isOpen: boolean;
  readonly counted: { readonly text: string; readonly atMs: number };
}

export const EMPTY_MEMORY: XidMemory = { gpus: new Map(), switches: new Map() };
const EMPTY_GPU: GpuMemory = { tallies: [], hasRecovered: false, removals: NO_REMOVALS, recent: [] };

const SAME_EVENT_MS = 60_000;
/** Number of records per GPU that are recognized as known when a log is read again. */
const RECENT_RECORDS = 256;
const RANK: Readonly<Record<Severity, number>> = { info: 1, degraded: 2, fatal: 3 };

/** Returns the address without the function, because Xids do not contain the function. */
export function gpuKey(pciAddress: string): string {
  return pciAddress.replace(/\.[0-7]$/, '');
}

/** Number, times and text of a record. An Xid event of the library has a number below 0. */
export interface RecordPlace extends Pick<KmsgMessage, 'seq' | 'timeUsec' | 'text'> {
  /** Time on a clock that a change of the wall clock does not affect. It orders lines and reads. Absent when unknown. */
  readonly timeMs?: number;
  /** Wall clock time. Absent when it is equal to `timeMs`. */
  readonly wallMs?: number;
}

/** Returns the memory after one more line of the driver. It is the same object when the line is irrelevant. */
export function rememberLine(memory: XidMemory, line: NvidiaLine, place: RecordPlace): XidMemory {
  const { namedGpu, ...rest } = memory;
  switch (line.kind) {
    case 'xid':
      return changeGpu(rest, line.pciAddress, (gpu) => once(gpu, place, () => rememberXid(gpu, line, place)));
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
  const known = gpu.tallies.find((tally) => isSamePart(tally, line) && tally.xid === line.xid);
  const tally = addLine(known, line, place);
  const tallies = [...gpu.tallies.filter((other) => other !== known), tally];
  // An Xid 154 of the library has no action. The values of the GPU contain the action.
  if (line.xid !== 154 || line.isEvent === true) return { ...gpu, tallies };
  if (line.recoveryAction?.action !== 'none') return { ...gpu, tallies, recovery: tally };
  return withoutFaults({ ...gpu, tallies }, () => true);
}

type Part = Pick<XidTally, 'gpuInstance' | 'computeInstance'>;

export function isSamePart(a: Part, b: Part): boolean {
  return a.gpuInstance === b.gpuInstance && a.computeInstance === b.computeInstance;
}

function addLine(before: XidTally | undefined, line: XidLine, place: RecordPlace): XidTally {
  const { xid, gpuInstance, computeInstance, text } = line;
  const atMs = place.timeMs ?? place.timeUsec / 1_000;
  const isSameEvent = before !== undefined && before.counted.text === text && Math.abs(atMs - before.counted.atMs) < SAME_EVENT_MS;
  const judgement = judgeXid(line);
  const isBeforeWorse = before?.isOpen === true && RANK[before.judgement.severity] > RANK[judgement.severity];
  const lastMs = place.timeMs ?? before?.lastMs;
  const lastWallMs = place.wallMs ?? place.timeMs ?? before?.lastWallMs;
  return defined({
    xid,
    gpuInstance,
    computeInstance,
    count: (before?.count ?? 0) + (isSameEvent ? 0 : 1),
    lastMs,
    lastWallMs,
    ...(isBeforeWorse ? { line: before.line, judgement: before.judgement } : { line, judgement }),
    isOpen: xid !== 154 && (isBeforeWorse || judgement.lasts !== 'quiet'),
    counted: isSameEvent ? before.counted : { text, atMs },
  });
}

/** Reason why the faults of a GPU have ended although the log has no line about it. */
export type EndEvidence =
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
