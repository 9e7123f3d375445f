import type { PluginCallStats } from '../model/plugin-stats.ts';

const BOUNDS_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10];

/** Counts by name; starts with none, so that a name appears once it happened. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  counts(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}

interface Histogram {
  count: number;
  sumSeconds: number;
  readonly buckets: number[];
}

/** How long calls took, by method. */
export class CallTimes {
  readonly #methods = new Map<string, Histogram>();

  add(method: string, seconds: number): void {
    const histogram = this.#methods.get(method) ?? { count: 0, sumSeconds: 0, buckets: BOUNDS_SECONDS.map(() => 0) };
    this.#methods.set(method, histogram);
    histogram.count += 1;
    histogram.sumSeconds += seconds;
    for (const [at, bound] of BOUNDS_SECONDS.entries()) if (seconds <= bound) histogram.buckets[at] = (histogram.buckets[at] ?? 0) + 1;
  }

  stats(): PluginCallStats[] {
    return [...this.#methods].map(([method, { count, sumSeconds, buckets }]) => ({
      method,
      count,
      sumSeconds,
      buckets: BOUNDS_SECONDS.map((atMostSeconds, at) => ({ atMostSeconds, count: buckets[at] ?? 0 })),
    }));
  }
}
