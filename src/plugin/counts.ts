import { DurationTally } from '../model/duration-counts.ts';
import { REFUSAL_REASONS } from './allocation/refusal.ts';

/** Event counts by name. */
export class Counts {
  readonly #counts: Map<string, number>;

  /** Names that are counted from 0. Any other name is present only after its first event. */
  constructor(names: readonly string[] = []) {
    this.#counts = new Map(names.map((name) => [name, 0]));
  }

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}

export type Method = 'GetDevicePluginOptions' | 'ListAndWatch' | 'GetPreferredAllocation' | 'Allocate' | 'PreStartContainer';

/** What is counted of one resource since the agent started, whatever settings the resource had. */
export interface ResourceCounts {
  /** Registrations by result; `ok` means that the kubelet asked for the list. */
  readonly registrations: Counts;
  /** Answers to `Allocate` by result, and refusals of `PreStartContainer`. */
  readonly allocations: Counts;
  readonly calls: DurationTally<Method>;
}

export const resourceCounts = (): ResourceCounts => ({
  registrations: new Counts(),
  // Prometheus sees no increase of a counter that first appears with the value 1, and an alert depends on these.
  allocations: new Counts(['ok', ...REFUSAL_REASONS, 'internal']),
  calls: new DurationTally(),
});
