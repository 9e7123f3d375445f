import type { Reading } from '../../../model/metric.ts';
import type { Field } from '../fields.ts';
import { CHANGE, changeAt } from './changes.ts';
import type { Sheet } from './sheet.ts';

/** Of a path whose number is no reading by itself. */
export const NOWHERE = -1;

/** By number of a path: the place of the reading that is the number there. With any other number, everything is made again. */
export function placesOf({ values, form }: Sheet, fields: readonly Field[], readings: readonly Reading[]): Int16Array {
  const places = new Map<string, number>();
  for (const [at, { metric, labels }] of readings.entries()) {
    const field = fields.find((each) => each.metric === metric && each.labels === labels);
    const path = field?.paths.find((each) => typeof values[each] === 'number');
    if (path !== undefined && changeAt(path) !== CHANGE.other) places.set(path, at);
  }
  return Int16Array.from(form.paths, (path) => places.get(path) ?? NOWHERE);
}
