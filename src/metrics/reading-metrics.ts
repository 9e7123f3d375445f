import type { Device } from '../model/device.ts';
import type { Labels, MetricSpec, SeriesId, Value } from '../model/metric.ts';
import type { Readings } from '../model/readings.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { holderLabels } from './container-metrics.ts';
import { addDevice, identityLabels } from './device-metrics.ts';
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

/** The labels that a reading had at its place in the last snapshot, as text. */
interface KeptText {
  readonly written: Written;
  readonly labels: Labels | undefined;
  /** Undefined when the reading has a label that its metric does not declare. */
  readonly text: LabelText | undefined;
}

/** The texts of the device that stood at a place in the last snapshot. */
interface DeviceText {
  readonly device: Device;
  readonly label: LabelText;
  readonly identity: LabelText;
}

/**
 * Adds what probes measured: identity, verdict and readings of each device, then the readings that belong to containers.
 * Label texts are taken from the last snapshot where a reading at the same place had the same labels, and where the device was the same, so that no more is kept
 * than one snapshot needs.
 */
export class ReadingWriter {
  readonly #metrics: ReadonlyMap<string, Written>;
  readonly #twins: ReadonlyMap<string, Written>;
  #deviceTexts: DeviceText[] = [];
  #readingTexts: KeptText[] = [];
  #twinTexts: KeptText[] = [];

  constructor(catalogue: Catalogue) {
    const specs = [...catalogue.values()];
    this.#metrics = new Map(specs.map((spec) => [spec.name, { spec, names: spec.labels }]));
    const twins = specs.filter((spec) => spec.container === true);
    this.#twins = new Map(twins.map((spec) => [spec.name, { spec: containerTwin(spec), names: spec.labels }]));
  }

  addDevices(page: SeriesPage, snapshot: Snapshot): void {
    let at = 0;
    for (const [place, state] of snapshot.devices.entries()) {
      const { label, identity } = this.#textOf(state.device, place);
      addDevice(page, state, label, identity);
      addReadings(page, this.#metrics, label, state.readings, this.#readingTexts, at);
      at += state.readings.length;
    }
    this.#readingTexts.length = at;
    this.#deviceTexts.length = snapshot.devices.length;
  }

  #textOf(device: Device, place: number): DeviceText {
    const last = this.#deviceTexts[place];
    if (last?.device === device) return last;
    const text = { device, label: labelText({ device: device.id }), identity: identityLabels(device) };
    this.#deviceTexts[place] = text;
    return text;
  }

  addContainers(page: SeriesPage, snapshot: Snapshot): void {
    let at = 0;
    for (const one of snapshot.containerReadings) {
      const prefix = joinLabels(holderLabels(one), labelText({ resource: one.resource, device: one.device }));
      addReadings(page, this.#twins, prefix, one.readings, this.#twinTexts, at);
      at += one.readings.length;
    }
    this.#twinTexts.length = at;
  }
}

/** `first`: place of the first of them among the texts that are kept. */
function addReadings(
  page: SeriesPage,
  declared: ReadonlyMap<string, Written>,
  prefix: LabelText,
  { series, values }: Readings,
  kept: KeptText[],
  first: number,
): void {
  for (let at = 0; at < values.length; at += 1) {
    const { metric, labels } = series[at] as SeriesId;
    const written = declared.get(metric);
    const text = written === undefined ? undefined : keptText(kept, first + at, written, labels);
    if (written === undefined || text === undefined) page.drop('undeclared');
    else page.add(written.spec, prefix, values[at] as Value, text);
  }
}

/** The text of labels at a place, made anew only when they are not those that stood there. */
function keptText(kept: KeptText[], at: number, written: Written, labels: Labels | undefined): LabelText | undefined {
  const last = kept[at];
  if (last?.written === written && last.labels === labels) return last.text;
  const text = last?.written === written && areSameLabels(last.labels, labels) ? last.text : ownLabels(labels, written.names);
  kept[at] = { written, labels, text };
  return text;
}

/** In declared order; undefined when there is a label that the metric does not declare. */
function ownLabels(labels: Labels | undefined, names: readonly string[]): LabelText | undefined {
  if (labels === undefined) return '';
  if (Object.keys(labels).some((name) => !names.includes(name))) return undefined;
  return labelText(Object.fromEntries(names.map((name) => [name, known(labels[name])])));
}

/** True for the same names and values, in whatever order. */
function areSameLabels(a: Labels | undefined, b: Labels | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  let names = 0;
  for (const name in a) {
    if (a[name] !== b[name]) return false;
    names += 1;
  }
  for (const _ in b) names -= 1;
  return names === 0;
}
