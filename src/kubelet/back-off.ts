/** First and longest wait after a rejection; the kubelet's bucket refills within a tenth of a second, other clients may not let it. */
const FIRST_MS = 500;
const LONGEST_MS = 60_000;

/** Waits that double with each rejection in a row. Times are monotonic milliseconds. */
export class BackOff {
  #rejections = 0;
  #untilMs = Number.NEGATIVE_INFINITY;

  reject(nowMs: number): void {
    this.#untilMs = nowMs + Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(this.#rejections, 20));
    this.#rejections += 1;
  }

  reset(): void {
    this.#rejections = 0;
    this.#untilMs = Number.NEGATIVE_INFINITY;
  }

  /** Rejections in a row. */
  get rejections(): number {
    return this.#rejections;
  }

  /** 0 when asking is allowed. */
  remainingMs(nowMs: number): number {
    return Math.max(0, this.#untilMs - nowMs);
  }
}
