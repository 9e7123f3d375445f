import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { type Clock, systemClock } from '../../host/clock.ts';
import type { AgentStats } from '../../model/agent-stats.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Usage } from '../../model/usage.ts';
import { addAgent } from '../series/agent-metrics.ts';
import { addContainers, holderLabels } from '../series/container-metrics.ts';
import { addDevice } from '../series/device-metrics.ts';
import { ProcessMetrics } from '../series/process-metrics.ts';
import { addReadings, createCatalogue, type FamilyMetrics, metricsOfContainers, metricsOfDevices } from '../series/reading-metrics.ts';
import { addEndedCounters, addUsage } from '../series/usage-metrics.ts';
import { joinLabels, labelText } from './labels.ts';
import { CONTENT_TYPES, END, type FinishedPage, type Format, Page } from './page.ts';

const compress = promisify(gzip);

/** Scrapes within this time get the same page, so that several concurrent scrapers cost only one page. */
const REUSE_MS = 1_000;

export interface ExpositionSources {
  readonly families: readonly FamilyMetrics[];
  snapshot(): Snapshot | undefined;
  agent(): AgentStats;
  /** Prefix of the labels that name a holder; empty by default. */
  readonly attribution?: string;
  /** Chooses the totals that the page shows; by default those of the snapshot. */
  usage?(latest: Usage | undefined): Usage | undefined;
  readonly clock?: Clock;
}

/** One page in one format, as bytes. */
export interface WrittenPage {
  readonly plain: Buffer;
  /** The compressed page; created at the first call. */
  gzipped(): Promise<Buffer>;
}

/** The metrics page in all formats. It reads the latest snapshot and never the hardware. */
export interface Exposition {
  page(format: Format): Promise<WrittenPage>;
  /** The whole page in Prometheus text format 0.0.4. */
  text(): Promise<string>;
  /** The whole page in OpenMetrics 1.0. */
  openMetrics(): Promise<string>;
  /** Only the first part of {@link Exposition.text}: devices and containers. Empty before the first snapshot. */
  devices(): string;
  readonly contentTypes: Readonly<Record<Format, string>>;
}

/** Devices and containers of one snapshot, rendered at most once per format. */
interface Hardware {
  readonly snapshot: Snapshot;
  readonly usage: Usage | undefined;
  readonly page: FinishedPage;
  text(format: Format): string;
}

interface Latest {
  readonly snapshot: Snapshot | undefined;
  readonly atMs: number;
  readonly page: Promise<WrittenPage>;
}

export function createExposition(sources: ExpositionSources): Exposition {
  const { clock = systemClock, attribution = '' } = sources;
  const holderText = holderLabels(attribution);
  const catalogue = createCatalogue(sources.families);
  const ofDevices = metricsOfDevices(catalogue);
  const ofContainers = metricsOfContainers(catalogue);
  const ownProcess = new ProcessMetrics();
  const latest = new Map<Format, Latest>();
  let written: Hardware | undefined;

  const write = (snapshot: Snapshot, usage: Usage | undefined): Hardware => {
    const page = new Page();
    for (const state of snapshot.devices) {
      addDevice(page, state);
      addReadings(page, ofDevices, labelText({ device: state.device.id }), state.readings);
    }
    addContainers(page, snapshot, holderText);
    for (const one of snapshot.containerReadings) {
      const labels = joinLabels(holderText(one), labelText({ resource: one.resource, device: one.device }));
      addReadings(page, ofContainers, labels, one.readings);
    }
    addEndedCounters(page, ofContainers, snapshot.usage, holderText);
    if (usage !== undefined) addUsage(page, usage, holderText);
    const finished = page.finish();
    const texts = new Map<Format, string>();
    const text = (format: Format): string => {
      const known = texts.get(format) ?? finished.text(format);
      texts.set(format, known);
      return known;
    };
    return { snapshot, usage, page: finished, text };
  };

  const hardware = (): Hardware | undefined => {
    const snapshot = sources.snapshot();
    if (snapshot === undefined) return undefined;
    const usage = sources.usage === undefined ? snapshot.usage : sources.usage(snapshot.usage);
    if (written?.snapshot !== snapshot || written.usage !== usage) written = write(snapshot, usage);
    return written;
  };

  const whole = async (format: Format): Promise<string> => {
    const shown = hardware();
    const page = new Page();
    addAgent(page, sources.agent(), shown);
    await ownProcess.addTo(page);
    const parts = [shown?.text(format) ?? '', page.finish().text(format)].filter((part) => part !== '');
    return format === 'text' ? parts.join('\n') : parts.join('') + END;
  };

  const asBytes = async (format: Format): Promise<WrittenPage> => {
    const plain = Buffer.from(await whole(format));
    let gzipped: Promise<Buffer> | undefined;
    return {
      plain,
      gzipped() {
        // Level 1 needs a third of the time of level 6, for 6 % more bytes.
        gzipped ??= compress(plain, { level: 1 });
        return gzipped;
      },
    };
  };

  return {
    page(format) {
      const snapshot = sources.snapshot();
      const atMs = clock.monotonic();
      const known = latest.get(format);
      if (known !== undefined && known.snapshot === snapshot && atMs - known.atMs < REUSE_MS) return known.page;
      const page = asBytes(format);
      latest.set(format, { snapshot, atMs, page });
      // After a failure the next scrape tries again.
      page.catch(() => latest.delete(format));
      return page;
    },
    text: () => whole('text'),
    openMetrics: () => whole('openmetrics'),
    devices: () => hardware()?.text('text') ?? '',
    contentTypes: CONTENT_TYPES,
  };
}
