import type { Clock } from '../host/clock.ts';
import type { EntryWatch } from '../host/fs/entry-watch.ts';
import { watchSocket } from '../host/fs/socket-file.ts';
import type { PodResources, PodResourcesReason } from '../model/pod-resources.ts';
import { type HeldAttribution, keepThroughRestart, NOTHING } from './allocations/grace.ts';
import { watchCheckpoint } from './checkpoint/watch.ts';
import { type ListResult, PodResourcesClient, type RequestCount, type RequestDurations } from './client/client.ts';
import type { Failure } from './client/failure.ts';
import type { PodResourcesOptions } from './options.ts';

export interface PodResourcesPoller {
  /** Asks the kubelet. Never two at once: a call during a run waits for that run. During a back-off it asks nothing. Never rejects. */
  refresh(): Promise<void>;
  /** Begins to ask between refreshes too: when the checkpoint is written, when the socket is replaced, when a back-off ends. */
  watch(): void;
  current(): PodResources;
  stats(): PodResourcesStats;
  close(): void;
}

export interface PodResourcesStats {
  readonly requests: readonly RequestCount[];
  /** Per method. */
  readonly durations: RequestDurations;
  /** Allocations that are kept although the last answer did not have them. */
  readonly held: number;
  /** Restarts of the kubelet that were noticed. */
  readonly restarts: number;
  /** Present while the kubelet's rate limit is given way to. */
  readonly backOff?: { readonly rejections: number; readonly remainingMs: number };
}

export interface PollerSettings {
  readonly options: PodResourcesOptions;
  readonly clock: Clock;
  /** After each run, and when something expires by itself. */
  readonly onChange: () => void;
}

/** After these the kubelet is the same as before: it was there and spoke. */
const SAME_KUBELET: ReadonlySet<PodResourcesReason> = new Set(['rate-limited', 'too-large', 'unimplemented']);

/**
 * First and longest wait after a rejection; it doubles with each one in a row. The kubelet's bucket refills within a tenth of a second,
 * other clients may not let it.
 */
const BACK_OFF_MS = { first: 500, longest: 60_000 };

export function createPodResourcesPoller(settings: PollerSettings): PodResourcesPoller {
  return new Poller(settings);
}

class Poller implements PodResourcesPoller {
  readonly #options: PodResourcesOptions;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #client: PodResourcesClient;
  readonly #watches: EntryWatch[] = [];
  readonly #grace: Alarm;
  readonly #hold: Alarm;
  readonly #next: Alarm;
  #current: PodResources = NOTHING;
  #known: HeldAttribution = NOTHING;
  #capacity: Pick<PodResources, 'allocatable' | 'allocatableAskedMs'> = {};
  /** Of the socket that answered last. */
  #identity: string | undefined;
  /** The kubelet was out of reach since: it may have been restarted. */
  #wasLost = false;
  #holdIsOver = false;
  #restarts = 0;
  /** By the rate limit, in a row. */
  #rejections = 0;
  #notBeforeMs = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  /** Something changed, or is to be tried again, after the run that is on its way. */
  #again = false;
  #closed = false;

  constructor({ options, clock, onChange }: PollerSettings) {
    this.#options = options;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#client = new PodResourcesClient(options, clock);
    // The last answer may be as old as the restart, so what is held comes off by a new one.
    this.#grace = new Alarm(clock, () => this.#current.held.size > 0 && this.#soon());
    this.#hold = new Alarm(clock, () => this.#holdEnded());
    // A timer may ring a moment before the monotonic clock says so.
    this.#next = new Alarm(clock, () => (this.#backOffMs() > 0 ? this.#soon() : void this.refresh()));
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
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches) watch.close();
    for (const alarm of [this.#grace, this.#hold, this.#next]) alarm.cancel();
    this.#client.close();
  }

  /** Asks as soon as `min-interval` and back-off allow. A question already on its way may have missed the change. */
  #soon(): void {
    this.#again = this.#running !== undefined;
    if (this.#closed || this.#again || this.#next.isSet) return;
    const rest = this.#startedMs + this.#options['min-interval'] - this.#clock.monotonic();
    this.#next.set(Math.max(0, rest, this.#backOffMs()));
  }

  /** How long nothing may be asked; 0 when it may. */
  #backOffMs(): number {
    return Math.max(0, this.#notBeforeMs - this.#clock.monotonic());
  }

  async #run(): Promise<void> {
    this.#startedMs = this.#clock.monotonic();
    // While the process is awake anyway. What they find is asked now.
    for (const watch of this.#watches) watch.look();
    this.#next.cancel();
    const result = await this.#client.list();
    if (this.#closed) return;
    if (result.ok) {
      await this.#askCapacity();
      if (this.#closed) return;
      this.#answered(result);
    } else {
      this.#failed(result.failure);
    }
    this.#onChange();
  }

  async #askCapacity(): Promise<void> {
    const allocatableAskedMs = this.#clock.now();
    const result = await this.#client.allocatable();
    // The last capacity stands only while the rate limit is in the way; after any other failure it is not known.
    if (result.kind === 'answer') this.#capacity = { allocatable: result.allocatable, allocatableAskedMs };
    else if (result.kind === 'unsupported' || result.failure.reason !== 'rate-limited') this.#capacity = {};
  }

  #answered({ api, attribution, identity }: Extract<ListResult, { ok: true }>): void {
    const isAnotherKubelet = this.#identity !== undefined && (this.#wasLost || identity !== this.#identity);
    if (isAnotherKubelet) this.#kubeletRestarted();
    this.#known = this.#grace.isSet ? keepThroughRestart(this.#known, attribution) : { ...attribution, held: new Set() };
    this.#identity = identity;
    this.#wasLost = false;
    this.#rejections = 0;
    this.#holdIsOver = false;
    this.#hold.set(this.#options.hold);
    this.#publish({ api, answeredAtMs: this.#clock.now() });
  }

  #failed(failure: Failure): void {
    if (!SAME_KUBELET.has(failure.reason)) this.#wasLost = true;
    if (failure.reason === 'rate-limited') this.#rejected();
    else this.#rejections = 0;
    if (this.#holdIsOver) this.#forget();
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
    this.#forget();
    this.#publish({}, problem);
    this.#onChange();
  }

  /** Nobody has confirmed it for too long. */
  #forget(): void {
    this.#known = NOTHING;
    this.#capacity = {};
  }

  #publish(answer: Pick<PodResources, 'api' | 'answeredAtMs'>, problem?: Failure): void {
    const { api, answeredAtMs } = { ...this.#current, ...answer };
    this.#current = {
      ...this.#known,
      ...(api === undefined ? {} : { api }),
      ...(answeredAtMs === undefined ? {} : { answeredAtMs }),
      ...this.#capacity,
      ...(problem === undefined ? {} : { problem }),
    };
  }
}

/** One thing to be done later; setting it again moves it. */
class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  get isSet(): boolean {
    return this.#cancel !== undefined;
  }

  set(delayMs: number): void {
    this.cancel();
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined;
      this.#ring();
    });
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
