import type { Problem } from '../model/collection.ts';
import { type DurationCounts, NO_DURATIONS, withDuration } from '../model/duration-counts.ts';
import type { FamilyState } from '../model/snapshot.ts';

/** Counts the runs of one family's probe, and remembers how the last one ended. */
export class RunTally {
  #succeeded: boolean | undefined;
  #lastSuccessMs: number | undefined;
  #durationMs: number | undefined;
  #durations: DurationCounts = NO_DURATIONS;
  #runs = 0;
  #failures = 0;
  #abandoned = 0;

  /** A run came to its end at that wall clock, and could look or could not. */
  ended(succeeded: boolean, durationMs: number, atMs: number): void {
    this.#count(succeeded);
    this.#durationMs = durationMs;
    this.#durations = withDuration(this.#durations, durationMs / 1_000);
    if (succeeded) this.#lastSuccessMs = atMs;
  }

  /** It is known without a run that there is nothing to read. */
  rested(atMs: number): void {
    this.#succeeded = true;
    this.#lastSuccessMs = atMs;
  }

  /** A run came to nothing. */
  failed(): void {
    this.#count(false);
  }

  /** A run was given up. Another one may have begun in its place. */
  abandoned(): void {
    this.#abandoned += 1;
  }

  state(family: string, problems: readonly Problem[], hung: boolean): FamilyState {
    return {
      family,
      ...(this.#succeeded !== undefined && { succeeded: this.#succeeded }),
      ...(this.#lastSuccessMs !== undefined && { lastSuccessMs: this.#lastSuccessMs }),
      ...(this.#durationMs !== undefined && { durationMs: this.#durationMs, durations: this.#durations }),
      problems,
      runs: this.#runs,
      failures: this.#failures,
      abandoned: this.#abandoned,
      hung,
    };
  }

  #count(succeeded: boolean): void {
    this.#succeeded = succeeded;
    this.#runs += 1;
    if (!succeeded) this.#failures += 1;
  }
}
