import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { hours } from '../../model/duration.ts';
import { type Fault, type FaultMark, type FaultProcess, type FaultRepeat, isAfter, MOST_FAULT_LINES } from '../../model/fault.ts';
import { named } from './conditions.ts';
import { isInstance, logConditions, messageOf } from './log-findings.ts';
import { metrics } from './metrics.ts';
import { isBehind, isOver, LONGEST_WAIT_MS, type RecordPlace, type XidGroup, type XidLine } from './xid-line.ts';
import { gpuKey, isSamePart, type XidMemory } from './xid-memory.ts';
import { judgeXid, repeatedLinkPart, type XidJudgement } from './xid-table.ts';

/** A fault stays in the collections for this time, so that at least one snapshot takes it. */
const REPORTED_MS = 60_000;
/** The first faults of one GPU with one Xid within {@link WINDOW_MS} are reported one by one. Later ones count as repeats. */
const MOST_SINGLE = 32;
const WINDOW_MS = 3_600_000;
/** Faults that wait for the end of the one before them. */
const MOST_WAITING = 1_000;
/** Distinct repeats of one collection. */
const MOST_REPEATS = 256;

/** A fault, and how often it came. */
interface Counted {
  readonly key: string;
  group: XidGroup;
  readonly epoch: string;
  last: RecordPlace;
  count: number;
  texts: readonly string[];
  readonly isSingle: boolean;
}

interface Batch {
  readonly atMs: number;
  readonly faults: readonly Counted[];
}

/** Faults of the GPUs that are to be reported, in the order of their first lines. */
export class XidFaults {
  readonly #mark: FaultMark;
  /** The latest faults, keyed by the place of their first line. Those that may get further lines hold up the ones behind them, for a second at most. */
  readonly #waiting = new Map<RecordPlace, { readonly key: string; readonly epoch: string; group: XidGroup }>();
  #next = new Map<string, Counted>();
  #batches: readonly Batch[] = [];
  readonly #windows = new Map<string, { readonly fromMs: number; count: number }>();

  /** `mark`: what an earlier thread or run of the agent has counted of the log. */
  constructor(mark: FaultMark) {
    this.#mark = mark;
  }

