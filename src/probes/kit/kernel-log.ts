import type { Host } from '../../host/host.ts';
import { kmsgLost } from '../../host/kernel-log/problems.ts';
import { type KmsgMessage, type KmsgReader, openKmsg } from '../../host/kernel-log/reader.ts';
import { parseBootTimeMs } from '../../host/kernel-log/record.ts';
import type { Problem } from '../../model/collection.ts';

/** A record of the log. `timeMs` is on a clock that a change of the wall clock does not move, `wallMs` on the wall clock. */
export interface DatedRecord extends KmsgMessage {
  readonly wallMs?: number;
  readonly monotonicMs?: number;
}

export interface LogTaker {
  /** Takes each record in the order of the log. Returns true when it brings news, so that the family is read soon. `isBehindGap`: records before it are lost. */
  take(record: DatedRecord, isBehindGap: boolean): boolean;
}

/** Losses within this time are one: a flood overwrites records again and again. */
const ONE_LOSS_MS = 60_000;
/** A loss is reported for this time. */
const TOLD_MS = 3_600_000;

/** `read`: the log is read. `whole`: it is read and has all records since the machine booted. */
export type LogReach = 'unread' | 'read' | 'whole';

/** The first records have the time 0, because the clock of the kernel does not run yet. No driver of a device logs then. */
const isFirstOfBoot = ({ seq, timeUsec }: KmsgMessage): boolean => seq === 0 || timeUsec === 0;

/** The time of the latest loss of records, from the last poll that missed nothing. */
export interface LogLoss {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** Follows the kernel log for one family, from the oldest record on: order, time, lost records, and the wake of the probe. */
export class KernelLog {
  readonly #host: Host;
  readonly #taker: LogTaker;
  readonly #path: string | undefined;
  /** Wall clock at which the monotonic clock was 0, as of the start. */
  readonly #originMs: number;
  #reader: KmsgReader | undefined;
  #wake: (() => void) | undefined;
  #lastSeq: number | undefined;
  #hasNews = false;
  #polledAtMs: number | undefined;
  #loss: LogLoss | undefined;
  /** The first record of the boot was read, and none was lost since. */
  #isWhole = false;

  /** `path`: `/dev/kmsg`, or a file in its format; undefined: no log is read. */
  constructor(host: Host, taker: LogTaker, path: string | undefined) {
    this.#host = host;
    this.#taker = taker;
    this.#path = path;
    this.#originMs = host.clock.now() - host.clock.monotonic();
  }

  /** Now, on the clock of the records. */
  get nowMs(): number {
    return this.timeOf(this.#host.clock.monotonic());
  }

  /** A monotonic time on the clock of the records. */
  timeOf(monotonicMs: number): number {
    return this.#originMs + monotonicMs;
  }

  get isReadable(): boolean {
    return this.#path !== undefined && this.#reader !== undefined && this.#reader.status().problem === undefined;
  }

  get reach(): LogReach {
    if (!this.isReadable) return 'unread';
    return this.#isWhole ? 'whole' : 'read';
  }

  get loss(): LogLoss | undefined {
    return this.#loss;
  }

  /** Why the log cannot be read, or that it lost records. */
  get problems(): readonly Problem[] {
    const problem = this.#reader?.status().problem;
    if (problem !== undefined) return [problem];
    if (this.#loss === undefined || this.nowMs - this.#loss.untilMs > TOLD_MS) return [];
    return [{ code: kmsgLost.code, message: `${this.#path} lost records before they were read` }];
  }

  /** Reads all new records. The first call opens the log. */
  poll(): void {
    if (this.#path === undefined) return;
    this.#reader ??= this.#open(this.#path);
    this.#reader.poll();
    this.#polled();
  }

  /** Calls `wake` when a record brings news between two polls. */
  watch(wake: () => void): () => void {
    this.#wake = wake;
    return () => {
      this.#wake = undefined;
    };
  }

  close(): void {
    this.#reader?.close();
  }

  #open(path: string): KmsgReader {
    const { clock, observe, proc } = this.#host;
    // How far the wall clock is ahead of the clock of the records.
    const aheadMs = clock.now() - this.nowMs;
    const reader = openKmsg({
      path,
      clock,
      observe,
      bootTimeMs: parseBootTimeMs(proc.text('stat') ?? ''),
      onLost: () => this.#lost(),
      onRecord: (record) => {
        const isBehindGap = this.#lastSeq !== undefined && record.seq !== this.#lastSeq + 1;
        if (this.#lastSeq === undefined) this.#isWhole = isFirstOfBoot(record);
        else if (isBehindGap) this.#isWhole = false;
        this.#lastSeq = record.seq;
        if (this.#taker.take(this.#dated(record, aheadMs), isBehindGap)) this.#hasNews = true;
      },
    });
    reader.follow(() => {
      const hasNews = this.#hasNews;
      this.#polled();
      if (hasNews) this.#wake?.();
    });
    return reader;
  }

  #polled(): void {
    this.#polledAtMs = this.nowMs;
    this.#hasNews = false;
  }

  #dated(record: KmsgMessage, aheadMs: number): DatedRecord {
    const { timeMs, live } = record;
    if (timeMs === undefined) return record;
    const logMs = live ? this.nowMs : timeMs - aheadMs;
    return { ...record, timeMs: logMs, wallMs: timeMs, monotonicMs: logMs - this.#originMs };
  }

  #lost(): void {
    const { nowMs } = this;
    const isSame = this.#loss !== undefined && nowMs - this.#loss.untilMs <= ONE_LOSS_MS;
    const fromMs = isSame && this.#loss !== undefined ? this.#loss.fromMs : (this.#polledAtMs ?? nowMs);
    this.#loss = { fromMs, untilMs: nowMs };
  }
}
