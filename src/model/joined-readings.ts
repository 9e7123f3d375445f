import type { Value } from './metric.ts';
import { Readings } from './readings.ts';

/** Readings of several parts in one, together with the parts, so that the next time only those that changed are looked at. */
export interface JoinedReadings {
  readonly parts: readonly Readings[];
  readonly whole: Readings;
}

/** `before` itself when all parts are the same objects as then; its series when the parts have theirs. */
export function joinReadings(parts: readonly Readings[], before?: JoinedReadings): JoinedReadings {
  if (before === undefined || !haveSameSeries(parts, before.parts)) {
    const series = parts.flatMap((part) => part.series);
    const values = parts.flatMap((part) => part.values);
    return { parts, whole: new Readings(series, values) };
  }
  let values: Value[] | undefined;
  let first = 0;
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at] as Readings;
    if (part !== before.parts[at]) {
      values ??= before.whole.values.slice();
      for (let place = 0; place < part.length; place += 1) values[first + place] = part.values[place] as Value;
    }
    first += part.length;
  }
  return values === undefined ? before : { parts, whole: new Readings(before.whole.series, values) };
}

function haveSameSeries(a: readonly Readings[], b: readonly Readings[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (a[at]?.series !== b[at]?.series) return false;
  return true;
}
