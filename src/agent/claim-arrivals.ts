import { allocationKey, type Claim } from '../model/allocation.ts';
import { type AllocationState, fitsNoDevice } from '../model/snapshot.ts';

/** Finds claims for devices that no probe knows yet, so that their family is read at once. Each claim causes one read. */
export class ClaimArrivals {
  /** Families of the devices that a driver's claims had. */
  readonly #familiesOf = new Map<string, Set<string>>();
  /** Time at which each claim without a device was first seen. */
  #unknown: ReadonlyMap<string, number> = new Map();

  /**
   * Returns for each family a time: a read that begins later can find the devices of all its claims that have none. Undefined for a family
   * without such a claim. Any family may have the
   * devices of a driver that is not known. `nowMs`: monotonic clock.
   */
  look(allocations: readonly AllocationState[], nowMs: number): (family: string) => number | undefined {
    const unknown = new Map<string, number>();
    const wanted = new Map<string, number>();
    for (const state of allocations) if (state.allocation.claim !== undefined) this.#learn(state.allocation.claim, state.devices);
    for (const { allocation, unresolved } of allocations) {
      if (allocation.claim === undefined || !fitsNoDevice(unresolved)) continue;
      const key = allocationKey(allocation);
      const seenMs = this.#unknown.get(key) ?? nowMs;
      unknown.set(key, seenMs);
      for (const family of this.#familiesOf.get(allocation.claim.driver) ?? [ANY])
        wanted.set(family, Math.max(seenMs, wanted.get(family) ?? seenMs));
    }
    this.#unknown = unknown;
    return (family) => latest(wanted.get(family), wanted.get(ANY));
  }

  #learn({ driver }: Claim, devices: readonly string[]): void {
    for (const key of devices) {
      const family = key.slice(0, key.indexOf('/'));
      this.#familiesOf.set(driver, (this.#familiesOf.get(driver) ?? new Set()).add(family));
    }
  }
}

const ANY = '';

function latest(...times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
}
