/** One series of the metrics page. */
interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A metrics page, read once. */
export class Page {
  readonly #series = new Map<string, Series[]>();

  constructor(text: string) {
    for (const line of text.split('\n')) {
      const [, name, labels = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined) continue;
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', text = '']) => [label, text]);
      this.#series.set(name, [...(this.#series.get(name) ?? []), { labels: Object.fromEntries(pairs), value: Number(value) }]);
    }
  }

  /** Value of the one series with these labels, among others. */
  value(metric: string, labels: Readonly<Record<string, string>> = {}): number | undefined {
    return this.#matching(metric, labels)?.value;
  }

  /** Text of another label of the one series with these labels. */
  label(metric: string, label: string, labels: Readonly<Record<string, string>>): string | undefined {
    return this.#matching(metric, labels)?.labels[label];
  }

  /** Sum over all series of a metric. */
  sum(metric: string): number {
    return (this.#series.get(metric) ?? []).reduce((sum, { value }) => sum + value, 0);
  }

  #matching(metric: string, labels: Readonly<Record<string, string>>): Series | undefined {
    return this.#series.get(metric)?.find((series) => Object.entries(labels).every(([name, text]) => series.labels[name] === text));
  }
}
