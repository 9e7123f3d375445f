import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { type SocketState, watchSocket } from '../../host/fs/socket-file.ts';
import type { ChangeLog } from '../../log/changes.ts';
import type { ResourceOffers } from '../offers/resource-offers.ts';
import type { PluginOptions } from '../options.ts';
import type { Counts, PluginService } from '../service.ts';
import { Attempt, type AttemptEnd, isAbsence, REMEDIES } from './attempt.ts';
import { OfferCheck, type OfferRemedy } from './offer-check.ts';
import { liveNeighbours, removeDeadSockets, socketPath } from './sockets.ts';

/** Times that are not configurable. */
export interface Timings {
  /** Before `Register` answers, the kubelet connects back for up to 10 s. */
  readonly registerTimeoutMs: number;
  readonly contactTimeoutMs: number;
  /** First wait after a failure; each further failure doubles it. */
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** Interval of checks for an absent kubelet. */
  readonly absenceWaitMs: number;
  /** A stream that lives this long resets the failure count. */
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

export interface RegistrationDependencies {
  readonly offers: ResourceOffers;
  readonly service: PluginService;
  /** Counts the attempts by result; `ok` means that the kubelet asked for the list. */
  readonly results: Counts;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly options: PluginOptions;
  /** Returns a number from 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  readonly timings: Timings;
}

/** Keeps one resource registered, with retries, until stopped. It is independent of other resources. */
export class Registration {
  readonly #parts: RegistrationDependencies;
  readonly #token = randomBytes(4).toString('hex');
  #attempts = 0;
  #failures = 0;
  #isStopped = false;
  #attempt: Attempt | undefined;
  #wake = (): void => {};
  #cancelStable = (): void => {};
  #running: Promise<void> = Promise.resolve();

  /** What the kubelet makes of the lists. */
  readonly offer: OfferCheck;

  constructor(parts: RegistrationDependencies) {
    this.#parts = parts;
    const { offers, service, clock, changes, timings, options } = parts;
    this.offer = new OfferCheck({
      ...{ offers, service, clock, changes, stableMs: timings.stableMs },
      neighbours: () => {
        const directories = [options.dir, options['registry-dir']].map((directory) => resolve(directory));
        return liveNeighbours(directories, offers.resource.resource, this.#attempt?.ownSocket ?? '');
      },
      apply: (remedy) => this.#correct(remedy),
    });
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Resolves when the socket is removed and all connections are closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#attempt?.end({ reason: 'stopped' });
    this.#wake();
    await this.#running;
  }

  get #isDirect(): boolean {
    return this.#parts.options.registration === 'direct';
  }

  /** The kubelet creates this file at each start. Plugin watcher registration also watches it, if the directory is visible. */
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
    const unsubscribe = offers.onChange(() => void this.offer.look());
    await this.#untilReady();
    while (!this.#isStopped) {
      const end = await this.#try();
      this.#cancelStable();
      if (this.#isStopped) break;
      this.#parts.results.add(end.reason);
      this.#report(end);
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
      onWaiting: (end) => this.#report(end),
    });
    return this.#attempt.run();
  }

  #registered(): void {
    const { clock, timings, changes } = this.#parts;
    this.#parts.results.add('ok');
    this.#cancelStable = clock.after(timings.stableMs, () => {
      this.#failures = 0;
      changes.end(this.#key);
    });
  }

  #correct(remedy: OfferRemedy): void {
    if (remedy === 'repeat') this.#parts.service.repeatList();
    else this.#attempt?.end({ reason: remedy });
  }

  /**
   * A new kubelet listens. The current attempt and the failure count belong to the old kubelet. The event can also report the socket
   * that this attempt already uses. The socket does not show whether the plugin watcher runs.
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

  #report({ reason, detail }: AttemptEnd): void {
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
