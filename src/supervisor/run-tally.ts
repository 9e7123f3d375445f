import type { Problem } from '../model/collection.ts';
import { type DurationCounts, NO_DURATIONS, withDuration } from '../model/duration-counts.ts';
import type { FamilyState } from '../model/snapshot.ts';

/** Counts the runs of one family's probe and keeps the result of the last one. */
export class RunTally {
  #succeeded: boolean | undefined;
  #lastSuccessMs: number | undefined;
  #durationMs: number | undefined;
  #durations: DurationCounts = NO_DURATIONS;
  #runs = 0;
  #failures = 0;
  #abandoned = 0;

  /** A run finished at that wall clock. `succeeded`: it reached the hardware. */
  ended(succeeded: boolean, durationMs: number, atMs: number): void {
    this.#count(succeeded);
    this.#durationMs = durationMs;
    this.#durations = withDuration(this.#durations, durationMs / 1_000);
    if (succeeded) this.#lastSuccessMs = atMs;
  }

  /** No run was needed, because there is nothing to read. */
  skipped(atMs: number): void {
    this.#succeeded = true;
    this.#lastSuccessMs = atMs;
  }

  /** A run failed. */
  failed(): void {
    this.#count(false);
  }

  /** A run was abandoned. Another one may have replaced it. */
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
