import type { AgentStats } from '../model/agent-stats.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { addAgent, type PageFacts } from './agent-metrics.ts';
import { addContainers } from './container-metrics.ts';
import { createCatalogue, type FamilyMetrics, ReadingWriter } from './reading-metrics.ts';
import { CONTENT_TYPES, type Format, joinPages, renderPage } from './render.ts';
import { countSeries, type MetricSeries, SeriesPage } from './series-page.ts';

export interface ExpositionSources {
  readonly families: readonly FamilyMetrics[];
  snapshot(): Snapshot | undefined;
  agent(): AgentStats;
}

/** The metrics page in all its forms. It reads the latest snapshot and touches no hardware. */
export interface Exposition {
  /** Prometheus text format 0.0.4. */
  text(): Promise<string>;
  /** OpenMetrics 1.0. */
  openMetrics(): Promise<string>;
  /** The part of {@link Exposition.text} that is about devices and containers, to the letter. Empty before the first snapshot. */
  devices(): Promise<string>;
  readonly contentTypes: Readonly<Record<Format, string>>;
}

/** Devices and containers of one snapshot: collected once, written once per format. */
interface Hardware {
  readonly snapshot: Snapshot;
  readonly metrics: readonly MetricSeries[];
  readonly facts: PageFacts;
  readonly pages: Map<Format, Promise<string>>;
}

export function createExposition(sources: ExpositionSources): Exposition {
  const writer = new ReadingWriter(createCatalogue(sources.families));
  let latest: Hardware | undefined;

  const hardware = (): Hardware | undefined => {
    const snapshot = sources.snapshot();
    if (snapshot === undefined) return undefined;
    if (latest?.snapshot !== snapshot) latest = collectHardware(snapshot, writer);
    return latest;
  };
  const page = async (format: Format): Promise<string> => {
    const now = hardware();
    const agent = new SeriesPage();
    addAgent(agent, sources.agent(), now);
    return joinPages([await hardwarePage(now, format), await renderPage(agent.finish(), format)], format);
  };

  return {
    text: () => page('text'),
    openMetrics: () => page('openmetrics'),
    devices: () => hardwarePage(hardware(), 'text'),
    contentTypes: CONTENT_TYPES,
  };
}

function collectHardware(snapshot: Snapshot, writer: ReadingWriter): Hardware {
  const page = new SeriesPage();
  writer.addDevices(page, snapshot);
  addContainers(page, snapshot);
  writer.addContainers(page, snapshot);
  const metrics = page.finish();
  const container = countSeries(metrics.filter((metric) => metric.name.startsWith('container_')));
  const series = { device: countSeries(metrics) - container, container };
  return { snapshot, metrics, facts: { series, dropped: page.dropped }, pages: new Map() };
}

async function hardwarePage(hardware: Hardware | undefined, format: Format): Promise<string> {
  if (hardware === undefined) return '';
  let page = hardware.pages.get(format);
  if (page === undefined) {
    page = renderPage(hardware.metrics, format);
    hardware.pages.set(format, page);
  }
  return page;
}
