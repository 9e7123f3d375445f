import { DurationTally } from '../model/duration-counts.ts';
import type { AskedQuestion } from './client.ts';

/** How many questions of one kind ended with one gRPC status. */
export interface RequestCount {
  readonly method: AskedQuestion['method'];
  /** `OK`, `UNAVAILABLE`, … */
  readonly code: string;
  readonly count: number;
}

export class RequestCounts {
  readonly #counts = new Map<string, RequestCount>();
  readonly #durations = new DurationTally<AskedQuestion['method']>();

  add({ method, code, durationMs }: AskedQuestion): void {
    const key = `${method} ${code}`;
    this.#counts.set(key, { method, code, count: (this.#counts.get(key)?.count ?? 0) + 1 });
    if (durationMs !== undefined) this.#durations.add(method, durationMs / 1_000);
  }

  list(): readonly RequestCount[] {
    return [...this.#counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
  }

  /** How long the questions of each kind took, answered or not. */
  durations(): ReturnType<DurationTally<AskedQuestion['method']>['list']> {
    return this.#durations.list();
  }
}
