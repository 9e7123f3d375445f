import type { Clock } from '../host/clock.ts';
import type { EntryWatch } from '../host/fs/entry-watch.ts';
import { watchSocket } from '../host/fs/socket-file.ts';
import type { PodResources, PodResourcesReason } from '../model/pod-resources.ts';
import { Alarm } from './alarm.ts';
import { BackOff } from './back-off.ts';
import { Capacity } from './capacity.ts';
import { watchCheckpoint } from './checkpoint-watch.ts';
import { type ListResult, PodResourcesClient } from './client.ts';
import type { Failure } from './failure.ts';
import { NOTHING } from './grace.ts';
import { AttributionLedger } from './ledger.ts';
import type { PodResourcesOptions } from './options.ts';
import type { PodResourcesPoller, PodResourcesStats, PollerSettings } from './poller-types.ts';
import { RequestCounts } from './request-counts.ts';

export type { PodResourcesPoller, PodResourcesStats } from './poller-types.ts';

/** After these the kubelet is the same as before: it was there and spoke. */
const SAME_KUBELET: ReadonlySet<PodResourcesReason> = new Set(['rate-limited', 'too-large', 'unimplemented']);

export function createPodResourcesPoller(settings: PollerSettings): PodResourcesPoller {
  return new Poller(settings);
}

class Poller implements PodResourcesPoller {
  readonly #options: PodResourcesOptions;
  readonly #clock: Clock;
  readonly #onChange: () => void;
  readonly #client: PodResourcesClient;
  readonly #counts = new RequestCounts();
  readonly #backOff = new BackOff();
  readonly #ledger = new AttributionLedger();
  readonly #capacity: Capacity;
  readonly #watches: EntryWatch[] = [];
  readonly #grace: Alarm;
  readonly #hold: Alarm;
  readonly #soonAlarm: Alarm;
  #current: PodResources = NOTHING;
  #holdOver = false;
  #restarts = 0;
  #running: Promise<void> | undefined;
  #startedMs = Number.NEGATIVE_INFINITY;
  /** Something changed, or is to be tried again, after the run that is on its way. */
  #again = false;
  #closed = false;

  constructor({ options, clock, onChange }: PollerSettings) {
    this.#options = options;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#client = new PodResourcesClient(options, clock, (question) => this.#counts.add(question));
    this.#capacity = new Capacity(options.checkpoint, clock, () => this.#client.allocatable());
    this.#grace = new Alarm(clock, () => this.#graceOver());
    this.#hold = new Alarm(clock, () => this.#holdIsOver());
    // A timer may ring a moment before the monotonic clock says so.
    this.#soonAlarm = new Alarm(clock, () => (this.#isBackingOff() ? this.#soon() : void this.refresh()));
  }

  current(): PodResources {
    return this.#current;
  }

  stats(): PodResourcesStats {
    const rejections = this.#backOff.rejections;
    const remainingMs = this.#backOff.remainingMs(this.#clock.monotonic());
    return {
      requests: this.#counts.list(),
      durations: this.#counts.durations(),
      held: this.#current.held.size,
      restarts: this.#restarts,
      ...(rejections > 0 ? { backOff: { rejections, remainingMs } } : {}),
    };
  }

  refresh(): Promise<void> {
    if (this.#running !== undefined) return this.#running;
    if (this.#closed || this.#isBackingOff()) return Promise.resolve();
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
    for (const alarm of [this.#grace, this.#hold, this.#soonAlarm]) alarm.cancel();
    this.#client.close();
  }

  /** Asks as soon as `min-interval` and back-off allow. A question already on its way may have missed the change. */
  #soon(): void {
    this.#again = this.#running !== undefined;
    if (this.#closed || this.#again || this.#soonAlarm.isSet) return;
    const now = this.#clock.monotonic();
    const rest = this.#startedMs + this.#options['min-interval'] - now;
    this.#soonAlarm.set(Math.max(0, rest, this.#backOff.remainingMs(now)));
  }

  #isBackingOff(): boolean {
    return this.#backOff.remainingMs(this.#clock.monotonic()) > 0;
  }

  async #run(): Promise<void> {
    this.#startedMs = this.#clock.monotonic();
    // While the process is awake anyway. What they find is asked now.
    for (const watch of this.#watches) watch.look();
    this.#soonAlarm.cancel();
    const result = await this.#client.list();
    if (this.#closed) return;
    if (result.ok) {
      await this.#capacity.refresh(result.identity);
      if (this.#closed) return;
      this.#answered(result);
    } else {
      this.#failed(result.failure);
    }
    this.#onChange();
  }

  #answered({ api, attribution, identity }: Extract<ListResult, { ok: true }>): void {
    this.#backOff.reset();
    if (this.#ledger.isRestart(identity)) this.#kubeletRestarted();
    this.#ledger.answer(attribution, identity);
    this.#holdOver = false;
    this.#hold.set(this.#options.hold);
    this.#publish({ api, answeredAtMs: this.#clock.now() });
  }

  #failed(failure: Failure): void {
    if (!SAME_KUBELET.has(failure.reason)) this.#ledger.lose();
    this.#capacity.doubt();
    if (failure.reason === 'rate-limited') {
      this.#backOff.reject(this.#clock.monotonic());
      this.#again = this.#watches.length > 0;
    } else {
      this.#backOff.reset();
    }
    if (this.#holdOver) this.#forget();
    this.#publish({}, failure);
  }

  #kubeletRestarted(): void {
    this.#restarts += 1;
    const grace = this.#options['restart-grace'];
    if (grace === 0) return;
    this.#ledger.beginGrace();
    this.#grace.set(grace);
  }

  /** The last answer may be as old as the restart, so what is held comes off by a new one. */
  #graceOver(): void {
    this.#ledger.endGrace();
    if (this.#current.held.size > 0) this.#soon();
  }

  #holdIsOver(): void {
    this.#holdOver = true;
    const { problem } = this.#current;
    if (problem === undefined) return;
    this.#forget();
    this.#publish({}, problem);
    this.#onChange();
  }

  #forget(): void {
    this.#ledger.forget();
    this.#capacity.forget();
  }

  #publish(answer: Pick<PodResources, 'api' | 'answeredAtMs'>, problem?: Failure): void {
    const { api, answeredAtMs } = { ...this.#current, ...answer };
    const { current: allocatable, askedMs: allocatableAskedMs } = this.#capacity;
    this.#current = {
      ...this.#ledger.known,
      ...(api === undefined ? {} : { api }),
      ...(answeredAtMs === undefined ? {} : { answeredAtMs }),
      ...(allocatable === undefined || allocatableAskedMs === undefined ? {} : { allocatable, allocatableAskedMs }),
      ...(problem === undefined ? {} : { problem }),
    };
  }
}
