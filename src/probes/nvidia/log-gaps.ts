import { kmsgLost } from '../../host/kernel-log/problems.ts';
import type { Problem } from '../../model/collection.ts';
import type { XidLine } from './xid-line.ts';
import { gpuKey, type XidMemory } from './xid-memory.ts';

/** Events of the library come so much later than the lines. */
const LATE_MS = 3_000;
/** Losses within this time are one: a flood overwrites records again and again. */
const ONE_LOSS_MS = 60_000;
const TOLD_MS = 3_600_000;

/** Records that the kernel log lost while it was read. All times are on the clock of the log lines. */
export class LogGaps {
  #polledAtMs: number | undefined;
  /** The latest loss, from the last poll that missed nothing. */
  #loss: { readonly fromMs: number; readonly untilMs: number } | undefined;

  /** Takes the end of a poll. */
  polled(nowMs: number): void {
    this.#polledAtMs = nowMs;
  }

  /** Takes a gap in the numbers of the records, during a poll. */
  lost(nowMs: number): void {
    const fromMs = this.#polledAtMs ?? nowMs;
    const isSame = this.#loss !== undefined && nowMs - this.#loss.untilMs <= ONE_LOSS_MS;
    this.#loss = { fromMs: isSame && this.#loss !== undefined ? this.#loss.fromMs : fromMs, untilMs: nowMs };
  }

  /**
   * Whether an event of the library tells a fault whose line is lost. All lines that came before the event must have been read. When the
   * log has a line with the Xid and GPU of that time, the event may be of that line, so it does not count.
   */
  isLost({ xid, pciAddress }: XidLine, atMs: number, { gpus }: XidMemory): boolean {
    if (this.#loss === undefined) return false;
    const fromMs = this.#loss.fromMs - LATE_MS;
    if (atMs < fromMs || atMs > this.#loss.untilMs + LATE_MS) return false;
    const isRead = gpus
      .get(gpuKey(pciAddress))
      ?.tallies.some(({ xid: known, group, lastMs = 0 }) => known === xid && group?.line.isEvent !== true && lastMs >= fromMs);
    return isRead !== true;
  }

  /** `path`: of the log. */
  problems(path: string, nowMs: number): readonly Problem[] {
    if (this.#loss === undefined || nowMs - this.#loss.untilMs > TOLD_MS) return [];
    return [{ code: kmsgLost.code, message: `${path} lost records before they were read` }];
  }
}
