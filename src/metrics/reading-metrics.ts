import type { Labels, MetricSpec, SeriesId, Value } from '../model/metric.ts';
import type { Readings } from '../model/readings.ts';
import { known, type LabelText, labelText } from './labels.ts';
import { type Section, withValues } from './section.ts';
import { SeriesPage } from './series-page.ts';

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

/** By the name that readings have. */
export type WrittenMetrics = ReadonlyMap<string, Written>;

/** Metrics of devices. */
export function writtenMetrics(catalogue: Catalogue): WrittenMetrics {
  return new Map([...catalogue.values()].map((spec) => [spec.name, { spec, names: spec.labels }]));
}

/** The same metrics for containers. */
export function writtenTwins(catalogue: Catalogue): WrittenMetrics {
  const specs = [...catalogue.values()].filter(({ container }) => container === true);
  return new Map(specs.map((spec) => [spec.name, { spec: containerTwin(spec), names: spec.labels }]));
}

/** The labels of a reading, as text. */
interface KeptText {
  readonly written: Written;
  readonly labels: Labels | undefined;
  /** Undefined when the reading has a label that its metric does not declare. */
  readonly text: LabelText | undefined;
}

/** Readings as they stand on a page, with what spares the making of the next ones. */
export interface WrittenReadings {
  readonly prefix: LabelText;
  readonly readings: Readings;
  readonly texts: readonly (KeptText | undefined)[];
  readonly section: Section;
}

/**
 * Makes a section of readings. `before`: what stood at its place on the last page, of which is taken what is the same. `prefix`: the labels
 * that all of them have.
 */
export function writeReadings(
  metrics: WrittenMetrics,
  prefix: LabelText,
  readings: Readings,
  before: WrittenReadings | undefined,
): WrittenReadings {
  if (before !== undefined && before.prefix === prefix) {
    if (before.readings === readings) return before;
    const section = otherValues(before, readings);
    if (section !== undefined) return { prefix, readings, texts: before.texts, section };
  }
  const page = new SeriesPage();
  const texts: (KeptText | undefined)[] = [];
  const { series, values } = readings;
  for (let at = 0; at < values.length; at += 1) {
    const { metric, labels } = series[at] as SeriesId;
    const written = metrics.get(metric);
    const kept = written && keptText(before?.texts[at], written, labels);
    texts.push(kept);
    if (kept?.text === undefined) page.drop('undeclared');
    else page.add(kept.written.spec, prefix, values[at] as Value, kept.text);
  }
  return { prefix, readings, texts, section: page.section(before?.section) };
}

/** The section before with the values of the same series; undefined when one had or has to be left out. */
function otherValues({ readings, section }: WrittenReadings, now: Readings): Section | undefined {
  const isSame = now.series === readings.series && section.dropped.size === 0;
  return isSame ? withValues(section, now.values) : undefined;
}

/** Made anew only when the labels are not those that stood at the same place. */
function keptText(before: KeptText | undefined, written: Written, labels: Labels | undefined): KeptText {
  if (before?.written !== written) return { written, labels, text: ownLabels(labels, written.names) };
  if (before.labels === labels) return before;
  return { written, labels, text: areSameLabels(before.labels, labels) ? before.text : ownLabels(labels, written.names) };
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
