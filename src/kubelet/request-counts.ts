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
  readonly #lastMs = new Map<AskedQuestion['method'], number>();

  add({ method, code, durationMs }: AskedQuestion): void {
    const key = `${method} ${code}`;
    this.#counts.set(key, { method, code, count: (this.#counts.get(key)?.count ?? 0) + 1 });
    this.#lastMs.set(method, durationMs);
  }

  list(): readonly RequestCount[] {
    return [...this.#counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
  }

  /** How long the last question of each kind took, answered or not. */
  durations(): readonly { readonly method: AskedQuestion['method']; readonly durationMs: number }[] {
    return [...this.#lastMs].map(([method, durationMs]) => ({ method, durationMs }));
  }
}
