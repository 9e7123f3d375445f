import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../host/clock.ts';
import { headerOf, WORTH_COMPRESSING_BYTES } from './answer.ts';
import { acceptsGzip, chooseFormat } from './negotiation.ts';
import { endGzip, type GzipStart, PageGzip } from './page-gzip.ts';
import { ScrapeForecast } from './scrape-forecast.ts';

/** The metrics page in parts, sent one after the other. */
export interface ScrapeSource {
  /**
   * Of the page, what is the same for all scrapes of a snapshot: the same list for as long. Pieces that the next snapshot leaves
   * alone are the same buffers.
   */
  kept(format: 'text' | 'openmetrics'): readonly Buffer[];
  /** `live`, which is small, is the same buffer for a moment. */
  page(format: 'text' | 'openmetrics'): Promise<{ readonly kept: readonly Buffer[]; readonly live: Buffer }>;
  readonly contentTypes: { readonly text: string; readonly openmetrics: string };
}

interface Wanted {
  readonly accept: string | undefined;
  readonly encoding: string | undefined;
  readonly format: 'text' | 'openmetrics';
  readonly gzip: boolean;
}

/** Time in which a refresh gets its later snapshots out, so that only the last of them is prepared. */
const SETTLED_MS = 150;

/** Answers scrapes. What is the same for all scrapes of a snapshot is written and compressed once. */
export class ScrapeHandler {
  readonly #source: ScrapeSource;
  readonly #clock: Clock;
  readonly #forecast = new ScrapeForecast();
  readonly #gzip = new PageGzip();
  readonly #zippedEnds = new WeakMap<Buffer, { readonly start: GzipStart; readonly bytes: Buffer }>();
  /** What the last client accepts, which is mostly the same as the one before. */
  #wanted: Wanted | undefined;
  #cancel: (() => void) | undefined;

  constructor(source: ScrapeSource, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** A scrape came, and may have to wait for its turn: when scrapes come says when the next will, not when they are answered. */
  arrived(): void {
    this.#forecast.scraped(this.#clock.monotonic());
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#wanted = wantedBy(request, this.#wanted);
    const { format, gzip } = this.#wanted;
    const { kept, live } = await this.#source.page(format);
    response.setHeader('Content-Type', this.#source.contentTypes[format]);
    response.setHeader('Vary', 'Accept, Accept-Encoding');
    const plain = [...kept, live];
    if (!gzip || lengthOf(plain) < WORTH_COMPRESSING_BYTES) return send(request, response, plain);
    const start = await this.#gzip.start(kept);
    response.setHeader('Content-Encoding', 'gzip');
    send(request, response, [start.bytes, this.#zipEnd(start, live)]);
  }

  /** There is a new snapshot: what the next scrape will want is prepared, if one is expected to come for it. */
  snapshotTaken(): void {
    this.#forecast.snapshotTaken(this.#clock.monotonic());
    this.#cancel?.();
    this.#cancel = this.#clock.after(SETTLED_MS, () => {
      if (this.#forecast.isExpected(this.#clock.monotonic())) void this.#prepare();
    });
  }

  close(): void {
    this.#cancel?.();
  }

  async #prepare(): Promise<void> {
    if (this.#wanted === undefined) return;
    try {
      // Not what is of the moment: the scrape has a moment of its own.
      const kept = this.#source.kept(this.#wanted.format);
      if (this.#wanted.gzip) await this.#gzip.start(kept);
    } catch {
      // The scrape meets the same fault, and tells it.
    }
  }

  #zipEnd(start: GzipStart, live: Buffer): Buffer {
    let end = this.#zippedEnds.get(live);
    if (end?.start !== start) {
      end = { start, bytes: endGzip(start, live) };
      this.#zippedEnds.set(live, end);
    }
    return end.bytes;
  }
}

function wantedBy(request: IncomingMessage, last: Wanted | undefined): Wanted {
  const [accept, encoding] = [headerOf(request, 'accept'), headerOf(request, 'accept-encoding')];
  if (last !== undefined && last.accept === accept && last.encoding === encoding) return last;
  return { accept, encoding, format: chooseFormat(accept), gzip: acceptsGzip(encoding) };
}

function lengthOf(parts: readonly Buffer[]): number {
  return parts.reduce((length, part) => length + part.length, 0);
}

function send(request: IncomingMessage, response: ServerResponse, parts: readonly Buffer[]): void {
  if (response.destroyed) return;
  response.setHeader('Content-Length', lengthOf(parts));
  if (request.method !== 'HEAD') {
    response.cork();
    for (const part of parts) response.write(part);
  }
  response.end();
}
