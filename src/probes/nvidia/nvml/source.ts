import { atEach } from '../../../host/clock.ts';
import type { Host } from '../../../host/host.ts';
import type { Release } from '../../../model/release.ts';
import type { ExpectedFunction } from '../../kit/pcie/unshown.ts';
import { boundGpus, hardwareOnBus } from '../hardware.ts';
import type { NvidiaOptions } from '../options.ts';
import type { NodeSample } from '../sample.ts';
import type { XidLine } from '../xid-line.ts';
import { openLibrary } from './open-library.ts';
import { RecordingLibrary } from './recording-library.ts';
import { type NvmlFailure, NvmlSession } from './session.ts';

/** Wait before the next attempt to open a library that could not be opened. */
const RETRY_MS = 60_000;
/** Maximum delay of an Xid. A poll for events costs a microsecond, but waking the thread for it costs hundreds. */
const EVENTS_EVERY_MS = 1_000;
/** The library stays closed for at most this time after the driver began to unbind a GPU. */
const UNBIND_MS = 600_000;
/** Limit of Xids that are kept until they are taken. */
const MAX_XIDS = 1_000;

/** Reads GPUs with NVML, if the options and the machine allow it. It loads nothing before the first read. */
export class NvmlSource {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  #session: NvmlSession | undefined;
  #failure: NvmlFailure | undefined;
  #retryAtMs = -Infinity;
  #xids: readonly XidLine[] = [];
  /** Present while the driver unbinds a GPU. */
  #unbinding: Unbinding | undefined;
  #isClosed = false;

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Undefined means that `nvidia-smi` must be used. After a problem it is also used, unless the option `source` is `nvml`. */
  async read(expected: readonly ExpectedFunction[]): Promise<NodeSample | NvmlFailure | undefined> {
    if (this.#session === undefined && !this.#isWanted()) return undefined;
    await this.#open();
    // Events are polled before the read, which then reads all values that an event may have changed.
    this.#pollEvents();
    const answer = this.#session?.read(expected.flatMap(({ address, state }) => (state === 'bound' ? [address] : [])));
    // After an upgrade of the driver, the new library may already be installed.
    if (answer?.problem?.code === 'driver-library-mismatch') this.release();
    return answer ?? this.#failure;
  }

  /** Whether an administrator drains a GPU: the driver then shows it to no program. */
  isDrained(address: string): boolean {
    return this.#session?.isDrained(address) === true;
  }

  /** Starts the library anew at the next read: the driver started a GPU that the library does not know. */
  renew(): void {
    this.#session?.close();
  }

  /** Polls for events until it is stopped. */
  watch(wake: () => void): () => void {
    return atEach(this.#host.clock, EVENTS_EVERY_MS, () => {
      if (this.#pollEvents()) wake();
    });
  }

  /** Returns the Xids since the last call. */
  takeXids(): readonly XidLine[] {
    const taken = this.#xids;
    this.#xids = [];
    return taken;
  }

  /** The release that the driver asked for. It ends when the list of bound GPUs has changed and is not empty, or when its time is over. */
  unbinding(): Release | undefined {
    const known = this.#unbinding;
    if (known === undefined) return undefined;
    const bound = boundGpus(this.#host);
    known.hasChanged ||= bound.join() !== known.bound.join();
    const isOver = this.#host.clock.monotonic() >= known.endsAtMs || (known.hasChanged && bound.length > 0);
    if (isOver) this.#unbinding = undefined;
    return this.#unbinding?.release;
  }

  /** Closes the library, because an open library keeps the driver in use. The next read opens the library again. */
  release(): void {
    this.#session?.close();
    this.#session?.library.unload();
    this.#session = undefined;
    this.#retryAtMs = -Infinity;
  }

  close(): void {
    this.#isClosed = true;
    this.#session?.close();
    this.#session = undefined;
  }

  /** `auto` uses no library on machines without GPUs, or when the options name another command. */
  #isWanted(): boolean {
    const { source, 'smi-path': smiPath, 'nvml-library': library } = this.#options;
    if (source !== 'auto') return source === 'nvml';
    if (library !== '') return true;
    return smiPath === 'nvidia-smi' && (hardwareOnBus(this.#host) || this.#host.dev.exists('dxg'));
  }

  async #open(): Promise<void> {
    const nowMs = this.#host.clock.monotonic();
    if (this.#session !== undefined || nowMs < this.#retryAtMs || this.#isClosed) return;
    const opened = await openLibrary(this.#options['nvml-library']);
    if (this.#isClosed) return;
    if (opened.library === undefined) {
      this.#failure = { problem: { code: 'library-not-found', message: `NVML: ${opened.error}` } };
      this.#retryAtMs = nowMs + RETRY_MS;
      return;
    }
    const { observe } = this.#host;
    const library = observe === undefined ? opened.library : new RecordingLibrary(opened.library, observe);
    this.#session = new NvmlSession(library, this.#host, {
      slowEveryMs: this.#options['nvml-slow-every'],
      factsEveryMs: this.#options['nvml-facts-every'],
      isActivityWanted: this.#options['nvml-activity'] === 'auto',
    });
  }

  #pollEvents(): boolean {
    const { xids, happened } = this.#session?.events() ?? { xids: [], happened: false };
    const cameAtMs = this.#host.clock.monotonic();
    if (xids.length > 0) this.#xids = [...this.#xids, ...xids.map((xid) => ({ ...xid, cameAtMs }))].slice(-MAX_XIDS);
    if (this.#session?.takeUnbind() !== true) return happened;
    // The driver waits until the library is closed.
    const release = { by: 'the driver, which unbinds a GPU,', untilMs: this.#host.clock.now() + UNBIND_MS };
    this.#unbinding = { release, endsAtMs: this.#host.clock.monotonic() + UNBIND_MS, bound: boundGpus(this.#host), hasChanged: false };
    this.release();
    return true;
  }
}

interface Unbinding {
  readonly release: Release;
  /** Monotonic clock, because the wall clock can be set meanwhile. */
  readonly endsAtMs: number;
  /** Bound GPUs at the begin. */
  readonly bound: readonly string[];
  hasChanged: boolean;
}
