import type { ProblemSpec } from '../../model/collection.ts';

/** Stands for the errno name when a file holds a value that its sensor cannot measure. */
export const IMPOSSIBLE = 'not a possible value';

/** Problems of a family whose sensors are checked. */
export const sensorProblems = [
  {
    code: 'impossible-value',
    meaning: 'A sensor reports a value, or a limit, that no part can have, such as 4 million °C. It is ignored.',
    remedy: 'Update the firmware of the device and its driver. If it remains, report the file with the kernel and the device.',
  },
  {
    code: 'limit-not-credible',
    meaning: 'A cool part was above its critical limit from the first reading on, so the limit is not used. No condition follows from it.',
    remedy: 'Compare the limit with the manual of the device. A lower reading, or another limit, makes the agent use the limit again.',
  },
] as const satisfies readonly ProblemSpec[];

/**
 * Below this reading, in °C, a part is cool: it is the end of the commercial temperature range, which all parts of a board support.
 */
const COOL = 70;

/**
 * Limits of one device or one family. A limit is not credible when a cool part exceeds it at the first reading: some controllers report the
 * limit of an unused sensor. A later reading below the limit makes it credible.
 */
export class CredibleLimits {
  readonly #limits = new Map<string, { readonly limit: number; readonly isCredible: boolean }>();

  /** Returns whether the limit is credible. Both values are in °C. `isReached`: what the device itself reports. */
  has(key: string, celsius: number, limit: number, isReached: boolean = celsius >= limit): boolean {
    const before = this.#limits.get(key);
    const isCredible = !isReached || (before?.limit === limit ? before.isCredible : celsius >= COOL);
    this.#limits.set(key, { limit, isCredible });
    return isCredible;
  }
}

/** Message of the problem `limit-not-credible`. */
export const notCredible = (sensor: string, limit: number): string =>
  `the critical limit of ${sensor} is ${limit} °C, and the cool part was above it from the first reading on`;
