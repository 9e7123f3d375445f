import type { AgentMetricSpec, MetricSpec } from '../../model/metric.ts';
import { labelText } from '../page/labels.ts';
import type { FinishedPage, Page } from '../page/page.ts';

export const deprecatedMetrics = {
  uses: {
    name: 'device_agent_deprecated_uses_total',
    type: 'counter',
    help: 'Scrapes that carry a deprecated metric. Absent while none is deprecated.',
    labels: ['name'],
    source: 'Agent.',
  },
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Counts the scrapes that carry a deprecated metric. */
export class DeprecatedMetrics {
  readonly #scrapes: Map<string, number>;

  constructor(specs: readonly AgentMetricSpec[]) {
    this.#scrapes = new Map(specs.flatMap(({ name, deprecated }) => (deprecated === undefined ? [] : [[name, 0]])));
  }

  /** Names of the deprecated metrics on these pages. */
  on(pages: readonly FinishedPage[]): readonly string[] {
    return [...this.#scrapes.keys()].filter((name) => pages.some((page) => page.has(name)));
  }

  scraped(names: readonly string[]): void {
    for (const name of names) this.#scrapes.set(name, (this.#scrapes.get(name) ?? 0) + 1);
  }

  addTo(page: Page): void {
    for (const [name, count] of this.#scrapes) page.add(deprecatedMetrics.uses, labelText({ name }), count);
  }
}
