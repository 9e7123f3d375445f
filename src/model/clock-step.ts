/** A smaller difference between the clocks is drift. */
export const CLOCK_STEP_MS = 1_000;

/** A moment on both clocks. */
interface Both {
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** A time on the wall clock as it is set now. `monotonicMs`: the same time on the monotonic clock; without it nothing is known of steps. */
export function wallClockOf(atMs: number, monotonicMs: number | undefined, now: Both): number {
  if (monotonicMs === undefined) return atMs;
  const presentMs = now.nowMs - (now.monotonicMs - monotonicMs);
  return Math.abs(presentMs - atMs) > CLOCK_STEP_MS ? presentMs : atMs;
}
