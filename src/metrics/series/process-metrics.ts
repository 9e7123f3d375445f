import { readdirSync, statSync } from 'node:fs';
import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { LONGEST_TIMER_MS } from '../../host/clock.ts';
import type { MetricSpec, MetricType } from '../../model/metric.ts';
import { labelText } from '../page/labels.ts';
import type { Head, Page } from '../page/page.ts';

/**
 * The library measures delays of the event loop by a timer of this period. It wakes the process, and adds its own period to each delay that it
 * reports, so it never fires and its gauges are left out. `nodejs_eventloop_lag_seconds` needs no timer.
 */
const LOOP_PRECISION_MS = LONGEST_TIMER_MS;
const LOOP_DELAY = /^nodejs_eventloop_lag_(?!seconds$)/;

/** Metrics of the agent's process, with the standard names of the Node.js client library. */
export class ProcessMetrics {
  readonly #registry = new Registry();
  readonly #heads = new Map<string, Head>();

  constructor() {
    collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: LOOP_PRECISION_MS });
    for (const { name } of this.specs()) if (LOOP_DELAY.test(name)) this.#registry.removeSingleMetric(name);
    this.#countDescriptorsCheaply();
  }

  /** The library lists all descriptors at each scrape, which takes 10 ms and more when thousands of files are open. */
  #countDescriptorsCheaply(): void {
    const library = this.#registry.getSingleMetric(OPEN_FDS);
    if (library === undefined) return;
    const { help } = library as unknown as Declared;
    this.#registry.removeSingleMetric(OPEN_FDS);
    new Gauge({
      name: OPEN_FDS,
      help,
      registers: [this.#registry],
      collect() {
        this.set(openDescriptors());
      },
    });
  }

  async addTo(page: Page): Promise<void> {
    for (const { name, help, type, values } of await this.#read()) {
      const head = this.#headOf({ name, help, type });
      let rank = 0;
      for (const { value, labels, metricName = name } of values) {
        const suffix = metricName.slice(name.length);
        if (suffix === '') page.add(head, labelText(labels), value);
        else {
          const { le, ...own } = labels;
          page.addSample(head, labelText(own), value, { suffix, last: labelText({ le }), rank });
        }
        rank += 1;
      }
    }
  }

  /** The same object for each page, as the page needs it to keep its lines. */
  #headOf(head: Head): Head {
    const known = this.#heads.get(head.name) ?? head;
    this.#heads.set(head.name, known);
    return known;
  }

  /** Returns the library's declarations. */
  specs(): readonly MetricSpec[] {
    const declared = this.#registry.getMetricsAsArray() as unknown as readonly Declared[];
    return declared.filter(isAccepted).map(({ name, help, type, labelNames }) => ({
      name,
      help,
      type: type as MetricType,
      labels: labelNames,
      source: 'prom-client',
    }));
  }

  async #read(): Promise<readonly ReadMetric[]> {
    const metrics = (await this.#registry.getMetricsAsJSON()) as unknown as readonly ReadMetric[];
    return metrics.filter(isAccepted);
  }
}

const OPEN_FDS = 'process_open_fds';
const DESCRIPTORS = '/proc/self/fd';

/** Since Linux 6.2, the size of the directory is the number of open descriptors (fs/proc/fd.c). On older kernels it is 0. */
function openDescriptors(): number {
  const { size } = statSync(DESCRIPTORS);
  return size > 0 ? size : readdirSync(DESCRIPTORS).length - 1;
}

/** Excludes the library's gauges whose names end in `_total`, because Prometheus rejects such names. */
const isAccepted = ({ name, type }: Pick<Declared, 'name' | 'type'>): boolean => type === 'counter' || !name.endsWith('_total');

/** A metric declaration of the library. */
interface Declared {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter' | 'histogram';
  readonly labelNames: readonly string[];
}

/** A metric with values, as the library returns it. */
interface ReadMetric extends Omit<Declared, 'labelNames'> {
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    readonly metricName?: string;
  }[];
}
