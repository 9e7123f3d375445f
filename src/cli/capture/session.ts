import { hostname } from 'node:os';
import { type OwnReader, openReader } from '../../agent/agent.ts';
import { CaptureLog } from '../../capture/capture-log.ts';
import type { Capture, Frame, Manifest } from '../../capture/frame.ts';
import { redactCapture } from '../../capture/redaction/redact.ts';
import { systemClock } from '../../host/clock.ts';
import { FrameClock } from '../../host/recorded/frame-clock.ts';
import { IsolatedReads } from '../../supervisor/isolated-reads.ts';
import { framedThreads } from '../../supervisor/probe-thread.ts';
import type { CommandContext } from '../context.ts';
import { capturedPage } from '../replay/captured-page.ts';
import { agentSettings, nodeName } from '../settings.ts';
import { readVersion } from '../version.ts';
import { manifestOf, placesOf } from './manifest.ts';

/** Reads the node as the agent does, and keeps what was read. */
export class CaptureSession {
  readonly #log: CaptureLog;
  readonly #clock: FrameClock;
  readonly #reader: OwnReader;
  readonly #manifest: Manifest;
  readonly #frames: Frame[] = [];
  readonly #families: CommandContext['families'];
  readonly #startedMs = systemClock.monotonic();

  private constructor(reader: OwnReader, log: CaptureLog, clock: FrameClock, manifest: Manifest, families: CommandContext['families']) {
    this.#reader = reader;
    this.#log = log;
    this.#clock = clock;
    this.#manifest = manifest;
    this.#families = families;
  }

  static async open({
    configuration,
    families,
    logger,
  }: Pick<CommandContext, 'configuration' | 'families' | 'logger'>): Promise<CaptureSession> {
    const { version } = readVersion();
    // The answers of the Pods API have the environment of all pods, so they are not asked for.
    const { podsApi: _, ...settings } = agentSettings(configuration, families);
    const log = new CaptureLog(placesOf(configuration));
    const frames = new FrameClock();
    const start = framedThreads(frames.memory, log.take);
    const parts = { start, isolated: new IsolatedReads(systemClock), observe: log.take, frames };
    const reader = await openReader(settings, { logger, version }, parts);
    return new CaptureSession(reader, log, frames, manifestOf(configuration, version), families);
  }

  /** Milliseconds since the start. */
  get elapsedMs(): number {
    return systemClock.monotonic() - this.#startedMs;
  }

  /** Reads everything once. */
  async read(): Promise<Frame> {
    const [atMs, wallMs] = [Math.round(this.elapsedMs), systemClock.now()];
    this.#clock.moveTo(wallMs, atMs);
    await this.#reader.read();
    return this.#log.cut({ atMs, wallMs, page: capturedPage(await this.#reader.metrics()) });
  }

  /** Adds a frame to the capture. */
  keep(frame: Frame): void {
    this.#frames.push(frame);
  }

  /** Ends the reading. `isStuck`: a thread cannot end. */
  async close(): Promise<{ readonly isStuck: boolean }> {
    return { isStuck: !(await this.#reader.close()) };
  }

  capture(isRedacted: boolean): Capture {
    const capture = { manifest: { ...this.#manifest, frames: this.#frames.length }, frames: this.#frames };
    const known = this.#families.flatMap((family) => family.known ?? []);
    return isRedacted ? redactCapture(capture, hostNames(), known) : capture;
  }
}

/** All names under which this machine may appear, also without their domains. */
const hostNames = (): readonly string[] => [...new Set([nodeName(), hostname()].flatMap((name) => [name, name.split('.')[0] ?? name]))];
