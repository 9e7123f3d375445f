import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';

/** Readings of one device. A series that two sources tell keeps the value of the first source. */
export class ReadingSet {
  readonly #byMetric = new Map<string, Reading[]>();
  /** Time of what {@link add} adds, when an earlier collection read it. */
  readMs: number | undefined;

  /** An undefined value adds nothing. */
  add({ name }: Pick<MetricSpec, 'name'>, value: Value | undefined, labels?: Labels): void {
    if (value === undefined) return;
    const { readMs } = this;
    const reading = labels === undefined ? { metric: name, value } : { metric: name, labels, value };
    this.#addOne(readMs === undefined ? reading : { ...reading, readMs });
  }

  addAll(readings: readonly Reading[]): void {
    for (const reading of readings) this.#addOne(reading);
  }

  /** Adds readings of a metric that nothing else tells. */
  append(readings: readonly Reading[]): void {
    for (const reading of readings) {
      const others = this.#byMetric.get(reading.metric);
      if (others === undefined) this.#byMetric.set(reading.metric, [reading]);
      else others.push(reading);
    }
  }

  /** What is told of one metric. */
  of({ name }: Pick<MetricSpec, 'name'>): readonly Reading[] {
    return this.#byMetric.get(name) ?? [];
  }

  list(): readonly Reading[] {
    return [...this.#byMetric.values()].flat();
  }

  #addOne(reading: Reading): void {
    const others = this.#byMetric.get(reading.metric);
    if (others === undefined) this.#byMetric.set(reading.metric, [reading]);
    else if (!others.some(({ labels }) => haveEqualValues(labels, reading.labels))) others.push(reading);
  }
}

/** Compares labels of one metric, which all have the same names. */
function haveEqualValues(a: Labels = {}, b: Labels = {}): boolean {
  for (const name in a) if (a[name] !== b[name]) return false;
  return true;
}
