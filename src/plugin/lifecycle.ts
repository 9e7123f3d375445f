import { randomBytes } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Clock } from '../host/clock.ts';
import { type SocketState, watchSocket } from '../host/fs/socket-file.ts';
import type { ChangeLog } from '../log/changes.ts';
import { Attempt, type AttemptParts } from './attempt.ts';
import { Following } from './following.ts';
import type { PluginOptions } from './options.ts';
import type { PluginService } from './service.ts';
import { otherSockets, removeDeadSockets, socketPath } from './socket-name.ts';
import type { Supply } from './supply.ts';
import { Tally } from './tally.ts';
import { type AttemptEnd, isAbsence, REMEDIES } from './trouble.ts';

/** Waits that no option sets. */
export interface Timings {
  /** The kubelet dials back for up to 10 s before `Register` answers. */
  readonly registerTimeoutMs: number;
  readonly contactTimeoutMs: number;
  readonly siblings: AttemptParts['siblings'];
  /** First wait after a failure; it doubles with each. */
  readonly firstWaitMs: number;
  readonly longestWaitMs: number;
  /** Time between two looks for a kubelet that is not there. */
  readonly absenceWaitMs: number;
  /** How long a stream must live for the trouble before it to be over. */
  readonly stableMs: number;
}

export const TIMINGS: Timings = {
  registerTimeoutMs: 15_000,
  contactTimeoutMs: 60_000,
  siblings: { lookMs: 15_000, aloneMs: 3_000 },
  firstWaitMs: 500,
  longestWaitMs: 30_000,
  absenceWaitMs: 1_000,
  stableMs: 5_000,
};

export interface LifecycleParts {
  readonly supply: Supply;
  readonly service: PluginService;
  readonly clock: Clock;
  readonly changes: ChangeLog;
  readonly options: PluginOptions;
  /** 0 to below 1. */
  readonly random: () => number;
  readonly timings: Timings;
}

/** Keeps one resource registered: tries, waits, tries again, until stopped. Shares nothing with other resources. */
export class Lifecycle {
  readonly registrations = new Tally();
  readonly following: Following;
  readonly #parts: LifecycleParts;
  readonly #token = randomBytes(4).toString('hex');
  #attempts = 0;
  #failures = 0;
  #isStopped = false;
  #attempt: Attempt | undefined;
  #wake = (): void => {};
  #cancelStable = (): void => {};
  #running: Promise<void> = Promise.resolve();

  constructor(parts: LifecycleParts) {
    this.#parts = parts;
    this.following = new Following(parts.supply, parts.service, parts.clock);
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
    const { supply, clock } = this.#parts;
    await removeDeadSockets(otherSockets(this.#directory, supply.resource.resource));
    const watch = watchSocket(this.#kubeletSocket, (state) => this.#kubeletChanged(state), clock);
    const unsubscribe = supply.onChange(() => this.following.look() && this.#attempt?.end({ reason: 'dropped' }));
    await this.#untilReady();
    while (!this.#isStopped) {
      const end = await this.#try();
      this.#cancelStable();
      if (this.#isStopped) break;
      this.registrations.add(end.reason);
      this.#say(end);
      if (end.reason !== 'kubelet-restarted') await this.#sleep(this.#waitAfter(end));
    }
    unsubscribe();
    watch.close();
  }

  #try(): Promise<AttemptEnd> {
    const { supply, service, clock, options, timings } = this.#parts;
    const { resource } = supply.resource;
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
      siblings: timings.siblings,
      onStream: () => this.#registered(),
      onWaiting: (end) => this.#say(end),
    });
    return this.#attempt.run();
  }

  #registered(): void {
    const { clock, timings, changes } = this.#parts;
    this.registrations.add('ok');
    this.#cancelStable = clock.after(timings.stableMs, () => {
      this.#failures = 0;
      changes.end(this.#key);
    });
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
    return `plugin ${this.#parts.supply.resource.resource}`;
  }

  #say({ reason, detail }: AttemptEnd): void {
    if (reason === 'stopped') return;
    const { resource } = this.#parts.supply.resource;
    const fields = { resource, reason, ...(detail === undefined ? {} : { detail }), remedy: REMEDIES[reason] };
    this.#parts.changes.begin({ key: this.#key, message: 'the kubelet does not have a resource', fields });
  }

  #waitAfter(end: AttemptEnd): number {
    const { timings, random } = this.#parts;
    const jitter = 0.5 + random() / 2;
    if (isAbsence(end.reason)) return timings.absenceWaitMs * jitter;
    this.#failures += 1;
    return Math.min(timings.longestWaitMs, timings.firstWaitMs * 2 ** Math.min(this.#failures - 1, 20)) * jitter;
  }

  async #untilReady(): Promise<void> {
    const { supply } = this.#parts;
    if (supply.isReady() || this.#isStopped) return;
    await new Promise<void>((done) => {
      const unsubscribe = supply.onChange(() => supply.isReady() && finish());
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
