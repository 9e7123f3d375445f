/** A resource whose ids do not identify hardware ("0", "1", …), and the devices that its holders can use. */
export interface PoolRule {
  /** `vendor.com/kind`, exact. */
  readonly resource: string;
  /** Device ids or aliases; `*` matches any number of characters. */
  readonly devices: readonly string[];
}
