import { setImmediate } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { type Clock, systemClock } from '../../host/clock.ts';
import type { AgentStats } from '../../model/agent-stats.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Usage } from '../../model/usage.ts';
import { addAgent } from '../series/agent-metrics.ts';
import { addContainers, holderLabels } from '../series/container-metrics.ts';
import { addDevice } from '../series/device-metrics.ts';
import { ProcessMetrics } from '../series/process-metrics.ts';
import { addReadings, createCatalogue, type FamilyMetrics, metricsOfContainers, metricsOfDevices } from '../series/reading-metrics.ts';
import { addUsage } from '../series/usage-metrics.ts';
import { joinLabels, labelText } from './labels.ts';
import { CONTENT_TYPES, END, type FinishedPage, type Format, Page } from './page.ts';
import { atOnce, inTurns, type Steps } from './steps.ts';

/** Scrapes within this time get the same page, so that several concurrent scrapers cost only one page. None is prepared sooner after another one. */
const REUSE_MS = 1_000;
/** For this time after a scrape, pages are written before somebody asks for them, so that the next scrape does not wait for its page. */
const PREPARE_FOR_MS = 180_000;

export interface ExpositionSources {
  readonly families: readonly FamilyMetrics[];
  snapshot(): Snapshot | undefined;
  agent(): AgentStats;
  /** Prefix of the labels that name a holder; empty by default. */
  readonly attribution?: string;
  /** Whether counters of containers that are 0 are on the page; true by default. */
  readonly hasContainerZeros?: boolean;
  /** Chooses the totals that the page shows; by default those of the snapshot. */
  usage?(latest: Usage | undefined): Usage | undefined;
  readonly clock?: Clock;
}

/** One page in one format, in pieces. */
export interface WrittenPage {
  readonly plain: readonly Buffer[];
  /** The compressed page; created at the first call. */
  gzipped(): Promise<readonly Buffer[]>;
}

/** The metrics page in all formats. It reads the latest snapshot and never the hardware. */
export interface Exposition {
  page(format: Format): Promise<WrittenPage>;
  /** Must be called after each snapshot and each change of the totals. While somebody scrapes, it writes them soon. */
  prepare(): void;
  /** Only devices, containers and their totals, in Prometheus text format 0.0.4. Empty before the first snapshot. */
  devices(): string;
  readonly contentTypes: Readonly<Record<Format, string>>;
}

/** A part of the page that stays the same until its source changes. It is rendered at most once per format. */
class Part {
  readonly page: FinishedPage;
  readonly #bytes = new Map<Format, Promise<readonly Buffer[]>>();

  constructor(page: FinishedPage) {
    this.page = page;
  }

  bytes(format: Format): Promise<readonly Buffer[]> {
    const bytes = this.#bytes.get(format) ?? inTurns(this.page.bytes(format));
    this.#bytes.set(format, bytes);
    return bytes;
  }
}

interface Latest {
  readonly snapshot: Snapshot | undefined;
  readonly usage: Usage | undefined;
  readonly atMs: number;
  readonly page: Promise<WrittenPage>;
}

const LINE_FEED = Buffer.from('\n');

