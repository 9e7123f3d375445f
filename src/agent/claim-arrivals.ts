import { allocationKey, type Claim } from '../model/allocation.ts';
import type { AllocationState } from '../model/snapshot.ts';

/** Finds claims for devices that no probe knows yet, so that their family is read at once. Each claim causes one read. */
export class ClaimArrivals {
  /** Families of the devices that a driver's claims had. */
  readonly #familiesOf = new Map<string, Set<string>>();
  #unknown: ReadonlySet<string> = new Set();

  /** Returns the families to read now. Any family may have the devices of a driver that is not known. */
  families(allocations: readonly AllocationState[]): ReadonlySet<string> | 'all' {
    const unknown = new Set<string>();
    const looking = new Set<string>();
    let isAny = false;
    for (const state of allocations) if (state.allocation.claim !== undefined) this.#learn(state.allocation.claim, state.devices);
    for (const { allocation, unresolved } of allocations) {
      if (allocation.claim === undefined || unresolved !== 'no-device') continue;
      const key = allocationKey(allocation);
      unknown.add(key);
      if (this.#unknown.has(key)) continue;
      const families = this.#familiesOf.get(allocation.claim.driver);
      if (families === undefined) isAny = true;
      else for (const family of families) looking.add(family);
    }
    this.#unknown = unknown;
    return isAny ? 'all' : looking;
  }

  #learn({ driver }: Claim, devices: readonly string[]): void {
    for (const key of devices) {
      const family = key.slice(0, key.indexOf('/'));
      this.#familiesOf.set(driver, (this.#familiesOf.get(driver) ?? new Set()).add(family));
    }
  }
}
