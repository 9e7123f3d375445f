import { type Metric, Registry, type RegistryContentType } from 'prom-client';
import type { Declared } from './declared.ts';
import { escapeHelp, type LabelText } from './labels.ts';
import { layOut, type MetricLayout } from './layout.ts';
import type { Section } from './section.ts';

export type Format = 'text' | 'openmetrics';

export const CONTENT_TYPES: Readonly<Record<Format, RegistryContentType>> = {
  text: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

/**
 * One metric of a snapshot as prom-client takes it. Made anew for each rendering, since a registry in OpenMetrics mode
 * renames the counters that are registered with it.
 */
interface RenderedMetric {
  name: string;
  readonly type: string;
  readonly text: string;
}

/**
 * prom-client's registry, which refuses a name given twice and frames both formats, with one method replaced: prom-client's
 * own writer turns a `bigint` into `+Inf` and knows no absolute counters.
 */
class SnapshotRegistry extends Registry<RegistryContentType> {
  async getMetricsAsString(metric: RenderedMetric): Promise<string> {
    return metric.text;
  }
}

/** Page of all sections given, complete in its format. Nothing given is changed. */
export async function renderPage(sections: readonly Section[], format: Format): Promise<string> {
  const { metrics } = layOut(sections);
  if (metrics.length === 0) return format === 'text' ? '' : END;
  const registry = new SnapshotRegistry();
  registry.setContentType(CONTENT_TYPES[format]);
  for (const metric of metrics) {
    const { name, type } = metric.declared;
    const rendered: RenderedMetric = { name, type, text: metricText(metric, sections, format) };
    registry.registerMetric(rendered as unknown as Metric);
  }
  return registry.metrics();
}

/** Last line of OpenMetrics. */
export const END = '# EOF\n';

/** HELP, TYPE and the samples of one metric, without a line feed at the end. */
function metricText({ declared, sections, places, names, labels }: MetricLayout, from: readonly Section[], format: Format): string {
  let text = metricHead(declared, format);
  for (const [at, name] of names.entries()) {
    text += `${lineStart(name, labels[at] as LabelText)}${from[sections[at] as number]?.values[places[at] as number]}`;
  }
  return text;
}

/** HELP and TYPE of one metric, without a line feed at the end. */
export function metricHead({ name, type, help }: Declared, format: Format): string {
  const openMetrics = format === 'openmetrics';
  const family = openMetrics && type === 'counter' ? name.replace(/_total$/, '') : name;
  return `# HELP ${family} ${escapeHelp(help, openMetrics)}\n# TYPE ${family} ${type}`;
}

/** The line of a sample up to its value, with the line feed before it. */
export function lineStart(name: string, labels: LabelText): string {
  return labels === '' ? `\n${name} ` : `\n${name}{${labels}} `;
}
