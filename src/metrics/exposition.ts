import type { AgentStats } from '../model/agent-stats.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { addAgent } from './agent-metrics.ts';
import { type HardwarePage, HardwarePages } from './hardware-pages.ts';
import { createCatalogue, type FamilyMetrics, ReadingWriter } from './reading-metrics.ts';
import { CONTENT_TYPES, type Format, renderPage } from './render.ts';
import { SeriesPage } from './series-page.ts';

export interface ExpositionSources {
  readonly families: readonly FamilyMetrics[];
  snapshot(): Snapshot | undefined;
  agent(): AgentStats;
}

/** A page in two parts, to be sent one after the other. */
export interface PageParts {
  /** Devices and containers: the same buffer for as long as the snapshot is the same. Empty before the first one. */
  readonly kept: Buffer;
  /** The agent itself, as it is now, and the end of the page. */
  readonly live: Buffer;
}

/** The metrics page in all its forms. It reads the latest snapshot and touches no hardware. */
export interface Exposition {
  page(format: Format): Promise<PageParts>;
  /** The whole page in Prometheus text format 0.0.4. */
  text(): Promise<string>;
  /** The whole page in OpenMetrics 1.0. */
  openMetrics(): Promise<string>;
  /** The part of {@link Exposition.text} that is about devices and containers, to the letter. Empty before the first snapshot. */
  devices(): Promise<string>;
  readonly contentTypes: Readonly<Record<Format, string>>;
}

export function createExposition(sources: ExpositionSources): Exposition {
  const pages = new HardwarePages(new ReadingWriter(createCatalogue(sources.families)));
  let latest: HardwarePage | undefined;

  const hardware = (): HardwarePage | undefined => {
    const snapshot = sources.snapshot();
    if (snapshot === undefined) return undefined;
    if (latest?.snapshot !== snapshot) latest = pages.of(snapshot);
    return latest;
  };
  const page = async (format: Format): Promise<PageParts> => {
    const now = hardware();
    const agent = new SeriesPage();
    addAgent(agent, sources.agent(), now);
    const kept = now?.bytes(format) ?? Buffer.alloc(0);
    const text = await renderPage(agent.finish(), format);
    // In the text format a blank line stands between any two metrics.
    return { kept, live: Buffer.from(format === 'text' && kept.length > 0 ? `\n${text}` : text) };
  };
  const whole = async (format: Format): Promise<string> => {
    const { kept, live } = await page(format);
    return kept.toString() + live.toString();
  };

  return {
    page,
    text: () => whole('text'),
    openMetrics: () => whole('openmetrics'),
    devices: async () => hardware()?.bytes('text').toString() ?? '',
    contentTypes: CONTENT_TYPES,
  };
}
