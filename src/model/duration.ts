/** A duration in milliseconds. The brand prevents the use of seconds or plain numbers. */
export type Millis = number & { readonly unit: 'ms' };

export const millis = (value: number): Millis => value as Millis;
export const seconds = (value: number): Millis => (value * 1_000) as Millis;
export const minutes = (value: number): Millis => (value * 60_000) as Millis;
export const hours = (value: number): Millis => (value * 3_600_000) as Millis;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses Prometheus-style durations such as `10s`, `1m30s` or `250ms`; undefined when the text is not one. */
export function parseDuration(text: string): Millis | undefined {
  const trimmed = text.trim();
  if (trimmed === '0') return millis(0);
  if (!/^(?:\d+(?:ms|s|m|h|d))+$/.test(trimmed)) return undefined;
  let total = 0;
  for (const [, amount, unit] of trimmed.matchAll(/(\d+)(ms|s|m|h|d)/g)) {
    total += Number(amount) * (UNIT_MS[unit as string] as number);
  }
  return millis(total);
}

/** Formats a duration for {@link parseDuration}: `90000` becomes `1m30s`. */
export function formatDuration(duration: Millis): string {
  let rest = Math.round(duration);
  if (rest === 0) return '0s';
  let text = '';
  for (const unit of ['d', 'h', 'm', 's', 'ms']) {
    const size = UNIT_MS[unit] as number;
    const amount = Math.floor(rest / size);
    if (amount > 0) text += `${amount}${unit}`;
    rest -= amount * size;
  }
  return text;
}
