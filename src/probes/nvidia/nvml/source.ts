import { atEach } from '../../../host/clock.ts';
import type { Host } from '../../../host/host.ts';
import { hardwareOnBus } from '../hardware.ts';
import type { NvidiaOptions } from '../options.ts';
import type { NodeSample } from '../sample.ts';
import type { XidEvent } from './events.ts';
import { openLibrary } from './library.ts';
import { Machine, type NvmlFailure } from './machine.ts';

/** An Xid that the library told, with the GPU's address. */
export type ToldXid = XidEvent & { readonly pciAddress: string };

/** After a library that is not there, or gives nothing, it is looked for again. */
const RETRY_MS = 60_000;
/** From an Xid to the read that it asks for. A look costs a microsecond, waking the thread for it hundreds. */
const EVENTS_EVERY_MS = 1_000;
/** Until they are taken. */
const MOST_XIDS = 1_000;

/** NVML where it is to be used and can be. Nothing is loaded before the first read. */
export class NvmlSource {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  #machine: Machine | undefined;
  #failure: NvmlFailure | undefined;
  #retryAtMs = -Infinity;
  #xids: readonly ToldXid[] = [];
  #isClosed = false;

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Undefined: `nvidia-smi` is the one to ask; with a problem too, unless the library alone was asked for. */
  async read(): Promise<NodeSample | NvmlFailure | undefined> {
    if (this.#machine === undefined && !this.#isWanted()) return undefined;
    const machine = await this.#open();
    // Before the read, which then asks for all that an event may have changed.
    this.#lookForEvents();
    const answer = machine?.read();
    // The driver was upgraded: its new library may be there already.
    if (answer?.problem?.code === 'driver-library-mismatch') this.letGo();
    return answer ?? this.#failure;
  }

  /** Looks for events until stopped. */
  watch(wake: () => void): () => void {
    return atEach(this.#host.clock, EVENTS_EVERY_MS, () => {
      if (this.#lookForEvents()) wake();
    });
  }

  /** Xids since the last call. */
  takeXids(): readonly ToldXid[] {
    const taken = this.#xids;
    this.#xids = [];
    return taken;
  }

  /** Closes the library, which keeps the driver in use; the next read opens what is there then. */
  letGo(): void {
    this.#machine?.close();
    this.#machine?.library.unload();
    this.#machine = undefined;
    this.#retryAtMs = -Infinity;
  }

  close(): void {
    this.#isClosed = true;
    this.#machine?.close();
    this.#machine = undefined;
  }

  /** `auto` keeps away from machines without GPUs, and where another command was named: whoever named it wants it. */
  #isWanted(): boolean {
    const { source, 'smi-path': smiPath, 'nvml-library': library } = this.#options;
    if (source !== 'auto') return source === 'nvml';
    if (library !== '') return true;
    return smiPath === 'nvidia-smi' && (hardwareOnBus(this.#host) || this.#host.dev.exists('dxg'));
  }

  async #open(): Promise<Machine | undefined> {
    const nowMs = this.#host.clock.monotonic();
    if (this.#machine !== undefined || nowMs < this.#retryAtMs || this.#isClosed) return this.#machine;
    const opened = await openLibrary(this.#options['nvml-library']);
    if (this.#isClosed) return undefined;
    if (opened.library === undefined) {
      this.#failure = { problem: { code: 'library-not-found', message: `NVML: ${opened.error}` } };
      this.#retryAtMs = nowMs + RETRY_MS;
      return undefined;
    }
    this.#machine = new Machine(opened.library, this.#host, {
      slowEveryMs: this.#options['nvml-slow-every'],
      factsEveryMs: this.#options['nvml-facts-every'],
      isActivityWanted: this.#options['nvml-activity'] === 'auto',
    });
    return this.#machine;
  }

  #lookForEvents(): boolean {
    const { xids, happened } = this.#machine?.events() ?? { xids: [], happened: false };
    if (xids.length > 0) this.#xids = [...this.#xids, ...xids].slice(-MOST_XIDS);
    return happened;
  }
}
