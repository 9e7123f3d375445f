import type { Labels, MetricSpec, Reading } from '../model/metric.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { holderLabels } from './container-metrics.ts';
import { addDevice } from './device-metrics.ts';
import { joinLabels, known, type LabelText, labelText } from './labels.ts';
import type { SeriesPage } from './series-page.ts';

/** One family's declared metrics. */
export interface FamilyMetrics {
  readonly name: string;
  readonly metrics: readonly MetricSpec[];
}

export const CONTAINER_LABELS = ['namespace', 'pod', 'container', 'resource', 'device'] as const;

/** All declared metrics of readings by name; a metric that several families measure has the labels of all of them. */
export type Catalogue = ReadonlyMap<string, MetricSpec>;

/** Throws when two families declare one name with different meanings: that is a mistake in the program, not in its input. */
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

/** The same metric for the container that holds the device. */
export function containerTwin(spec: MetricSpec): MetricSpec {
  const since = spec.type === 'counter' ? ', since that container was first seen with it.' : '.';
  return {
    ...spec,
    name: `container_${spec.name}`,
    help: `${spec.help.replace(/\.$/, '')}; of a device held by a container${since}`,
    labels: [...CONTAINER_LABELS, ...spec.labels],
  };
}

/** A metric as it is written, and the label names that its readings may carry. */
interface Written {
  readonly spec: MetricSpec;
  readonly names: readonly string[];
}

/** Adds what probes measured: identity, verdict and readings of each device, then the readings that belong to containers. */
export class ReadingWriter {
  readonly #metrics: ReadonlyMap<string, Written>;
  readonly #twins: ReadonlyMap<string, Written>;
  /** Texts of label objects; a twin carries the same object as the reading it comes from. */
  readonly #texts = new WeakMap<Labels, { readonly names: readonly string[]; readonly text: LabelText }>();

  constructor(catalogue: Catalogue) {
    const specs = [...catalogue.values()];
    this.#metrics = new Map(specs.map((spec) => [spec.name, { spec, names: spec.labels }]));
    const twins = specs.filter((spec) => spec.container === true);
    this.#twins = new Map(twins.map((spec) => [spec.name, { spec: containerTwin(spec), names: spec.labels }]));
  }

  addDevices(page: SeriesPage, snapshot: Snapshot): void {
    for (const state of snapshot.devices) {
      const label = labelText({ device: state.device.id });
      addDevice(page, state, label);
      for (const reading of state.readings) this.#add(page, this.#metrics.get(reading.metric), label, reading);
    }
  }

  addContainers(page: SeriesPage, snapshot: Snapshot): void {
    const prefixes = new Map<string, LabelText>();
    for (const one of snapshot.containerReadings) {
      const key = `${one.namespace}/${one.pod}/${one.container}/${one.resource}\u0000${one.device}`;
      let prefix = prefixes.get(key);
      if (prefix === undefined) {
        prefix = joinLabels(holderLabels(one), labelText({ resource: one.resource, device: one.device }));
        prefixes.set(key, prefix);
      }
      this.#add(page, this.#twins.get(one.reading.metric), prefix, one.reading);
    }
  }

  #add(page: SeriesPage, written: Written | undefined, prefix: LabelText, reading: Reading): void {
    const own = written === undefined ? undefined : this.#ownLabels(reading.labels, written.names);
    if (written === undefined || own === undefined) page.drop('undeclared');
    else page.add(written.spec, joinLabels(prefix, own), reading.value);
  }

  /** In declared order; undefined when the reading has a label that its metric does not declare. */
  #ownLabels(labels: Labels | undefined, names: readonly string[]): LabelText | undefined {
    if (labels === undefined) return '';
    const cached = this.#texts.get(labels);
    if (cached?.names === names) return cached.text;
    if (Object.keys(labels).some((name) => !names.includes(name))) return undefined;
    const text = labelText(Object.fromEntries(names.map((name) => [name, known(labels[name])])));
    this.#texts.set(labels, { names, text });
    return text;
  }
}
