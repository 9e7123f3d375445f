import { type Clock, systemClock } from '../host/clock.ts';
import type { AgentStats } from '../model/agent-stats.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { AgentPage } from './agent-page.ts';
import { type HardwarePage, HardwarePages } from './hardware-pages.ts';
import { createCatalogue, type FamilyMetrics } from './reading-metrics.ts';
import { CONTENT_TYPES, type Format } from './render.ts';

export interface ExpositionSources {
  readonly families: readonly FamilyMetrics[];
  snapshot(): Snapshot | undefined;
  agent(): AgentStats;
  readonly clock?: Clock;
}

/** A page in parts, to be sent one after the other. */
export interface PageParts {
  /** Devices and containers in pieces: the same list for as long as the snapshot is the same. Empty before the first one. */
  readonly kept: readonly Buffer[];
  /** The agent itself, as it is now, and the end of the page: the same buffer for scrapes that come at the same time. */
  readonly live: Buffer;
}

/** The metrics page in all its forms. It reads the latest snapshot and touches no hardware. */
export interface Exposition {
  page(format: Format): Promise<PageParts>;
  /** {@link PageParts.kept} alone, to have it written before it is asked for. */
  kept(format: Format): readonly Buffer[];
  /** The whole page in Prometheus text format 0.0.4. */
  text(): Promise<string>;
  /** The whole page in OpenMetrics 1.0. */
  openMetrics(): Promise<string>;
  /** The part of {@link Exposition.text} that is about devices and containers, to the letter. Empty before the first snapshot. */
  devices(): Promise<string>;
  readonly contentTypes: Readonly<Record<Format, string>>;
}

const NOTHING: readonly Buffer[] = [];

export function createExposition(sources: ExpositionSources): Exposition {
  const pages = new HardwarePages(createCatalogue(sources.families));
  const agent = new AgentPage(() => sources.agent(), sources.clock ?? systemClock);
  let latest: HardwarePage | undefined;

  const hardware = (): HardwarePage | undefined => {
    const snapshot = sources.snapshot();
    if (snapshot === undefined) return undefined;
    if (latest?.snapshot !== snapshot) latest = pages.of(snapshot);
    return latest;
  };
  const kept = (format: Format): readonly Buffer[] => hardware()?.pieces(format) ?? NOTHING;
  const page = async (format: Format): Promise<PageParts> => ({ kept: kept(format), live: await agent.after(hardware(), format) });
  const whole = async (format: Format): Promise<string> => {
    const parts = await page(format);
    return Buffer.concat([...parts.kept, parts.live]).toString();
  };

  return {
    page,
    kept,
    text: () => whole('text'),
    openMetrics: () => whole('openmetrics'),
    devices: async () => Buffer.concat(kept('text')).toString(),
    contentTypes: CONTENT_TYPES,
  };
}
