import { atEach } from '../../../host/clock.ts';
import type { Host } from '../../../host/host.ts';
import { seconds } from '../../../model/duration.ts';
import type { Release } from '../../../model/release.ts';
import { isDue, type Pace, Pacer } from '../../kit/pace.ts';
import type { NvidiaOptions } from '../declaration.ts';
import type { ExpectedFunction } from '../hardware.ts';
import { boundGpus, hardwareOnBus } from '../hardware.ts';
import type { NodeSample, ReadFailure } from '../sample.ts';
import type { XidLine } from '../xid-line.ts';
import { type Client, failureOf, faultsOf, isDrained, type Refusal, startClient } from './client.ts';
import type { Due } from './gpu.ts';
import { CODE } from './header.ts';
import { type Library, openLibrary } from './library.ts';
import { type PeerAccess, peersOf, readPeerAccess } from './nvlink.ts';
import { ANSWERS, AnsweringLibrary, RecordingLibrary } from './recorded.ts';

/** Wait before the next attempt to open a library that could not be opened. */
const RETRY_MS = 60_000;
/** Maximum delay of an Xid. A poll for events costs a microsecond, but waking the thread for it costs hundreds. */
const EVENTS_EVERY_MS = 1_000;
/** The library stays closed for at most this time after the driver began to unbind a GPU. */
const UNBIND_MS = 600_000;
/** Limit of Xids that are kept until they are taken. */
const MAX_XIDS = 1_000;
/**
 * The energy counter takes 3.2 ms of CPU on an H100. A container that ends between two reads of the counter loses the energy since the first one,
 * so that a longer time would cost short jobs much of theirs.
 */
const COSTLY_EVERY_MS = seconds(10);
/** A GPU that is lost or has no handle returns only after a restart of the library. A restart disturbs the other GPUs, so it is rare. */
const RESTART_FOR_LOST_MS = 300_000;
/** Each restart without success doubles the wait for the next restart, up to about three hours. */
const MAX_DOUBLINGS = 5;

/**
 * Reads GPUs with NVML, if the options and the machine allow it. It loads nothing before the first read. Then the library stays open, because
 * opening it wakes GPUs and can reset counters of their drivers.
 */
