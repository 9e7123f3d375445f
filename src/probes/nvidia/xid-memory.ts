import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import type { Severity } from '../../model/health.ts';
import { type NvidiaLine, parseNvidiaLines, type SwitchLine, type XidLine } from './xid-line.ts';
import { judgeXid, type XidJudgement } from './xid-table.ts';

/**
 * What the kernel log told of the node's GPUs in this boot. Plain data, replaced as a whole.
 *
 * It is not kept on disk: the log lives exactly as long as the boot, and is read from its oldest record on at every start of the
 * agent, which gives the same memory again. What a small log has overwritten by then is carried by the state file of the health
 * engine, since the conditions made from it outlive their probe.
 */
export interface XidMemory {
  /** Keyed by {@link gpuKey}. */
  readonly gpus: ReadonlyMap<string, GpuMemory>;
  /** Latest fatal error of each NVSwitch, by its address. */
  readonly switches: ReadonlyMap<string, SwitchLine>;
  /** When the driver was last loaded, where the log tells it. */
  readonly driverLoadedAtMs?: number;
  /** Latest program whose libraries do not fit the loaded driver. */
  readonly mismatch?: { readonly clientVersion: string; readonly timeMs?: number };
  /** Address of the GPU that a message of several lines is about. */
  readonly namedGpu?: string;
}

export interface GpuMemory {
  readonly uuid?: string;
  readonly tallies: readonly XidTally[];
  /** The driver told, without an Xid, that it is lost; with the time where that is known. */
  readonly lost?: { readonly lastMs?: number };
  /** What the driver asked for last; absent when it asks for nothing. */
  readonly recovery?: XidTally;
  /** Faults of this boot have ended at least once: those from before a restart of the agent have ended with them. */
  readonly hasRecovered: boolean;
  /** Latest records, so that a log that is read again changes nothing. */
  readonly recent: readonly string[];
}

/** All lines with one Xid about one GPU, or one instance of it. */
export interface XidTally {
  readonly xid: number;
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** Identical lines within a minute count once. */
  readonly count: number;
  /** Wall clock of the latest; absent when unknown. */
  readonly lastMs?: number;
  /** The latest line, or a worse one before it while that has not ended. */
  readonly line: XidLine;
  readonly judgement: XidJudgement;
  /** It came, and nothing has ended it. Says nothing for what ends by itself. */
  readonly isOpen: boolean;
  readonly counted: { readonly text: string; readonly atMs: number };
}

export const EMPTY_MEMORY: XidMemory = { gpus: new Map(), switches: new Map() };
const EMPTY_GPU: GpuMemory = { tallies: [], hasRecovered: false, recent: [] };

/** In the place of the line that the driver logged, of which its library tells the number alone. */
export const NUMBER_ALONE = "told by the driver's library";

const SAME_EVENT_MS = 60_000;
/** Per GPU: as many records in a row can be told from new ones when a log is read again. */
const RECENT_RECORDS = 256;
const RANK: Readonly<Record<Severity, number>> = { info: 1, degraded: 2, fatal: 3 };

/** Address without the function, which Xids do not name. */
export function gpuKey(pciAddress: string): string {
  return pciAddress.replace(/\.[0-7]$/, '');
}

/** The memory after one more record of the kernel log; the same object when the record is of no concern. */
export function rememberRecord(memory: XidMemory, message: KmsgMessage, severityOfUnknown: Severity = 'degraded'): XidMemory {
  return parseNvidiaLines(message.text).reduce((before, line) => rememberLine(before, line, message, severityOfUnknown), memory);
}

