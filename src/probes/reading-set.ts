import type { Labels, MetricSpec, Reading, Value } from '../model/metric.ts';

/** Readings of one device. A series that two sources tell keeps the value of the first source. */
export class ReadingSet {
  readonly #readings = new Map<string, Reading>();

  /** An undefined value adds nothing. */
  add({ name }: Pick<MetricSpec, 'name'>, value: Value | undefined, labels?: Labels): void {
    if (value === undefined) return;
    this.addAll([labels === undefined ? { metric: name, value } : { metric: name, labels, value }]);
  }

  addAll(readings: readonly Reading[]): void {
    for (const reading of readings) {
      const key = `${reading.metric} ${Object.values(reading.labels ?? {}).join(' ')}`;
      if (!this.#readings.has(key)) this.#readings.set(key, reading);
    }
  }

  list(): readonly Reading[] {
    return [...this.#readings.values()];
  }
}
