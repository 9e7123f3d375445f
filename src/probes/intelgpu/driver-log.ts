import type { Host } from '../../host/host.ts';
import { type KmsgReader, openKmsg } from '../../host/kernel-log/reader.ts';
import { type KmsgRecord, parseBootTimeMs } from '../../host/kernel-log/record.ts';
import type { Problem, SideReport } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { raise, raiseGrowth } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import { HARDWARE_SEVERITIES, type HardwareSeverity, type LogLine, parseLogLine } from './log-line.ts';
import { metrics } from './metrics.ts';

/** What the log told about one card since the machine booted, or since its oldest record. */
export interface CardLog {
  /** Undefined: no line tells, or lines after the last one are lost. */
  readonly isWedged?: boolean;
  readonly hasFatal?: boolean;
  readonly recoveries: number;
  readonly errors: Readonly<Record<HardwareSeverity, number>>;
}

export const EMPTY_LOG: CardLog = { recoveries: 0, errors: { fatal: 0, nonfatal: 0, correctable: 0 } };

/** Adds one line. Pure. */
export function addLine(log: CardLog, { event }: LogLine): CardLog {
  switch (event) {
    case 'loaded':
      return { ...log, isWedged: false, hasFatal: false };
    case 'wedged':
      return { ...log, isWedged: true };
    case 'recovered':
      return { ...log, recoveries: log.recoveries + 1 };
    default: {
      const errors = { ...log.errors, [event]: log.errors[event] + 1 };
      return event === 'fatal' ? { ...log, hasFatal: true, errors } : { ...log, errors };
    }
  }
}

/** Forgets that all was well, because lines are lost. What was wrong stays. Pure. */
export function afterGap({ isWedged, hasFatal, recoveries, errors }: CardLog): CardLog {
  return { recoveries, errors, ...(isWedged === true && { isWedged }), ...(hasFatal === true && { hasFatal }) };
}

/**
 * What the log tells about a virtual function: a fault of its card is also a fault of the function, and the counts belong to the card. Pure.
 */
export function functionLog(own: CardLog, { isWedged, hasFatal }: CardLog): Pick<CardLog, 'isWedged' | 'hasFatal'> {
  const [wedged, fatal] = [isWedged === true || own.isWedged, hasFatal === true || own.hasFatal];
  return { ...(wedged !== undefined && { isWedged: wedged }), ...(fatal !== undefined && { hasFatal: fatal }) };
}

/** Cards that the log is remembered for. */
const MOST_CARDS = 256;

/** Follows the lines of the drivers in the kernel log. */
export class DriverLog {
  readonly #host: Host;
  readonly #cards = new Map<string, CardLog>();
  #reader: KmsgReader | undefined;
  #lastSeq: number | undefined;
  #hasNews = false;
  #wake: (() => void) | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Reads all new records. The first call opens the log at its oldest record. */
  poll(): void {
    const path = this.#host.kmsg;
    if (path === undefined) return;
    if (this.#reader === undefined) {
      this.#reader = openKmsg({
        path,
        clock: this.#host.clock,
        observe: this.#host.observe,
        bootTimeMs: parseBootTimeMs(this.#host.proc.text('stat') ?? ''),
        onRecord: (record) => this.#add(record),
      });
      this.#reader.follow(() => {
        if (this.#hasNews) this.#wake?.();
        this.#hasNews = false;
      });
    }
    this.#reader.poll();
    this.#hasNews = false;
  }

  watch(wake: () => void): () => void {
    this.#wake = wake;
    return () => {
      this.#wake = undefined;
    };
  }

  close(): void {
    this.#reader?.close();
  }

  get problem(): Problem | undefined {
    return this.#reader?.status().problem;
  }

  /** What the log tells about a card, or about a function of the card `parent`. While it cannot be read, only what is wrong. */
  of(address: string, parent: string | undefined): LogFacts {
    const isReadable = this.#host.kmsg !== undefined && this.problem === undefined;
    const told = (name: string): CardLog => {
      const log = this.#cards.get(name) ?? EMPTY_LOG;
      return isReadable ? log : afterGap(log);
    };
    const own = told(address);
    if (parent !== undefined) return functionLog(own, told(parent));
    const { recoveries, errors, ...faults } = own;
    return isReadable ? { ...faults, counts: { recoveries, errors } } : faults;
  }

  #add(record: KmsgRecord): void {
    const { seq } = record;
    const isGap = this.#lastSeq !== undefined && seq !== this.#lastSeq + 1;
    this.#lastSeq = seq;
    if (isGap) for (const [address, log] of this.#cards) this.#cards.set(address, afterGap(log));
    const line = parseLogLine(record);
    if (line === undefined || (this.#cards.size >= MOST_CARDS && !this.#cards.has(line.address))) return;
    this.#cards.set(line.address, addLine(this.#cards.get(line.address) ?? EMPTY_LOG, line));
    this.#hasNews = true;
  }
}

/** Report of the log on one card or function; undefined when the log tells nothing. Without counts it has only faults. Pure. */
export function logReport({ isWedged, hasFatal, counts }: LogFacts): SideReport | undefined {
  const errors = counts?.errors.nonfatal;
  const findings: Finding[] = [
    ...(isWedged === undefined ? [] : [wedged(isWedged)]),
    ...(hasFatal === undefined ? [] : [fatal(hasFatal)]),
    ...raiseGrowth(conditions.HardwareNonfatal, errors, `hardware errors that were not corrected: ${errors}`),
  ];
  if (findings.length === 0) return undefined;
  return { findings, readings: counts === undefined ? [] : countReadings(counts) };
}

export interface LogFacts extends Pick<CardLog, 'isWedged' | 'hasFatal'> {
  /** Absent while the log cannot be read. */
  readonly counts?: Pick<CardLog, 'recoveries' | 'errors'>;
}

function wedged(status: boolean): Finding {
  const message = status ? 'the driver declared the card as wedged' : 'the driver was loaded and did not give the card up since';
  return raise(conditions.Wedged, status ? 'DeclaredWedged' : 'DriverLoaded', { status, message });
}

function fatal(status: boolean): Finding {
  const message = status ? 'the card reported a fatal hardware error' : 'the driver was loaded and logged no fatal error since';
  return raise(conditions.HardwareFatal, status ? 'FatalError' : 'DriverLoaded', { status, message });
}

function countReadings({ recoveries, errors }: Pick<CardLog, 'recoveries' | 'errors'>): Reading[] {
  return [
    { metric: metrics.recoveries.name, value: recoveries },
    ...HARDWARE_SEVERITIES.map((severity) => ({ metric: metrics.hardwareErrors.name, labels: { severity }, value: errors[severity] })),
  ];
}