export function createExposition(sources: ExpositionSources): Exposition {
  const { clock = systemClock, attribution = '', hasContainerZeros = true } = sources;
  const holderText = holderLabels(attribution);
  const catalogue = createCatalogue(sources.families);
  const ofDevices = metricsOfDevices(catalogue);
  const ofContainers = metricsOfContainers(catalogue);
  const ownProcess = new ProcessMetrics();
  const latest = new Map<Format, Latest>();
  const scrapedMs = new Map<Format, number>();

  function* writeHardware(snapshot: Snapshot): Steps<FinishedPage> {
    const page = new Page();
    for (const state of snapshot.devices) {
      addDevice(page, state);
      addReadings(page, ofDevices, labelText({ device: state.device.id }), state.readings);
      if (page.isStep) yield;
    }
    addContainers(page, snapshot, holderText);
    for (const one of snapshot.containerReadings) {
      const labels = joinLabels(holderText(one), labelText({ resource: one.resource, device: one.device }));
      addReadings(page, ofContainers, labels, one.readings);
      if (page.isStep) yield;
    }
    return yield* page.finish();
  }

  function* writeTotals(usage: Usage): Steps<FinishedPage> {
    const page = new Page();
    yield* addUsage(page, usage, ofContainers, holderText, hasContainerZeros);
    return yield* page.finish();
  }

  const hardware = keep(async (snapshot: Snapshot) => new Part(await inTurns(writeHardware(snapshot))));
  // Totals and counters of containers are a part of their own, because they change later than the snapshot: when they are on disk.
  const totals = keep(async (usage: Usage) => new Part(await inTurns(writeTotals(usage))));

  const usageOf = (snapshot: Snapshot | undefined): Usage | undefined =>
    sources.usage === undefined ? snapshot?.usage : sources.usage(snapshot?.usage);

  const ofHardware = async (snapshot: Snapshot | undefined, usage: Usage | undefined): Promise<readonly Part[]> => {
    if (snapshot === undefined) return [];
    return await Promise.all(usage === undefined ? [hardware(snapshot)] : [hardware(snapshot), totals(usage)]);
  };

  const write = async (snapshot: Snapshot | undefined, usage: Usage | undefined, format: Format): Promise<WrittenPage> => {
    const shown = await ofHardware(snapshot, usage);
    const page = new Page();
    addAgent(page, sources.agent(), snapshot && { snapshot, pages: shown.map((part) => part.page) });
    await ownProcess.addTo(page);
    const parts = [...shown, new Part(atOnce(page.finish()))];
    const plain = join(await Promise.all(parts.map((part) => part.bytes(format))), format);
    let gzipped: Promise<readonly Buffer[]> | undefined;
    return {
      plain,
      gzipped() {
        gzipped ??= compress(plain);
        return gzipped;
      },
    };
  };

  /** Pages are written one after another: scrapes that come meanwhile share the next one. */
  let writing: Promise<unknown> | undefined;
  const inOrder = <T>(page: Promise<T>): Promise<T> => {
    const end = (): void => {
      writing = undefined;
    };
    writing = page.then(end, end);
    return page;
  };

  let [isBehind, isPreparing] = [false, false];
  const prepare = async (): Promise<void> => {
    isPreparing = true;
    for (; isBehind; await new Promise<void>((resolve) => clock.after(REUSE_MS, resolve))) {
      isBehind = false;
      await setImmediate();
      while (writing !== undefined) await writing;
      const scraped = [...scrapedMs].filter(([, atMs]) => clock.monotonic() - atMs < PREPARE_FOR_MS);
      if (scraped.length === 0) break;
      const snapshot = sources.snapshot();
      const writeParts = async (): Promise<void> => {
        const parts = await ofHardware(snapshot, usageOf(snapshot));
        for (const [format] of scraped) await Promise.all(parts.map((part) => part.bytes(format)));
      };
      // The scrape reports a failure.
      await inOrder(writeParts()).catch(() => undefined);
    }
    isPreparing = false;
  };

  return {
    async page(format) {
      scrapedMs.set(format, clock.monotonic());
      for (;;) {
        const snapshot = sources.snapshot();
        const usage = usageOf(snapshot);
        const atMs = clock.monotonic();
        const known = latest.get(format);
        if (known !== undefined && known.snapshot === snapshot && known.usage === usage && atMs - known.atMs < REUSE_MS) return known.page;
        if (writing !== undefined) {
          await writing;
          continue;
        }
        const page = inOrder(write(snapshot, usage, format));
        latest.set(format, { snapshot, usage, atMs, page });
        // After a failure the next scrape tries again.
        page.catch(() => latest.delete(format));
        return page;
      }
    },
    prepare() {
      isBehind = true;
      if (!isPreparing) void prepare();
    },
    devices() {
      const snapshot = sources.snapshot();
      if (snapshot === undefined) return '';
      const usage = usageOf(snapshot);
      const pages = [writeHardware(snapshot), ...(usage === undefined ? [] : [writeTotals(usage)])];
      const written = pages.map((page) => atOnce(atOnce(page).bytes('text')));
      return Buffer.concat(join(written, 'text')).toString();
    },
    contentTypes: CONTENT_TYPES,
  };
}

/** The text format separates metrics, and so parts, by a blank line. */
function join(parts: readonly (readonly Buffer[])[], format: Format): readonly Buffer[] {
  if (format === 'openmetrics') return [...parts.flat(), Buffer.from(END)];
  return parts.filter(({ length }) => length > 0).flatMap((pieces, at) => (at === 0 ? pieces : [LINE_FEED, ...pieces]));
}

/** Level 1 needs a third of the time of level 6, for 6 % more bytes. */
function compress(pieces: readonly Buffer[]): Promise<readonly Buffer[]> {
  const gzip = createGzip({ level: 1, chunkSize: 65_536 });
  for (const piece of pieces) gzip.write(piece);
  return gzip.end().toArray();
}

/** Keeps the result for the latest input. */
function keep<T, R>(make: (input: T) => R): (input: T) => R {
  let known: { readonly input: T; readonly result: R } | undefined;
  return (input) => {
    if (known?.input !== input) known = { input, result: make(input) };
    return known.result;
  };
}