export class NvmlSource {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  #library: Library | undefined;
  #running: Running | undefined;
  #failure: ReadFailure | undefined;
  #retryAtMs = -Infinity;
  /** Number of restarts after which a GPU was still lost. */
  #failedRestarts = 0;
  readonly #pacer = new Pacer();
  #xids: readonly XidLine[] = [];
  /** Present while the driver unbinds a GPU. */
  #unbinding: Unbinding | undefined;
  #isClosed = false;

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Undefined means that `nvidia-smi` must be used. After a problem it is also used, unless the option `source` is `nvml`. */
  async read(expected: readonly ExpectedFunction[]): Promise<NodeSample | ReadFailure | undefined> {
    if (this.#library === undefined && !this.#isWanted()) return undefined;
    await this.#open();
    // Events are polled before the read, which then reads all values that an event may have changed.
    this.#pollEvents();
    if (this.#library === undefined) return this.#failure;
    const bound = expected.map(({ address }) => address);
    const answer = this.#round(this.#library, bound);
    // After an upgrade of the driver, the new library may already be installed.
    if (answer.problem?.code === 'driver-library-mismatch') this.release();
    return answer;
  }

  /** Whether an administrator drains a GPU: the driver then shows it to no program. */
  isDrained(address: string): boolean {
    return this.#library !== undefined && this.#running !== undefined && isDrained(this.#library, address);
  }

  /** Polls for events until it is stopped. */
  watch(wake: () => void): () => void {
    return atEach(
      this.#host.clock,
      () => EVENTS_EVERY_MS,
      () => {
        if (this.#pollEvents()) wake();
      },
    );
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

  /**
   * Shuts the library's client down. Its handles and sets become invalid. The next read starts it anew, as it must when the driver started a GPU
   * that the library does not know.
   */
  shutDownClient(): void {
    if (this.#running === undefined) return;
    this.#running.events.free();
    this.#running.systemEvents.free();
    for (const gpu of this.#running.gpus) gpu.close();
    this.#running = undefined;
    this.#library?.call('nvmlShutdown', '');
  }

  /** Closes the library, because an open library keeps the driver in use. The next read opens the library again. */
  release(): void {
    this.shutDownClient();
    this.#library?.unload();
    this.#library = undefined;
    this.#failedRestarts = 0;
    this.#retryAtMs = -Infinity;
  }

  close(): void {
    this.#isClosed = true;
    this.shutDownClient();
    this.#library = undefined;
  }

  /** `auto` uses no library on machines without GPUs, or when the options name another command. */
  #isWanted(): boolean {
    const { source, 'smi-path': smiPath, 'nvml-library': library } = this.#options;
    if (source !== 'auto') return source === 'nvml';
    if (library !== '') return true;
    return smiPath === 'nvidia-smi' && (hardwareOnBus(this.#host) || this.#host.dev.exists('dxg'));
  }

  /** A file of recorded answers takes the place of the library in a replay. */
  async #open(): Promise<void> {
    const nowMs = this.#host.clock.monotonic();
    if (this.#library !== undefined || nowMs < this.#retryAtMs || this.#isClosed) return;
    const path = this.#options['nvml-library'];
    const { guard } = this.#host.sys;
    // Loading it runs its code.
    const isClosed = guard?.enter('nvml/load', 'call') !== undefined;
    const opened = isClosed
      ? { error: 'an earlier attempt to load it hung or ended the reader' }
      : path.endsWith(ANSWERS)
        ? { library: new AnsweringLibrary(path) }
        : await openLibrary(path);
    guard?.leave();
    if (this.#isClosed) return;
    if (opened.library === undefined) {
      this.#failure = { problem: { code: 'library-not-found', message: `NVML: ${opened.error}` }, surplus: '' };
      this.#retryAtMs = nowMs + RETRY_MS;
      return;
    }
    const { observe } = this.#host;
    this.#library = observe === undefined ? opened.library : new RecordingLibrary(opened.library, observe);
  }

  /** Runs one round over all GPUs. `bound`: addresses of the GPUs that the driver has. */
  #round(library: Library, bound: readonly string[]): NodeSample | ReadFailure {
    const pace = this.#pacer.next(this.#host.clock.monotonic());
    const { nowMs } = pace;
    if (this.#running?.isToRestart === true || this.#isLostForLong(nowMs) || this.#haveBoundGpusChanged(bound, pace)) this.shutDownClient();
    const running = this.#running ?? this.#start(library, bound, nowMs);
    if ('symbol' in running) return failureOf(running.code, running.symbol);
    const { gpus } = running;
    const due = this.#due(running, pace);
    // It does nothing when all GPUs are registered.
    if (due.slow) running.events.register(gpus.filter(({ isLost }) => !isLost));
    for (const gpu of gpus) {
      const code = gpu.refresh(due);
      if (code === undefined) continue;
      running.isToRestart = true;
      return failureOf(code, 'a call');
    }
    if (due.facts) running.access = readPeerAccess(gpus);
    return {
      source: `NVML (${library.path})`,
      driver: running.driver,
      cudaVersion: running.cudaVersion,
      announced: 0,
      gpus: gpus.map((gpu) => ({ ...gpu.sample(running.factsAtMs), peers: peersOf(gpu, gpus, running.access) })),
      hung: running.hung,
      ...faultsOf(running),
    };
  }

  #start(library: Library, bound: readonly string[], nowMs: number): Running | Refusal {
    const client = startClient(library, this.#host, this.#options['nvml-activity'] === 'auto');
    if ('symbol' in client) return client;
    const never = { costlyAtMs: -Infinity, slowAtMs: -Infinity, factsAtMs: -Infinity };
    this.#running = { ...client, boundGpus: bound, startedAtMs: nowMs, ...never, hasOtherEvents: false, access: new Map() };
    return this.#running;
  }

  /** After an event, slow values are also read: it can concern instances, retired pages or the recovery action. */
  #due(running: Running, pace: Pace): Due {
    const { nowMs } = pace;
    const facts = isDue(running.factsAtMs, this.#options['nvml-facts-every'], pace);
    const slow = facts || running.hasOtherEvents || isDue(running.slowAtMs, this.#options['nvml-slow-every'], pace);
    const costly = slow || isDue(running.costlyAtMs, COSTLY_EVERY_MS, pace);
    if (facts) running.factsAtMs = nowMs;
    if (slow) running.slowAtMs = nowMs;
    if (costly) running.costlyAtMs = nowMs;
    running.hasOtherEvents = false;
    return { costly, slow, facts, nowMs };
  }

  /**
   * The library knows only GPUs that were bound at its start. A new one is looked for at once, because it is missing until then. One that is
   * gone has the interval of the slow values.
   */
  #haveBoundGpusChanged(bound: readonly string[], pace: Pace): boolean {
    const running = this.#running;
    if (running === undefined) return false;
    if (bound.some((address) => !running.boundGpus.includes(address))) return true;
    // One that was gone for a moment is a new one.
    if (bound.length < running.boundGpus.length) {
      running.boundGpus = bound;
      running.hasFewer = true;
    }
    return running.hasFewer === true && isDue(running.slowAtMs, this.#options['nvml-slow-every'], pace);
  }

  #isLostForLong(nowMs: number): boolean {
    const running = this.#running;
    if (running === undefined || nowMs - running.startedAtMs < RESTART_FOR_LOST_MS) return false;
    if (!isAnyLost(running)) {
      this.#failedRestarts = 0;
      return false;
    }
    if (nowMs - running.startedAtMs < RESTART_FOR_LOST_MS * 2 ** this.#failedRestarts) return false;
    this.#failedRestarts = Math.min(this.#failedRestarts + 1, MAX_DOUBLINGS);
    return true;
  }

  /** Takes the events since the last call. Returns true when one came. */
  #pollEvents(): boolean {
    const running = this.#running;
    if (running === undefined) return false;
    const { clock } = this.#host;
    const taken = running.events.take();
    if (taken.hasOtherEvents) running.hasOtherEvents = true;
    const cameAtMs = clock.monotonic();
    const xids = taken.xids.flatMap(({ gpu: handle, ...event }): XidLine[] => {
      const pciAddress = running.gpus.find(({ device }) => device.handle === handle)?.pciAddress;
      if (pciAddress === undefined) return [];
      return [{ ...event, kind: 'xid', pciAddress, text: "reported by the driver's library", isEvent: true, cameAtMs }];
    });
    if (xids.length > 0) this.#xids = [...this.#xids, ...xids].slice(-MAX_XIDS);
    if (!running.systemEvents.takeUnbind()) return taken.happened;
    // The driver waits until the library is closed.
    const release = { by: 'the driver, which unbinds a GPU,', untilMs: clock.now() + UNBIND_MS };
    this.#unbinding = { release, endsAtMs: clock.monotonic() + UNBIND_MS, bound: boundGpus(this.#host), hasChanged: false };
    this.release();
    return true;
  }
}

/** Ignores GPUs that the agent has no permission to open, because a restart does not help them. */
const isAnyLost = ({ gpus, unreadable, hung, boundGpus }: Running): boolean =>
  unreadable.some(({ code }) => code !== CODE.noPermission) ||
  gpus.some(({ isLost }) => isLost) ||
  // A GPU that the driver did not start may have been repaired.
  boundGpus.length > gpus.length + unreadable.length + hung.length;

/** The started client, with the monotonic clock of its start and of its last reads of each pace. */
interface Running extends Client {
  /** Bound GPUs at the start of the library, without those that are gone since. */
  boundGpus: readonly string[];
  hasFewer?: true;
  readonly startedAtMs: number;
  costlyAtMs: number;
  slowAtMs: number;
  factsAtMs: number;
  /** True when an event other than an Xid occurred since the last round. */
  hasOtherEvents: boolean;
  access: PeerAccess;
  isToRestart?: true;
}

interface Unbinding {
  readonly release: Release;
  /** Monotonic clock, because the wall clock can be set meanwhile. */
  readonly endsAtMs: number;
  /** Bound GPUs at the begin. */
  readonly bound: readonly string[];
  hasChanged: boolean;
}
