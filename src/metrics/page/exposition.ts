import { setImmediate } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { type Clock, pause, systemClock } from '../../host/clock.ts';
import type { AgentStats } from '../../model/agent-stats.ts';
import type { Device } from '../../model/device.ts';
import { memoizedBy } from '../../model/readings.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import type { Usage } from '../../model/usage.ts';
import { addAgent } from '../series/agent-metrics.ts';
import { addContainers, holderLabels } from '../series/container-metrics.ts';
import { addDevice } from '../series/device-metrics.ts';
import { ProcessMetrics } from '../series/process-metrics.ts';
import { addReadings, createCatalogue, type FamilyMetrics, metricsOfContainers, metricsOfDevices } from '../series/reading-metrics.ts';
import { addUsage } from '../series/usage-metrics.ts';
import { addWaiting } from '../series/waiting-metrics.ts';
import { joinLabels, labelText } from './labels.ts';
import { CONTENT_TYPES, END, type FinishedPage, type Format, Page } from './page.ts';
import { type Steps, Work } from './steps.ts';

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
  /** Whether readings of a device carry its UUID. Default false. */
  readonly hasUuids?: boolean;
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
  readonly #page: Work<FinishedPage>;
  readonly #bytes = new Map<Format, Work<Buffer>>();

  constructor(page: Steps<FinishedPage>) {
    this.#page = new Work(page);
  }

  get page(): FinishedPage {
    return this.#page.result;
  }

  bytes(format: Format): Buffer {
    return this.#encoding(format).result;
  }

  async prepare(format: Format): Promise<void> {
    await this.#page.inTurns();
    await this.#encoding(format).inTurns();
  }

  #encoding(format: Format): Work<Buffer> {
    const known = this.#bytes.get(format) ?? new Work(this.page.bytes(format));
    this.#bytes.set(format, known);
    return known;
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
  const { clock = systemClock, attribution = '', hasUuids = false, hasContainerZeros = true } = sources;
  const holderText = holderLabels(attribution);
  const catalogue = createCatalogue(sources.families);
  const ofDevices = metricsOfDevices(catalogue);
  const ofContainers = metricsOfContainers(catalogue);
  let ownProcess: ProcessMetrics | undefined;
  const latest = new Map<Format, Latest>();
  const scrapedMs = new Map<Format, number>();

  /** The latest finished pages, which the next ones are made from. */
  const before: { hardware?: FinishedPage; totals?: FinishedPage; agent?: FinishedPage } = {};

  function* writeHardware(snapshot: Snapshot): Steps<FinishedPage> {
    const page = new Page(before.hardware);
    for (const state of snapshot.devices) {
      addDevice(page, state);
      addReadings(page, ofDevices, firstLabels(state.device), state.readings);
      if (page.takesStep()) yield;
    }
    page.block('containers', [], () => addContainers(page, snapshot, holderText));
    page.block('waiting', [], () => addWaiting(page, snapshot.waiting ?? [], holderText));
    for (const one of snapshot.containerReadings) {
      const labels = joinLabels(holderText(one), labelText({ resource: one.resource, device: one.device }));
      addReadings(page, ofContainers, labels, one.readings);
      if (page.takesStep()) yield;
    }
    before.hardware = yield* page.finish();
    return before.hardware;
  }

  const firstLabels = memoizedBy(({ id, uuid }: Device) =>
    labelText(hasUuids && uuid !== undefined ? { uuid, device: id } : { device: id }),
  );

  function* writeTotals(usage: Usage): Steps<FinishedPage> {
    const page = new Page(before.totals);
    yield* addUsage(page, usage, ofContainers, holderText, hasContainerZeros);
    before.totals = yield* page.finish();
    return before.totals;
  }

  function* writeAgent(page: Page): Steps<FinishedPage> {
    before.agent = yield* page.finish();
    return before.agent;
  }

  const hardware = keep((snapshot: Snapshot) => new Part(writeHardware(snapshot)));
  // Totals and counters of containers are a part of their own, because they change later than the snapshot: when they are on disk.
  const totals = keep((usage: Usage) => new Part(writeTotals(usage)));

  const usageOf = (snapshot: Snapshot | undefined): Usage | undefined =>
    sources.usage === undefined ? snapshot?.usage : sources.usage(snapshot?.usage);

  const ofHardware = (snapshot: Snapshot | undefined, usage: Usage | undefined): readonly Part[] => {
    if (snapshot === undefined) return [];
    return usage === undefined ? [hardware(snapshot)] : [hardware(snapshot), totals(usage)];
  };

  const write = async (snapshot: Snapshot | undefined, usage: Usage | undefined, format: Format): Promise<WrittenPage> => {
    const shown = ofHardware(snapshot, usage);
    const page = new Page(before.agent);
    const agent = sources.agent();
    addAgent(page, agent, snapshot && { snapshot, pages: shown.map((part) => part.page) });
    ownProcess ??= new ProcessMetrics();
    await ownProcess.addTo(page);
    const all = [...shown, new Part(writeAgent(page))];
    const plain = join(all, format);
    let gzipped: Promise<readonly Buffer[]> | undefined;
    return {
      plain,
      gzipped() {
        gzipped ??= compress(plain);
        return gzipped;
      },
    };
  };

  const current = (format: Format): Promise<WrittenPage> => {
    const snapshot = sources.snapshot();
    const usage = usageOf(snapshot);
    const atMs = clock.monotonic();
    scrapedMs.set(format, atMs);
    const known = latest.get(format);
    if (known !== undefined && known.snapshot === snapshot && known.usage === usage && atMs - known.atMs < REUSE_MS) return known.page;
    const page = write(snapshot, usage, format);
    latest.set(format, { snapshot, usage, atMs, page });
    // After a failure the next scrape tries again.
    page.catch(() => latest.delete(format));
    return page;
  };

  let [isBehind, isPreparing] = [false, false];
  const prepare = async (): Promise<void> => {
    isPreparing = true;
    for (; isBehind; await pause(clock, REUSE_MS)) {
      isBehind = false;
      await setImmediate();
      const snapshot = sources.snapshot();
      const scraped = [...scrapedMs].filter(([, atMs]) => clock.monotonic() - atMs < PREPARE_FOR_MS);
      if (scraped.length === 0) break;
      for (const part of ofHardware(snapshot, usageOf(snapshot))) for (const [format] of scraped) await part.prepare(format);
    }
    isPreparing = false;
  };

  return {
    page: current,
    prepare() {
      isBehind = true;
      if (!isPreparing) void prepare();
    },
    devices() {
      const snapshot = sources.snapshot();
      return Buffer.concat(join(ofHardware(snapshot, usageOf(snapshot)), 'text')).toString();
    },
    contentTypes: CONTENT_TYPES,
  };
}

/** The text format separates metrics, and so parts, by a blank line. */
function join(parts: readonly Part[], format: Format): readonly Buffer[] {
  const written = parts.map((part) => part.bytes(format)).filter(({ length }) => length > 0);
  if (format === 'openmetrics') return [...written, Buffer.from(END)];
  return written.flatMap((bytes, at) => (at === 0 ? [bytes] : [LINE_FEED, bytes]));
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
