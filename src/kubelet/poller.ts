import type { Clock } from '../host/clock.ts';
import type { EntryWatch } from '../host/fs/entry-watch.ts';
import { watchSocket } from '../host/fs/socket-file.ts';
import type { Allocation } from '../model/allocation.ts';
import { defined } from '../model/defined.ts';
import type { Observe } from '../model/observation.ts';
import type { PodResources, PodResourcesReason } from '../model/pod-resources.ts';
import { type CarriedAttribution, carriedAllocations, keepThroughRestart, NOTHING, withoutForgotten } from './allocations/allocations.ts';
import { watchCheckpoint, watchSpecs } from './claims/watch.ts';
import { type Failure, type ListResult, PodResourcesClient, type RequestCount, type RequestDurations } from './client/client.ts';
import type { PodResourcesOptions } from './options.ts';

export interface PodResourcesPoller {
  /** Asks the kubelet. A call during a run waits for that run. Does nothing during a back-off. Never rejects. */
  refresh(): Promise<void>;
  /**
   * From now on also asks when the checkpoint or a CDI spec is written, when the socket is replaced, when a back-off ends, and at most
   * five seconds later while a container holds a device: nothing else tells its end.
   */
  watch(): void;
  /** Ends the hold of pods whose devices the kubelet does not know any more. */
  dropUnknown(isKnown: (allocation: Allocation) => boolean): void;
  /** The kubelet now knows all its pods: its next answer lacks none. */
  settled(): void;
  current(): PodResources;
  stats(): PodResourcesStats;
  close(): void;
}

export interface PodResourcesStats {
  readonly requests: readonly RequestCount[];
  /** Per method. */
  readonly durations: RequestDurations;
  /** Number of allocations that are kept although they were not in the last answer. */
  readonly held: number;
  /** Number of detected kubelet restarts. */
  readonly restarts: number;
  /** Present while the poller waits because of the kubelet's rate limit. */
  readonly backOff?: { readonly rejections: number; readonly remainingMs: number };
}

export interface PollerSettings {
  readonly options: PodResourcesOptions;
  /** Directories of CDI specs. A change there means that the kubelet soon lists other claims. */
  readonly specDirectories?: readonly string[];
  readonly clock: Clock;
  /** Takes what the kubelet answers. */
  readonly observe?: Observe | undefined;
  /** Called after each run, and when the hold time expires. */
  readonly onChange: (cause: Cause) => void;
}

/** Why the kubelet is asked: a caller wants it, a file or the socket changed, or it is time to look whether a pod ended. */
export type Cause = 'request' | 'change' | 'look';

/** Time between two looks while holders come and go, and when they have not changed for `calmAfter`. A look asks only who holds what. */
const LOOK_MS = { busy: 500, calm: 5_000, calmAfter: 60_000 } as const;

/** Failures in which the kubelet itself answered, so it was not restarted. */
const SAME_KUBELET: ReadonlySet<PodResourcesReason> = new Set(['rate-limited', 'too-large', 'unimplemented']);

/**
 * First and longest wait after a rejection. Each further consecutive rejection doubles it. The kubelet's token bucket refills within
 * 0.1 s, unless other clients use the tokens.
 */
const BACK_OFF_MS = { first: 500, longest: 60_000 };

export function createPodResourcesPoller(settings: PollerSettings): PodResourcesPoller {
  return new Poller(settings);
}

class Poller implements PodResourcesPoller {
  readonly #options: PodResourcesOptions;
  readonly #clock: Clock;
  readonly #onChange: PollerSettings['onChange'];
  readonly #specDirectories: readonly string[];
  readonly #client: PodResourcesClient;
  readonly #watches: EntryWatch[] = [];
  readonly #grace: Timer;
  readonly #hold: Timer;
  readonly #next: Timer;
  readonly #look: Timer;
  #current: PodResources = NOTHING;
  #known: CarriedAttribution = NOTHING;
  #capacity: Pick<PodResources, 'allocatable' | 'allocatableAskedMs'> = {};
  /** Identity of the socket that answered last. */
  #identity: string | undefined;
  /** True when the kubelet was unreachable since its last answer, so it may have restarted. */
  #wasLost = false;
  #holdIsOver = false;
  #restarts = 0;
  /** Consecutive rejections by the rate limit. */
  #rejections = 0;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  /** Monotonic clock of the last answer with other holders. */
  #changedMs = 0;
  /** Why the next run asks. */
  #cause: Cause = 'request';
  #startedMs = Number.NEGATIVE_INFINITY;
  /** A change or a retry needs another run after the current one. */
  #again = false;
  #closed = false;