function rememberLine(memory: XidMemory, line: NvidiaLine, message: KmsgMessage, severityOfUnknown: Severity): XidMemory {
  const { namedGpu, ...rest } = memory;
  const at = message.timeMs === undefined ? {} : { timeMs: message.timeMs };
  switch (line.kind) {
    case 'xid':
      return changeGpu(rest, line.pciAddress, (gpu) => once(gpu, message, () => rememberXid(gpu, line, message, severityOfUnknown)));
    case 'identity':
      return changeGpu(rest, line.pciAddress, (gpu) => ({ ...gpu, uuid: line.uuid }));
    case 'lost':
      return lose(rest, line.pciAddress, message);
    case 'gpu-named':
      return { ...rest, namedGpu: line.pciAddress };
    case 'named-gpu-lost':
      return namedGpu === undefined ? rest : lose(rest, namedGpu, message);
    case 'switch':
      return line.isFatal === true ? { ...rest, switches: new Map([...rest.switches, [line.pciAddress, line]]) } : rest;
    case 'api-mismatch':
      return { ...rest, mismatch: { clientVersion: line.clientVersion, ...at } };
    case 'driver-loaded':
      // With the driver the fabric is set up anew. GPUs need more than that: see `endFaults`.
      return { ...rest, switches: new Map(), ...(message.timeMs !== undefined && { driverLoadedAtMs: message.timeMs }) };
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

/** A record that was there before, number, time and text, is the same one read again. */
function once(gpu: GpuMemory, { seq, timeUsec, text }: KmsgMessage, change: () => GpuMemory): GpuMemory {
  const id = `${seq} ${timeUsec} ${text}`;
  if (gpu.recent.includes(id)) return gpu;
  return { ...change(), recent: [...gpu.recent, id].slice(-RECENT_RECORDS) };
}

function lose(memory: XidMemory, pciAddress: string, message: KmsgMessage): XidMemory {
  const lost = message.timeMs === undefined ? {} : { lastMs: message.timeMs };
  return changeGpu(memory, pciAddress, (gpu) => once(gpu, message, () => ({ ...gpu, lost })));
}

function rememberXid(gpu: GpuMemory, line: XidLine, message: KmsgMessage, severityOfUnknown: Severity): GpuMemory {
  const before = gpu.tallies.find((tally) => isSamePart(tally, line) && tally.xid === line.xid);
  const tally = addLine(before, line, message, severityOfUnknown);
  const tallies = [...gpu.tallies.filter((other) => other !== before), tally];
  // Which action is asked for, the library tells among the values of the GPU.
  if (line.xid !== 154 || line.text === NUMBER_ALONE) return { ...gpu, tallies };
  if (line.recoveryAction?.action !== 0) return { ...gpu, tallies, recovery: tally };
  return withoutFaults({ ...gpu, tallies }, () => true);
}

type Part = Pick<XidTally, 'gpuInstance' | 'computeInstance'>;

function isSamePart(a: Part, b: Part): boolean {
  return a.gpuInstance === b.gpuInstance && a.computeInstance === b.computeInstance;
}

function addLine(before: XidTally | undefined, line: XidLine, message: KmsgMessage, severityOfUnknown: Severity): XidTally {
  const { xid, gpuInstance, computeInstance, text } = line;
  const atMs = message.timeMs ?? message.timeUsec / 1_000;
  const isSameEvent = before !== undefined && before.counted.text === text && Math.abs(atMs - before.counted.atMs) < SAME_EVENT_MS;
  const judgement = judgeXid(line, severityOfUnknown);
  const isBeforeWorse = before?.isOpen === true && RANK[before.judgement.severity] > RANK[judgement.severity];
  const lastMs = message.timeMs ?? before?.lastMs;
  return {
    xid,
    ...(gpuInstance !== undefined && { gpuInstance }),
    ...(computeInstance !== undefined && { computeInstance }),
    count: (before?.count ?? 0) + (isSameEvent ? 0 : 1),
    ...(lastMs !== undefined && { lastMs }),
    ...(isBeforeWorse ? { line: before.line, judgement: before.judgement } : { line, judgement }),
    isOpen: xid !== 154 && (isBeforeWorse || judgement.lasts !== 'quiet'),
    counted: isSameEvent ? before.counted : { text, atMs },
  };
}

/** Why a GPU's faults are over although no line of the log says so. */
export type EndEvidence =
  /** The GPU was reset or taken over by a driver loaded anew, and answers. What a reset does not change stays. */
  | 'reset'
  /** The driver's recovery action is "none": its word outranks the table. */
  | 'driver-asks-nothing';

/**
 * Ends the faults of one GPU and its instances that came before `atMs`, the time of the evidence. Younger ones stay; those whose
 * time is not known are older than the agent's start.
 */
export function endFaults(memory: XidMemory, pciAddress: string, evidence: EndEvidence, atMs: number): XidMemory {
  const isBefore = ({ lastMs }: { readonly lastMs?: number }): boolean => lastMs === undefined || lastMs < atMs;
  const ends = (fault: Fault): boolean =>
    isBefore(fault) && (evidence === 'driver-asks-nothing' || fault.judgement === undefined || fault.judgement.lasts !== 'boot');
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
