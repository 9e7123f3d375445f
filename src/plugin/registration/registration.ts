import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { type SocketState, watchSocket } from '../../host/fs/socket-file.ts';
import type { ChangeLog } from '../../log/changes.ts';
import { Counts } from '../counts.ts';
import type { ResourceOffers } from '../offers/resource-offers.ts';
import type { PluginOptions } from '../options.ts';
import type { PluginService } from '../service.ts';
import { Attempt } from './attempt.ts';
import { type AttemptEnd, isAbsence, REMEDIES } from './failures.ts';
import { removeDeadSockets, socketPath } from './socket-names.ts';

/** Waits that no option sets. */
export interface Timings {
  /** The kubelet dials back for up to 10 s before `Register` answers. */
  readonly registerTimeoutMs: number;
  readonly contactTimeoutMs: number;
  /** First wait after a failure; it doubles with each. */
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** Time between two looks for a kubelet that is not there. */
  readonly absenceWaitMs: number;
  /** How long a stream must live for the failures before it to be over. */
  readonly stableMs: number;
}

export const TIMINGS: Timings = {
  registerTimeoutMs: 15_000,
  contactTimeoutMs: 60_000,
  firstWaitMs: 500,
  longestWaitMs: 30_000,
  absenceWaitMs: 1_000,
  stableMs: 5_000,
};

/** By how much a question to the kubelet must be younger than a list for the answer to have it. */
const TAKEN_UP_MS = 1_000;

/**
 * Time between two registrations of a resource that the kubelet dropped. It doubles while they are in vain: each takes the resource away
 * for a moment.
 */
const AFTER_DROP_MS = { first: 60_000, longest: 3_600_000 };

export interface RegistrationParts {
  readonly offers: ResourceOffers;
  readonly service: PluginService;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly options: PluginOptions;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly timings: Timings;
}

/** Keeps one resource registered: tries, waits, tries again, until stopped. Shares nothing with other resources. */
export class Registration {
  /** How attempts ended; `ok` once the kubelet asked for the list. */
  readonly results = new Counts();
  readonly #parts: RegistrationParts;
  readonly #token = randomBytes(4).toString('hex');
  #attempts = 0;
  #failures = 0;
  #isStopped = false;
  #attempt: Attempt | undefined;
  /** Monotonic; a resource that was dropped is not registered anew before. */
  #afterDropMs = Number.NEGATIVE_INFINITY;
  #nextAfterDropMs = AFTER_DROP_MS.first;
  #wake = (): void => {};
  #cancelStable = (): void => {};
  #running: Promise<void> = Promise.resolve();

  constructor(parts: RegistrationParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Comes back when the socket is gone and nothing is open any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#attempt?.end({ reason: 'stopped' });
    this.#wake();
    await this.#running;
  }

  /**
   * True when the kubelet has dropped a resource whose list it goes on reading. Kubelets up to 1.36 do when a plugin of the same resource
   * ends that registered later, and no stream says so (kubernetes#127803): only what they can hand out shows it.
   */
  get isDropped(): boolean {
    return this.#allocatable() === 0;
  }

