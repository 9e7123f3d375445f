import type { Labels, MetricSpec } from '../../model/metric.ts';
import { memoizedBy, type Readings, type Series } from '../../model/readings.ts';
import { type LabelText, labelTextOf } from '../page/labels.ts';
import type { ColumnSeries, Page } from '../page/page.ts';

/** The declared metrics of one family. */
export interface FamilyMetrics {
  readonly name: string;
  readonly metrics: readonly MetricSpec[];
}

export const CONTAINER_LABELS = ['namespace', 'pod', 'container', 'resource', 'device'] as const;

/** All declared metrics of readings, keyed by name. A metric of several families has the labels of all of them. */
export type Catalogue = ReadonlyMap<string, MetricSpec>;

/** Throws when two families declare one name with different meanings, which is a bug in the program. */
export function createCatalogue(families: readonly FamilyMetrics[]): Catalogue {
  const catalogue = new Map<string, MetricSpec>();
  for (const family of families) {
    for (const spec of family.metrics) {
      const present = catalogue.get(spec.name);
      if (present !== undefined && (present.type !== spec.type || present.help !== spec.help || present.container !== spec.container)) {
        throw new Error(`metric ${spec.name} of family ${family.name} is declared differently by another family`);
      }
      catalogue.set(spec.name, { ...spec, labels: [...new Set([...(present?.labels ?? []), ...spec.labels])] });
    }
  }
  return catalogue;
}

/** Returns the same metric for the container that holds the device. */
export function containerTwin(spec: MetricSpec): MetricSpec {
  const end =
    spec.type === 'counter'
      ? '. For a container, the count starts when the agent first sees it with the device.'
      : '; of a device held by a container.';
  return {
    ...spec,
    name: `container_${spec.name}`,
    help: `${spec.help.replace(/\.$/, '')}${end}`,
    labels: [...CONTAINER_LABELS, ...spec.labels],
  };
}

/** Metrics, keyed by the metric name of the readings. */
export type WrittenMetrics = ReadonlyMap<string, { readonly spec: MetricSpec; readonly labels: readonly string[] }>;

export function metricsOfDevices(catalogue: Catalogue): WrittenMetrics {
  return new Map([...catalogue.values()].map((spec) => [spec.name, { spec, labels: spec.labels }]));
}

/** Returns the twins of all metrics that containers also have. */
export function metricsOfContainers(catalogue: Catalogue): WrittenMetrics {
  const specs = [...catalogue.values()].filter(({ container }) => container === true);
  return new Map(specs.map((spec) => [spec.name, { spec: containerTwin(spec), labels: spec.labels }]));
}

/** Adds readings. Each has the labels `first`, which end with `device`, and then its own labels in declared order. */
export function addReadings(page: Page, metrics: WrittenMetrics, first: LabelText, { series, values }: Readings): void {
  page.column(first, writtenSeries(metrics)(series), first, values);
}

/** What a page needs of the series of a device; undefined for one that is not declared. */
const writtenSeries = memoizedBy((metrics: WrittenMetrics) =>
  memoizedBy((all: readonly Series[]) =>
    all.map(({ metric, labels = {} }): ColumnSeries | undefined => {
      const declared = metrics.get(metric);
      if (declared === undefined || hasOthers(labels, declared.labels)) return undefined;
      return { head: declared.spec, last: labelTextOf(labels, declared.labels) };
    }),
  ),
);

function hasOthers(labels: Labels, names: readonly string[]): boolean {
  for (const name in labels) if (!names.includes(name)) return true;
  return false;
}
