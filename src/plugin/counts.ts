import { DurationTally } from '../model/duration-counts.ts';

/** Event counts by name. A name is present only after its first event. */
export class Counts {
  readonly #counts = new Map<string, number>();

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
  allocations: new Counts(),
  calls: new DurationTally(),
});
