/** Share of a time in the power state C6 from which on nothing worked. A look of the agent itself wakes the card for a moment. */
const IDLE_SHARE = 0.99;
/** Shortest time between two reads that tells a share. The files count whole milliseconds. */
const SHORTEST_MS = 1_000;

type Before = { readonly residencyMs: ReadonlyMap<string, number>; readonly atMs: number } | { readonly activeMs: number | bigint };

/** Tells when a card certainly did nothing between two reads. It never tells that a card worked, because a GT outside C6 may be idle. */
export class IdleMeter {
  #before: Before | undefined;

  /** `residencyMs`: time in C6 of every GT. Returns true when all of them were in C6 since the last read. */
  awake(residencyMs: ReadonlyMap<string, number>, nowMs: number): boolean {
    const before = this.#before;
    this.#before = { residencyMs, atMs: nowMs };
    if (before === undefined || !('atMs' in before)) return false;
    const elapsedMs = nowMs - before.atMs;
    if (elapsedMs < SHORTEST_MS) return false;
    return [...residencyMs].every(([gt, now]) => {
      const start = before.residencyMs.get(gt);
      return start !== undefined && now - start >= IDLE_SHARE * elapsedMs;
    });
  }

  /** `activeMs`: time that the card was awake since the driver was loaded. Returns true when the card slept since the last read. */
  asleep(activeMs: number | bigint | undefined): boolean {
    const before = this.#before;
    this.#before = activeMs === undefined ? undefined : { activeMs };
    return before !== undefined && 'activeMs' in before && before.activeMs === activeMs;
  }

  /** Nothing tells. */
  unknown(): boolean {
    this.#before = undefined;
    return false;
  }
}
