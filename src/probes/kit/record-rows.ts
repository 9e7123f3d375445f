import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';
import { plainValue } from './text.ts';

/** How the integer of a record becomes the value of its metric. `text` says it in the reference. */
export interface Scale {
  readonly text: string;
  of(raw: bigint): Value;
}

const PLAIN: Scale = { text: '', of: plainValue };
export const times = (factor: bigint, unit = ''): Scale => ({ text: `${unit} x ${factor}`, of: (raw) => plainValue(raw * factor) });
export const per = (divisor: number, unit = ''): Scale => ({ text: `${unit} / ${divisor}`, of: (raw) => Number(raw) / divisor });

/** One integer of a record (the log of a drive, a line of numbers, an answer of the kernel) and the series that it feeds. */
export interface RecordRow<Field> {
  readonly field: Field;
  readonly metric: MetricSpec;
  readonly labels?: Labels;
  readonly scale: Scale;
}

/** The rows of one metric: its fields, each with the value of the metric's one label. The source of the metric names them. */
export function recordRows<Field>(
  spec: MetricSpec,
  fields: readonly (readonly [field: Field, value?: string | undefined])[],
  scale: Scale = PLAIN,
): readonly RecordRow<Field>[] {
  const label = spec.labels[0] as string;
  const told = fields.map(([field, value]) => (value === undefined ? field : `${field} (${label} ${value})`));
  const metric = { ...spec, source: `${spec.source}${told.join(', ')}${scale.text}` };
  return fields.map(([field, value]) => ({ field, metric, scale, ...(value !== undefined && { labels: { [label]: value } }) }));
}

/** The metrics of rows, each once. */
export const metricsOf = (rows: readonly Pick<RecordRow<unknown>, 'metric'>[]): readonly MetricSpec[] => [
  ...new Set(rows.map(({ metric }) => metric)),
];

/** The readings of one record. A field without a value gives none. */
export const recordReadings = <Field>(rows: readonly RecordRow<Field>[], rawOf: (field: Field) => bigint | undefined): Reading[] =>
  rows.flatMap(({ field, metric: { name }, labels, scale }) => {
    const raw = rawOf(field);
    if (raw === undefined) return [];
    return labels === undefined ? { metric: name, value: scale.of(raw) } : { metric: name, labels, value: scale.of(raw) };
  });
