/** A resource whose ids say nothing about hardware ("0", "1", …), and the devices that its holders can use. */
export interface PoolRule {
  /** `vendor.com/kind`, exact. */
  readonly resource: string;
  /** Device ids or aliases; `*` stands for any run of characters. */
  readonly devices: readonly string[];
}
