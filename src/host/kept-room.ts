/** Who keeps descriptors: the files of one device or port. */
export interface Tenant {
  /** How many it keeps. */
  readonly kept: number;
  /** Gives up one of them. */
  dropOne(): void;
}

/** A bounded number of descriptors, shared fairly: a tenant with less than its share takes a place from the one that has most. */
export class KeptRoom {
  readonly #tenants = new Set<Tenant>();
  #capacity: number;
  #kept = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Descriptors kept now. */
  get kept(): number {
    return this.#kept;
  }

  /** Whether so much is left that directories may be kept open besides files. */
  get hasPlenty(): boolean {
    return this.#kept < this.#capacity / 2;
  }

  moveIn(tenant: Tenant): void {
    this.#tenants.add(tenant);
  }

  moveOut(tenant: Tenant): void {
    this.#tenants.delete(tenant);
  }

  /** Whether a tenant may keep one more; another one may have to give up one of its for that. */
  hasPlaceFor(tenant: Tenant): boolean {
    if (this.#kept < this.#capacity) return true;
    if (tenant.kept >= Math.floor(this.#capacity / this.#tenants.size)) return false;
    const largest = this.#largest();
    if (largest === undefined || largest.kept <= tenant.kept + 1) return false;
    largest.dropOne();
    return true;
  }

  /** To be called when a descriptor is kept from now on. */
  taken(): void {
    this.#kept += 1;
  }

  /** To be called when a descriptor is kept no more. */
  freed(): void {
    this.#kept -= 1;
  }

  /** When the process runs out of descriptors, others need them more: half of those kept are closed, and not kept again. */
  giveWay(): void {
    this.#capacity = Math.floor(this.#kept / 2);
    while (this.#kept > this.#capacity) this.#largest()?.dropOne();
  }

  #largest(): Tenant | undefined {
    let largest: Tenant | undefined;
    for (const tenant of this.#tenants) if (tenant.kept > (largest?.kept ?? 0)) largest = tenant;
    return largest;
  }
}