  /** Whether a fault may get further lines. */
  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  /** Takes the faults of one GPU as they are after the line at `place`. `epoch`: empty for the log. */
  put(memory: XidMemory, pciAddress: string, place: RecordPlace, epoch: string): void {
    const gpu = gpuKey(pciAddress);
    for (const { group } of memory.gpus.get(gpu)?.tallies ?? []) {
      if (group === undefined) continue;
      const known = this.#waiting.get(group.first);
      if (known !== undefined) known.group = group;
      else if (group.first === place && this.#isNew(place, epoch)) this.#waiting.set(place, { key: gpu, epoch, group });
    }
    // An old log is read in a moment, so only its own times tell whether lines of a fault can follow.
    this.#settle((group, of) => of === epoch && isBehind(group, place));
  }

  /** Ends a collection: the faults since the last one are reported from now on. */
  take(nowMs: number): readonly Counted[] {
    this.#settle((group) => isOver(group, nowMs));
    const recent = this.#batches.filter(({ atMs }) => Math.abs(nowMs - atMs) < REPORTED_MS);
    this.#batches = this.#next.size === 0 ? recent : [...recent, { atMs: nowMs, faults: [...this.#next.values()] }];
    if (this.#next.size > 0) this.#next = new Map();
    return this.#batches.flatMap(({ faults }) => faults);
  }

  #isNew({ seq, timeUsec }: RecordPlace, epoch: string): boolean {
    return epoch !== '' || isAfter({ seq, usec: timeUsec }, this.#mark);
  }

  /** Moves the first faults on which nothing waits. Their order is that of their first lines, which the agent's mark needs. */
  #settle(isDone: (group: XidGroup, epoch: string) => boolean): void {
    for (const [key, { key: gpu, epoch, group }] of this.#waiting) {
      if (!group.isWhole && !isDone(group, epoch) && this.#waiting.size <= MOST_WAITING) break;
      this.#waiting.delete(key);
      this.#count(gpu, epoch, group);
    }
  }

  #count(gpu: string, epoch: string, group: XidGroup): void {
    const { gpuInstance, computeInstance, xid, pid, text, isEvent } = group.line;
    const part = `${gpu} ${epoch} ${gpuInstance} ${computeInstance} ${xid}`;
    const isSingle = this.#isSingle(`${gpu} ${xid}`, group);
    const own = `${part} ${pid} ${text}`;
    // Identical lines are one fault that came again. Events of a library are all alike, and tell nothing about that.
    const repeated = isEvent === true && isSingle ? undefined : this.#next.get(own);
    const rest = this.#next.size >= MOST_REPEATS ? part : `${part} ${pid}`;
    const known = repeated ?? (isSingle ? undefined : this.#next.get(rest));
    if (known === undefined) {
      const key = isEvent === true && isSingle ? `${own} ${group.first.seq}` : isSingle ? own : rest;
      this.#next.set(key, { key: gpu, epoch, group, last: group.first, count: 1, texts: group.texts, isSingle });
      return;
    }
    known.count += 1;
    known.last = group.first;
    if (known.texts.length < MOST_FAULT_LINES) known.texts = [...new Set([...known.texts, ...group.texts])].slice(0, MOST_FAULT_LINES);
  }

  #isSingle(key: string, { first: { timeUsec } }: XidGroup): boolean {
    const window = this.#windows.get(key);
    const atMs = timeUsec / 1_000;
    if (window === undefined || Math.abs(atMs - window.fromMs) > WINDOW_MS) {
      this.#windows.set(key, { fromMs: atMs, count: 1 });
      return true;
    }
    window.count += 1;
    return window.count <= MOST_SINGLE;
  }
}

/** After this time, no fault waits for further lines. */
export const FAULT_WAIT_MS = LONGEST_WAIT_MS + 50;

/** What is known beside the lines. */
interface FaultFacts {
  /** The process at the time of its line. */
  processOf(pid: number): Pick<FaultProcess, 'podUid' | 'containerId'> | undefined;
  /** What is known of the GPUs. It tells the source of a fault of several GPUs. */
  readonly memory: XidMemory;
  /** Whether an MPS server runs on the GPU with this address. */
  isServed(gpu: string): boolean;
}

/** The faults of each device, keyed by device id. A fault belongs to one device: the named instance if exactly one fits, otherwise the GPU. */
export function faultsOf(
  counted: readonly Counted[],
  devices: readonly Device[],
  facts: FaultFacts,
): ReadonlyMap<string, readonly Fault[]> {
  const found = new Map<string, Fault[]>();
  for (const one of counted) {
    const ofGpu = devices.filter(({ pciAddress }) => pciAddress !== undefined && gpuKey(pciAddress) === one.key);
    const named = ofGpu.filter((device) => isInstance(one.group.line, device));
    const device = (named.length === 1 ? named[0] : undefined) ?? ofGpu.find(({ parent }) => parent === undefined) ?? ofGpu[0];
    if (device === undefined) continue;
    const fault = faultOf(one, named.length > 1 ? named.map(({ id }) => id) : undefined, facts);
    const before = found.get(device.id);
    if (before === undefined) found.set(device.id, [fault]);
    else before.push(fault);
  }
  return found;
}

function faultOf(
  { key, group, epoch, last, count, texts, isSingle }: Counted,
  parts: readonly string[] | undefined,
  facts: FaultFacts,
): Fault {
  const { line, first } = group;
  const { xid, pid, processName } = line;
  const known = facts.memory.gpus.get(key)?.tallies.find((tally) => tally.xid === xid && isSamePart(tally, line));
  const judgement = known?.causedBy === undefined ? judgeXid(line) : known.judgement;
  const isAnyProcess = pid !== undefined && facts.isServed(key);
  return defined({
    witness: line.isEvent === true ? ('events' as const) : ('log' as const),
    epoch,
    first: placeOf(first),
    last: placeOf(last),
    type: logConditions.Xid.type,
    code: String(xid),
    reason: judgement.class,
    severity: judgement.severity,
    remedy: judgement.remedy,
    message: messageOf({ line, judgement, count: 1 }, isAnyProcess),
    timeMs: first.wallMs ?? first.timeMs,
    lastMs: last.wallMs ?? last.timeMs,
    lastMonotonicMs: last.monotonicMs,
    count,
    isRepeat: isSingle ? undefined : (true as const),
    lines: texts,
    process: pid === undefined ? undefined : defined({ pid, name: processName, ...facts.processOf(pid) }),
    isLost: line.isLost,
    isAnyProcess: isAnyProcess ? (true as const) : undefined,
    parts,
    repeats: repeatsOf(line, judgement),
    counter: { metric: metrics.xidErrors.name, labels: { xid: String(xid) } },
  });
}

const REPEATED = { class: 'rate', ofFaults: true } as const;
const SENTINEL = 'rules of NVSentinel (health-events-analyzer)';

/** Conditions of Xids that come again. The agent counts them. */
export const repeatConditions = named({
  RepeatedGraphicsException: {
    ...REPEATED,
    severity: 'info',
    reasons: ['SamePart'],
    meaning:
      'Graphics exceptions (Xid 13) came again on the same part of the GPU, a GPC with a TPC. The part can be damaged, or one program fails again and again: diagnostics of the vendor tell.',
    remedy: 'inspect',
    source: `${SENTINEL}: Xid 13 two or more times within 24 hours on the same GPC and TPC, faults within 15 seconds are one`,
    threshold: { growth: 1, windowMs: hours(24) },
  },
  RepeatedPageFault: {
    ...REPEATED,
    severity: 'info',
    reasons: ['OtherPrograms'],
    meaning:
      'Different programs met memory page faults (Xid 31) on this GPU. One program that fails is its own fault. Diagnostics of the vendor tell whether the GPU is damaged.',
    remedy: 'inspect',
    source: `${SENTINEL}: Xid 31 two or more times within 24 hours on the same GPU; that they are different programs is the rule of NVIDIA's catalogue`,
    threshold: { growth: 1, windowMs: hours(24) },
  },
  RepeatedLinkError: {
    ...REPEATED,
    severity: 'degraded',
    reasons: ['LinkMemory', 'LinkConnection'],
    meaning:
      'The registers of NVLink errors (Xid 74) tell the same kind of damage of the same link again: its memory (ECC, parity) or its connection. For Hopper boards.',
    remedy: 'replace',
    source: `NVIDIA's catalogue of Xids, analysis of NVLink errors (August 2025): more than two times on the same link; ${SENTINEL} counts within 24 hours`,
    threshold: { growth: 2, windowMs: hours(24) },
  },
  RepeatedXid: {
    ...REPEATED,
    severity: 'degraded',
    reasons: ['SameXid'],
    meaning:
      'The same error of the driver, of the hardware or of a link came again and again on this GPU, such as a remapped row (63) or a contained memory error (94), also when a reset ended it each time. The instance is the number of the Xid. Errors of applications do not count: a program that restarts can cause any number of them.',
    remedy: 'inspect',
    source: `${SENTINEL}: the same Xid five or more times within 24 hours on the same GPU; faults within three minutes are one, those of 74, 79, 95, 109 and 119 within three hours`,
    threshold: { growth: 4, windowMs: hours(24) },
  },
});

/** Faults of these within three hours are one: they stay until somebody acts. */
const STICKY: readonly number[] = [74, 79, 95, 109, 119];

/** What counts when it comes again. The consequence of a fault of another GPU does not. */
function repeatsOf(line: XidLine, judgement: XidJudgement): readonly FaultRepeat[] | undefined {
  const { xid, part, pid, processName, registers } = line;
  const found: FaultRepeat[] = [];
  if (xid === 13 && part !== undefined)
    found.push({ ...again(repeatConditions.RepeatedGraphicsException, 'SamePart', `Xid 13 on ${part}`), instance: part, burstMs: 15_000 });
  if (xid === 31 && pid !== undefined)
    found.push({
      ...again(repeatConditions.RepeatedPageFault, 'OtherPrograms', 'Xid 31 of different programs'),
      distinct: processName ?? `${pid}`,
    });
  const damage = repeatedLinkPart(line);
  if (damage !== undefined && registers !== undefined)
    found.push({
      ...again(repeatConditions.RepeatedLinkError, damage, `Xid 74 on link ${registers.link}`),
      instance: `link ${registers.link}`,
      ...(damage === 'LinkConnection' && { remedy: 'reseat' }),
    });
  const isCounted = ['Driver', 'Hardware', 'Link'].includes(judgement.class) && judgement.severity !== 'info' && line.isEvent !== true;
  if (isCounted) {
    const burstMs = STICKY.includes(xid) ? 10_800_000 : 180_000;
    found.push({ ...again(repeatConditions.RepeatedXid, 'SameXid', `Xid ${xid}: ${judgement.meaning}`), instance: `${xid}`, burstMs });
  }
  return found.length === 0 ? undefined : found;
}

const again = <C extends { readonly type: string; readonly reasons: readonly string[] }>(
  { type }: C,
  reason: C['reasons'][number],
  message: string,
): Pick<FaultRepeat, 'type' | 'reason' | 'message'> => ({ type, reason, message });

/** Events are numbered downwards. */
const placeOf = ({ seq, timeUsec }: RecordPlace): Fault['first'] => ({ seq: Math.abs(seq), usec: timeUsec });
