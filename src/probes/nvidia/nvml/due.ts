/** What is due besides what changes quickly. */
export interface Due {
  /** What can wait for half a minute. */
  readonly slow: boolean;
  /** What stays until somebody changes it. Never without the slow. */
  readonly facts: boolean;
  /** An event was told: errors and repairs are looked at whatever their totals say. */
  readonly isTroubled: boolean;
  /** Monotonic. */
  readonly nowMs: number;
}
