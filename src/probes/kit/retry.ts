import { hours, type Millis, minutes } from '../../model/duration.ts';

/** Some failing reads cost a firmware command and a line in the kernel log each. This is the longest wait before a retry. */
const RETRY_MS: Millis = hours(1);
/** First wait for a file that had a value before: busy firmware causes the same error. The wait doubles at each further failure. */
const FIRST_RETRY_MS: Millis = minutes(1);

/** Errors that usually do not go away by themselves. */
const LASTING_ERRORS: ReadonlySet<string> = new Set(['EINVAL', 'EOPNOTSUPP', 'ENOTSUP']);

export const isLasting = (error: string | undefined): boolean => error !== undefined && LASTING_ERRORS.has(error);

/** When a counter whose reads are refused is read again. */
export interface Retry {
  /** Monotonic time before which the file is not read again. */
  retryAtMs: number;
  /** Wait after the next lasting error. */
  retryAfterMs: Millis;
}

export const newRetry = (): Retry => ({ retryAtMs: 0, retryAfterMs: RETRY_MS });

/** A read failed with a lasting error. */
export function wasRefused(retry: Retry, nowMs: number): void {
  retry.retryAtMs = nowMs + retry.retryAfterMs;
  retry.retryAfterMs = Math.min(2 * retry.retryAfterMs, RETRY_MS) as Millis;
}

/** A read gave a value. */
export function wasAnswered(retry: Retry): void {
  retry.retryAfterMs = FIRST_RETRY_MS;
}
