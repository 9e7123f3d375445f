import { ECC_TOTALS } from './field-plan.ts';
import type { Values } from './getter.ts';

/** Read at each refresh. While none of these changes, errors by memory and repairs hardly do. */
const SIGNS: readonly string[] = [
  ...ECC_TOTALS,
  ...['corr', 'unc', 'pending', 'failure'].map((what) => `remapped_rows/remapped_row_${what}`),
  'gpu_recovery_action',
];

/** Tells whether a GPU shows signs of new errors. */
export class TroubleWatch {
  readonly #values: Values;
  readonly #seen: Values[string][] = SIGNS.map(() => undefined);
  #isNew = true;

  constructor(values: Values) {
    this.#values = values;
  }

  /** Whether the driver tells how many errors there are in all: else nothing tells when there are more. */
  get isTold(): boolean {
    return ECC_TOTALS.every((path) => typeof this.#values[path] === 'number');
  }

  /** Whether a sign changed since the last call. */
  take(): boolean {
    let isOther = this.#isNew;
    this.#isNew = false;
    for (let at = 0; at < SIGNS.length; at += 1) {
      const value = this.#values[SIGNS[at] as string];
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
