/** Upper bounds, in seconds, by which the agent counts how long something took: from a file's read to what a kubelet waits for. */
export const DURATION_BOUNDS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10] as const;

/** How long the repetitions of something took, as a histogram has it. Plain data that never changes. */
export interface DurationCounts {
  /** For each of {@link DURATION_BOUNDS}, how many took no longer. */
  readonly withinBounds: readonly number[];
  readonly count: number;
  readonly sumSeconds: number;
}

export const NO_DURATIONS: DurationCounts = { withinBounds: DURATION_BOUNDS.map(() => 0), count: 0, sumSeconds: 0 };

/** The counts with one more. */
export function withDuration({ withinBounds, count, sumSeconds }: DurationCounts, seconds: number): DurationCounts {
  return {
    withinBounds: withinBounds.map((within, at) => (seconds <= (DURATION_BOUNDS[at] as number) ? within + 1 : within)),
    count: count + 1,
    sumSeconds: sumSeconds + seconds,
  };
}

/** {@link DurationCounts} by name; starts with none, so that a name appears once it happened. */
export class DurationTally<Name extends string> {
  readonly #counts = new Map<Name, DurationCounts>();

  add(name: Name, seconds: number): void {
    this.#counts.set(name, withDuration(this.#counts.get(name) ?? NO_DURATIONS, seconds));
  }

  list(): { readonly method: Name; readonly durations: DurationCounts }[] {
    return [...this.#counts].map(([method, durations]) => ({ method, durations }));
  }
}
