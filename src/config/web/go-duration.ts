const UNIT_MS: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };
const PART = '(?:\\d+\\.?\\d*|\\.\\d+)(?:ns|[uµμ]s|ms|s|m|h)';
const WHOLE = new RegExp(`^[+-]?(?:0|(?:${PART})+)$`);
/** Go counts nanoseconds in 64 bits. */
const LONGEST_MS = 2 ** 63 / 1e6;

/** Milliseconds of a duration as Go's `time.ParseDuration` reads it. A number without a unit is nanoseconds. Undefined: neither. */
export function goDuration(value: string | number): number | undefined {
  const total =
    typeof value === 'number'
      ? Math.trunc(value) / 1e6
      : WHOLE.test(value)
        ? [...value.matchAll(/([\d.]+)(\D+)/g)].reduce(
            (sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit as string] as number),
            0,
          )
        : Number.NaN;
  if (!(Math.abs(total) < LONGEST_MS)) return undefined;
  return typeof value === 'string' && value.startsWith('-') ? -total : total;
}