  get #isDirect(): boolean {
    return this.#parts.options.registration === 'direct';
  }

  /** Where a kubelet shows that it is there, to the plugin watcher's resources too if the directory can be seen. */
  get #kubeletSocket(): string {
    return join(resolve(this.#parts.options.dir), 'kubelet.sock');
  }

  get #directory(): string {
    const { options } = this.#parts;
    return resolve(this.#isDirect ? options.dir : options['registry-dir']);
  }

  async #run(): Promise<void> {
    const { offers, clock } = this.#parts;
    await removeDeadSockets(this.#directory, offers.resource.resource);
    const watch = watchSocket(this.#kubeletSocket, (state) => this.#kubeletChanged(state), clock);
    const unsubscribe = offers.onChange(() => this.#endIfDropped());
    await this.#untilReady();
    while (!this.#isStopped) {
      const end = await this.#try();
      this.#cancelStable();
      if (this.#isStopped) break;
      this.results.add(end.reason);
      this.#say(end);
      if (end.reason !== 'kubelet-restarted') await this.#sleep(this.#waitAfter(end));
    }
    unsubscribe();
    watch.close();
  }

  #try(): Promise<AttemptEnd> {
    const { offers, service, clock, options, timings } = this.#parts;
    const { resource } = offers.resource;
    this.#attempts += 1;
    this.#attempt = new Attempt({
      resource,
      service,
      clock,
      ownSocket: socketPath(this.#directory, resource, `${this.#token}-${this.#attempts}`),
      ...(this.#isDirect ? { kubeletSocket: this.#kubeletSocket } : {}),
      streamTimeoutMs: options['stream-timeout'],
      registerTimeoutMs: timings.registerTimeoutMs,
      contactTimeoutMs: timings.contactTimeoutMs,
      onStream: () => this.#registered(),
      onWaiting: (end) => this.#say(end),
    });
    return this.#attempt.run();
  }

  #registered(): void {
    const { clock, timings, changes } = this.#parts;
    this.results.add('ok');
    this.#cancelStable = clock.after(timings.stableMs, () => {
      this.#failures = 0;
      changes.end(this.#key);
    });
  }

  /** How many ids the kubelet can hand out; undefined where it does not healthOf, or need not have any of the list that it reads. */
  #allocatable(): number | undefined {
    const { offers, service } = this.#parts;
    const allocatable = offers.allocatable();
    const { streams, told } = service;
    if (allocatable === undefined || streams === 0 || told?.isAnyHealthy !== true) return undefined;
    return allocatable.askedMs - told.atMs >= TAKEN_UP_MS ? allocatable.count : undefined;
  }

  #endIfDropped(): void {
    const count = this.#allocatable();
    if (count === undefined) return;
    if (count > 0) this.#nextAfterDropMs = AFTER_DROP_MS.first;
    const now = this.#parts.clock.monotonic();
    if (count > 0 || now < this.#afterDropMs) return;
    this.#afterDropMs = now + this.#nextAfterDropMs;
    this.#nextAfterDropMs = Math.min(2 * this.#nextAfterDropMs, AFTER_DROP_MS.longest);
    this.#attempt?.end({ reason: 'dropped' });
  }

  /**
   * A new kubelet listens: whatever is going on belongs to the old one, and so do the failures that make for long waits. The event may
   * also tell of what this attempt has seen. Of the plugin watcher's own coming and going the socket says nothing.
   */
  #kubeletChanged(state: SocketState): void {
    if (state.kind !== 'socket') return;
    this.#failures = 0;
    if (this.#isDirect && this.#attempt?.kubelet !== state.identity) this.#attempt?.end({ reason: 'kubelet-restarted' });
    this.#wake();
  }

  get #key(): string {
    return `plugin ${this.#parts.offers.resource.resource}`;
  }

  #say({ reason, detail }: AttemptEnd): void {
    if (reason === 'stopped') return;
    const { resource } = this.#parts.offers.resource;
    this.#parts.changes.begin({
      key: this.#key,
      message: 'the kubelet does not have a resource',
      ended: 'the kubelet did not have a resource; it has the resource now',
      fields: { resource, reason },
      detail,
      remedy: REMEDIES[reason],
    });
  }

  #waitAfter(end: AttemptEnd): number {
    const { timings, random } = this.#parts;
    const jitter = 0.5 + random() / 2;
    if (isAbsence(end.reason)) return timings.absenceWaitMs * jitter;
    this.#failures += 1;
    return Math.min(timings.longestWaitMs, timings.firstWaitMs * 2 ** Math.min(this.#failures - 1, 20)) * jitter;
  }

  async #untilReady(): Promise<void> {
    const { offers } = this.#parts;
    if (offers.isReady() || this.#isStopped) return;
    await new Promise<void>((done) => {
      const unsubscribe = offers.onChange(() => offers.isReady() && finish());
      const finish = (): void => {
        unsubscribe();
        done();
      };
      this.#wake = () => this.#isStopped && finish();
    });
    this.#wake = () => {};
  }

  async #sleep(delayMs: number): Promise<void> {
    if (this.#isStopped) return;
    await new Promise<void>((done) => {
      const cancel = this.#parts.clock.after(delayMs, done);
      this.#wake = () => {
        cancel();
        done();
      };
    });
    this.#wake = () => {};
  }
}
