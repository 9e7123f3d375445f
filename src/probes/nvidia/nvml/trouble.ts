import { ECC_TOTALS } from './field-plan.ts';
import type { Values } from './sheet.ts';

/** Read at each refresh. While none of these changes, errors by memory and repairs hardly do. */
const SIGNS: readonly string[] = [
  ...ECC_TOTALS,
  ...['corr', 'unc', 'pending', 'failure'].map((what) => `remapped_rows/remapped_row_${what}`),
  'gpu_recovery_action',
];

/** Tells whether a GPU shows signs of new errors. */
export class TroubleWatch {
  /** Whether the driver tells how many errors there are in all: else nothing tells when there are more. */
  isTold = false;
  readonly #values: Values;
  readonly #seen: Values[string][] = SIGNS.map(() => undefined);
  #isNew = true;

  constructor(values: Values) {
    this.#values = values;
  }

  /** Whether a sign changed since the last call. `mayDiffer`: something else than numbers of readings changed since then. */
  take(mayDiffer: boolean): boolean {
    if (!mayDiffer && !this.#isNew) return false;
    let isOther = this.#isNew;
    this.#isNew = false;
    this.isTold = ECC_TOTALS.every((path) => typeof this.#values[path] === 'number');
    for (const [at, path] of SIGNS.entries()) {
      const value = this.#values[path];
      if (value === this.#seen[at]) continue;
      this.#seen[at] = value;
      isOther = true;
    }
    return isOther;
  }

  forget(): void {
    this.#isNew = true;
  }
}
