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

/** A duration as people read it, with two units at most: `3 d 4 h`, `12 min`, `0.4 s`. What is left of a smaller unit is not told. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, ms) / 1_000;
  if (seconds < 10) return `${rounded(seconds < 1 ? seconds : Math.round(seconds * 10) / 10)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  const hours = Math.floor(seconds / 3_600);
  if (hours < 24) return inUnits(hours, 'h', Math.floor((seconds % 3_600) / 60), 'min');
  return inUnits(Math.floor(hours / 24), 'd', hours % 24, 'h');
}

const inUnits = (large: number, unit: string, small: number, smallUnit: string): string =>
  small === 0 ? `${large} ${unit}` : `${large} ${unit} ${small} ${smallUnit}`;

/** All of a duration in the same units, for a limit that must be exact: `1 min 30 s`. */
export const exactDurationText = (ms: number): string =>
  formatDuration(millis(ms))
    .replace(/(\d+)(ms|[dhms])/g, (_part, amount: string, unit: string) => `${amount} ${unit === 'm' ? 'min' : unit} `)
    .trimEnd();

/** Rounds to about three significant digits. */
export function rounded(value: number): string {
  const magnitude = Math.abs(value);
  return String(Number(value.toFixed(magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2)));
}