  constructor({ options, specDirectories = [], clock, observe, onChange }: PollerSettings) {
    this.#options = options;
    this.#specDirectories = specDirectories;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#client = new PodResourcesClient(options, clock, observe);
    // The last answer may be as old as the restart, so only a new answer removes the held allocations.
    this.#grace = new Timer(clock, () => this.#current.held.size > 0 && this.#soon());
    this.#hold = new Timer(clock, () => this.#holdEnded());
    // A timer can fire slightly early by the monotonic clock.
    this.#next = new Timer(clock, () => (this.#backOffMs() > 0 ? this.#soon() : void this.refresh()));
    this.#look = new Timer(clock, () => {
      if (this.#cause === 'request') this.#cause = 'look';
      void this.refresh();
    });
  }

  current(): PodResources {
    return this.#current;
  }

  stats(): PodResourcesStats {
    return {
      requests: this.#client.requests(),
      durations: this.#client.durations(),
      held: this.#current.held.size,
      restarts: this.#restarts,
      ...(this.#rejections > 0 ? { backOff: { rejections: this.#rejections, remainingMs: this.#backOffMs() } } : {}),
    };
  }

  refresh(): Promise<void> {
    if (this.#running !== undefined) return this.#running;
    if (this.#closed || this.#backOffMs() > 0) return Promise.resolve();
    this.#running = this.#run().finally(() => {
      this.#running = undefined;
      if (this.#again) this.#soon();
    });
    return this.#running;
  }

  watch(): void {
    if (this.#closed || this.#watches.length > 0) return;
    const soon = (): void => this.#soon();
    this.#watches.push(watchSocket(this.#options.socket, soon, this.#clock));
    if (this.#options.checkpoint !== '') this.#watches.push(watchCheckpoint(this.#options.checkpoint, soon, this.#clock));
    for (const directory of this.#specDirectories) this.#watches.push(watchSpecs(directory, soon, this.#clock));
  }

  dropUnknown(isKnown: (allocation: Allocation) => boolean): void {
    this.#known = withoutForgotten(this.#known, isKnown);
    this.#current = { ...this.#current, ...this.#known };
  }

  settled(): void {
    if (!this.#grace.isSet) return;
    this.#grace.cancel();
    this.#soon();
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches) watch.close();
    for (const timer of [this.#grace, this.#hold, this.#next, this.#look]) timer.cancel();
    this.#client.close();
  }

  /** Asks as soon as `podResourcesOptions['min-interval']` and the back-off allow. During a run it asks again afterwards: the run may have missed the change. */
  #soon(): void {
    this.#cause = 'change';
    this.#again = this.#running !== undefined;
    if (this.#closed || this.#again || this.#next.isSet) return;
    const rest = this.#startedMs + this.#options['min-interval'] - this.#clock.monotonic();
    this.#next.set(Math.max(0, rest, this.#backOffMs()));
  }

  /** Remaining back-off; 0 when a request is allowed. */
  #backOffMs(): number {
    return Math.max(0, this.#notBeforeMs - this.#clock.monotonic());
  }

  async #run(): Promise<void> {
    this.#startedMs = this.#clock.monotonic();
    const cause = this.#cause;
    this.#cause = 'request';
    // The process is awake anyway, so the watches check now; this run covers what they find.
    for (const watch of this.#watches) watch.look();
    for (const timer of [this.#next, this.#look]) timer.cancel();
    const result = await this.#client.list();
    if (this.#closed) return;
    if (result.ok) {
      if (cause !== 'look') await this.#askCapacity();
      if (this.#closed) return;
      this.#answered(result);
    } else {
      this.#failed(result.failure);
    }
    if (result.ok && this.#watches.length > 0 && this.#known.allocations.length > 0) this.#lookLater();
    this.#onChange(cause);
  }

  #lookLater(): void {
    const isCalm = this.#clock.monotonic() - this.#changedMs >= LOOK_MS.calmAfter;
    this.#look.set(isCalm ? LOOK_MS.calm : LOOK_MS.busy);
  }

  async #askCapacity(): Promise<void> {
    const allocatableAskedMs = this.#clock.monotonic();
    const result = await this.#client.allocatable();
    // The last capacity stays valid only while the rate limit rejects requests. After any other failure it is unknown.
    if (result.kind === 'answer') this.#capacity = { allocatable: result.allocatable, allocatableAskedMs };
    else if (result.kind === 'unsupported' || result.failure.reason !== 'rate-limited') this.#capacity = {};
  }

  #answered({ api, attribution, identity }: Extract<ListResult, { ok: true }>): void {
    const isAnotherKubelet = this.#identity !== undefined && (this.#wasLost || identity !== this.#identity);
    if (isAnotherKubelet) this.#kubeletRestarted();
    const answer = this.#grace.isSet ? keepThroughRestart(this.#known, attribution) : { ...attribution, held: new Set<string>() };
    const allocations = carriedAllocations(this.#known.allocations, answer.allocations);
    if (allocations !== this.#known.allocations) this.#changedMs = this.#clock.monotonic();
    this.#known = { ...answer, allocations };
    this.#identity = identity;
    this.#wasLost = false;
    this.#rejections = 0;
    this.#holdIsOver = false;
    this.#hold.set(this.#options.hold);
    this.#publish({ api, answeredAtMs: this.#clock.now(), answeredMonotonicMs: this.#clock.monotonic() });
  }

  #failed(failure: Failure): void {
    if (!SAME_KUBELET.has(failure.reason)) this.#wasLost = true;
    if (failure.reason === 'rate-limited') this.#rejected();
    else this.#rejections = 0;
    if (this.#holdIsOver) this.#discardAnswers();
    this.#publish({}, failure);
  }

  #rejected(): void {
    const waitMs = Math.min(BACK_OFF_MS.longest, BACK_OFF_MS.first * 2 ** Math.min(this.#rejections, 20));
    this.#notBeforeMs = this.#clock.monotonic() + waitMs;
    this.#rejections += 1;
    this.#again = this.#watches.length > 0;
  }

  #kubeletRestarted(): void {
    this.#restarts += 1;
    const grace = this.#options['restart-grace'];
    if (grace > 0) this.#grace.set(grace);
  }

  #holdEnded(): void {
    this.#holdIsOver = true;
    const { problem } = this.#current;
    if (problem === undefined) return;
    this.#discardAnswers();
    this.#publish({}, problem);
    this.#onChange('change');
  }

  /** The hold time expired without a new answer. */
  #discardAnswers(): void {
    this.#known = NOTHING;
    this.#capacity = {};
  }

  #publish(answer: Pick<PodResources, 'api' | 'answeredAtMs' | 'answeredMonotonicMs'>, problem?: Failure): void {
    const { api, answeredAtMs, answeredMonotonicMs } = { ...this.#current, ...answer };
    this.#current = { ...this.#known, ...this.#capacity, ...defined({ api, answeredAtMs, answeredMonotonicMs, problem }) };
  }
}

/** A one-shot timer. Setting it again replaces the earlier time. */
class Timer {
  readonly #clock: Clock;
  readonly #onExpire: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, onExpire: () => void) {
    this.#clock = clock;
    this.#onExpire = onExpire;
  }

  get isSet(): boolean {
    return this.#cancel !== undefined;
  }

  set(delayMs: number): void {
    this.cancel();
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined;
      this.#onExpire();
    });
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
