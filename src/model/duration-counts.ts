/** Upper bounds of the agent's duration histograms, in seconds: from a file read to a timeout of the kubelet. */
export const DURATION_BOUNDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10] as const;

/** Histogram of durations. Immutable plain data. */
export interface DurationCounts {
  /** For each of {@link DURATION_BOUNDS}, the number of durations up to that bound. */
  readonly withinBounds: readonly number[];
  readonly count: number;
  readonly sumSeconds: number;
}

export const NO_DURATIONS: DurationCounts = { withinBounds: DURATION_BOUNDS.map(() => 0), count: 0, sumSeconds: 0 };

/** Returns the counts with one more duration. */
export function withDuration({ withinBounds, count, sumSeconds }: DurationCounts, seconds: number): DurationCounts {
  return {
    withinBounds: withinBounds.map((within, at) => (seconds <= (DURATION_BOUNDS[at] as number) ? within + 1 : within)),
    count: count + 1,
    sumSeconds: sumSeconds + seconds,
  };
}

/** {@link DurationCounts} keyed by name. A name appears with its first duration. */
export class DurationTally<Name extends string> {
  readonly #counts = new Map<Name, DurationCounts>();

  add(name: Name, seconds: number): void {
    this.#counts.set(name, withDuration(this.#counts.get(name) ?? NO_DURATIONS, seconds));
  }

  list(): { readonly method: Name; readonly durations: DurationCounts }[] {
    return [...this.#counts].map(([method, durations]) => ({ method, durations }));
  }
}
