import type { DeviceView } from '../board/device-view.ts';
import { TREND_POINTS, TREND_STEP_MS, type Trend } from '../board/trend.ts';

/** The trend of each row, in memory that does not grow: a fixed number of points for each device that is listed. */
export class Trends {
  readonly #points = new Map<string, (number | null)[]>();
  #step: number | undefined;

  of(key: string): Trend | undefined {
    return this.#points.get(key);
  }

  load(trends: Readonly<Record<string, Trend>>): void {
    for (const [key, trend] of Object.entries(trends)) this.#points.set(key, [...trend].slice(-TREND_POINTS));
  }

  /** Adds the present values when the time of a new point came. Returns true when it did. */
  take(rows: Iterable<DeviceView>, nowMs: number): boolean {
    const step = Math.floor(nowMs / TREND_STEP_MS);
    const passed = this.#step === undefined ? 1 : step - this.#step;
    if (passed <= 0) return false;
    this.#step = step;
    const listed = new Set<string>();
    for (const { key, shown } of rows) {
      listed.add(key);
      const points = this.#points.get(key) ?? Array.from({ length: TREND_POINTS }, () => null);
      // Steps without data stay empty: a hidden page gets none.
      for (let n = 1; n < Math.min(passed, TREND_POINTS); n += 1) points.push(null);
      points.push(shown[0]?.value ?? null);
      this.#points.set(key, points.slice(-TREND_POINTS));
    }
    for (const key of this.#points.keys()) if (!listed.has(key)) this.#points.delete(key);
    return true;
  }
}
