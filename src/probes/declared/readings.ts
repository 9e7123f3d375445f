import type { Reading } from '../../model/metric.ts';
import { fill, plain } from '../kit/template.ts';
import { sharedMetric } from './conditions.ts';
import type { Declaration, DeclaredSource } from './declaration.ts';
import type { SourceFault, SourceResult } from './source-reader.ts';
import { numberOf } from './texts.ts';

/** The readings of one device. What is no number is a fault. */
export function readingsOf(
  declaration: Declaration,
  kind: string,
  read: (source: DeclaredSource) => SourceResult,
  faults: SourceFault[],
): Reading[] {
  const readings = new Map<string, Reading>();
  for (const declared of declaration.readings ?? []) {
    if (declared.kinds?.includes(kind) === false) continue;
    const isCounter = (sharedMetric(declared.metric)?.type ?? declared.type) === 'counter';
    const { values, readMs } = read(declared);
    for (const { text, words, place } of values) {
      const value = numberOf(text, declared);
      if (value === undefined || (isCounter && value < 0)) {
        faults.push({ code: 'value-invalid', message: `${place} holds no ${isCounter ? 'count' : 'number'}` });
        continue;
      }
      const labels = Object.entries(declared.labels ?? {}).map(([name, template]) => [name, plain(fill(template, words) ?? '')]);
      const key = JSON.stringify([declared.metric, labels]);
      // Sources of one series are declared in order of preference.
      if (readings.has(key)) continue;
      const reading = { metric: declared.metric, ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }), value };
      readings.set(key, readMs === undefined ? reading : { ...reading, readMs });
    }
  }
  return [...readings.values()];
}
