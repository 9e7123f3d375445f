import { parseDuration } from '../../model/duration.ts';

interface Beat {
  readonly text: string;
  /** Monotonic clock of the first read that gave the text. */
  readonly sinceMs: number;
  /** Another text was seen before. */
  readonly hasMoved: boolean;
}

/** Since when the heartbeats of one device stand still. */
export class Heartbeats {
  readonly #beats = new Map<string, Beat>();
  #nowMs = 0;

  begin(nowMs: number): void {
    this.#nowMs = nowMs;
  }

  /** A heartbeat that was not seen to move is unknown until it has stood still for long enough. */
  see(key: string, text: string, still: string): { readonly isStalled: boolean | 'unknown'; readonly unchangedMs: number } {
    const before = this.#beats.get(key);
    const isSame = before?.text === text;
    const beat = isSame ? before : { text, sinceMs: this.#nowMs, hasMoved: before !== undefined };
    if (!isSame) this.#beats.set(key, beat);
    const unchangedMs = this.#nowMs - beat.sinceMs;
    if (unchangedMs >= (parseDuration(still) ?? 0) && isSame) return { isStalled: true, unchangedMs };
    return { isStalled: beat.hasMoved ? false : 'unknown', unchangedMs };
  }

  /** The device sleeps, so its heartbeats may stand. */
  forget(): void {
    this.#beats.clear();
  }
}
