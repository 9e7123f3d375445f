import { type handleUnaryCall, status } from '@grpc/grpc-js';
import type {
  ContainerAllocateResponse,
  ContainerPreferredAllocationRequest,
  Device,
  DevicePluginServer,
} from '../generated/deviceplugin/v1beta1/api.ts';
import { type Clock, endsWithin, pause } from '../host/clock.ts';
import { DurationTally } from '../model/duration-counts.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import { type Access, type Admission, allocateContainer, grantedOffers, namedOffers } from './allocation/allocate.ts';
import { listed, REFUSAL_REASONS, Refusal, type RefusalReason } from './allocation/answer.ts';
import { placementsOf, preferenceOf, preferredIds } from './allocation/preferred.ts';
import type { HealthRule, Offer } from './offers/inventory.ts';
import { type ListCall, ListStream, type ResourceOffers } from './offers/resource-offers.ts';

const STATUS_OF: Readonly<Record<RefusalReason, number>> = {
  'unknown-device': status.NOT_FOUND,
  'unhealthy-device': status.FAILED_PRECONDITION,
  'dirty-device': status.FAILED_PRECONDITION,
  'unsupported-strategy': status.FAILED_PRECONDITION,
  'invalid-request': status.INVALID_ARGUMENT,
};

export interface ServiceDependencies {
  readonly offers: ResourceOffers;
  readonly access: Access;
  readonly healthOf: HealthRule;
  readonly clock: Clock;
  readonly counts?: ResourceCounts;
  /** What all resources granted last. */
  readonly admission?: Admission;
  /** Reads the hardware again before a container starts. The verdict then comes from the newest snapshot. */
  readonly refresh?: () => Promise<unknown>;
  /**
   * Returns why a container must not start on the device, undefined when it may. `sinceMs`: monotonic clock; an older read says nothing
   * about the present.
   */
  readonly whyDirty?: WhyDirty;
}

/** `key` is the key of a device. */
export type WhyDirty = (key: string, sinceMs: number) => string | undefined;

export interface StreamListener {
  opened(): void;
  /** Called when the last open stream ends. */
  ended(): void;
}

export interface SentList {
  /** Wall clock time at which it was sent. */
  readonly atMs: number;
  /** Monotonic time of the same. */
  readonly sentMs: number;
  readonly healthy: ReadonlySet<string>;
}

const NO_LISTENER: StreamListener = { opened() {}, ended() {} };

/** The kubelet's own timeout for `PreStartContainer` is 30 s. */
const REFRESH_LIMIT_MS = 10_000;
/** A process that reaches the socket can call without limit, and a read can start a program. A read within this time after the last one waits. */
const REFRESH_SPACING_MS = 2_000;

/** The five v1beta1 methods for one resource. It lives longer than its servers; each new server gets the same methods. */
export class PluginService {
  readonly methods: DevicePluginServer;
  readonly #parts: ServiceDependencies;
  readonly #counts: ResourceCounts;
  readonly #refresh: (() => Promise<void>) | undefined;
  readonly #streams = new Set<ListStream>();
  #listener: StreamListener = NO_LISTENER;
  #lastList: SentList | undefined;

  constructor(parts: ServiceDependencies) {
    this.#parts = parts;
    this.#counts = parts.counts ?? resourceCounts();
    this.#refresh = parts.refresh && spaced(parts.refresh, REFRESH_SPACING_MS, parts.clock);
    this.methods = {
      getDevicePluginOptions: this.#unary('GetDevicePluginOptions', () => this.options()),
      listAndWatch: (call) => this.#open(call),
      getPreferredAllocation: this.#unary('GetPreferredAllocation', ({ containerRequests }) => ({
        containerResponses: containerRequests.map((request) => ({ deviceIDs: this.#prefer(request) })),
      })),
      allocate: this.#unary('Allocate', ({ containerRequests }) => ({
        containerResponses: containerRequests.map(({ devicesIds }) => this.#allocate(devicesIds)),
      })),
      preStartContainer: this.#unary('PreStartContainer', ({ devicesIds }) => this.#checkBeforeStart(devicesIds)),
    };
  }

  options(): { preStartRequired: boolean; getPreferredAllocationAvailable: boolean } {
    const { resource } = this.#parts.offers;
    return { preStartRequired: isCheckedBeforeStart(resource), getPreferredAllocationAvailable: preferenceOf(resource) !== 'none' };
  }

  /** Number of open `ListAndWatch` streams. */
  get streams(): number {
    return this.#streams.size;
  }

  /** The last list that was sent. */
  get lastList(): SentList | undefined {
    return this.#lastList;
  }

  listen(listener: StreamListener): void {
    this.#listener = listener;
  }

  /** Sends the last list again: the kubelet takes the list that arrived last, whoever sent it. */
  repeatList(): void {
    for (const stream of this.#streams) stream.repeat();
  }

  endStreams(): void {
    for (const stream of [...this.#streams]) stream.end();
  }

  /** Drops the streams of a closed server, so that their late events do not reach the next listener. */
  forget(): void {
    this.#listener = NO_LISTENER;
    for (const stream of [...this.#streams]) stream.drop();
  }

  #open(call: ListCall): void {
    const sending = (devices: readonly Device[]): (() => void) => {
      const { clock } = this.#parts;
      const healthy = new Set(devices.filter(({ health }) => health === 'Healthy').map(({ ID }) => ID));
      this.#lastList = { atMs: clock.now(), sentMs: clock.monotonic(), healthy };
      return this.#timer('ListAndWatch');
    };
    const ended = (stream: ListStream): void => {
      this.#streams.delete(stream);
      if (this.#streams.size === 0) this.#listener.ended();
    };
    this.#streams.add(new ListStream(call, this.#parts.offers, sending, ended));
    this.#listener.opened();
  }

  #prefer({ availableDeviceIDs, mustIncludeDeviceIDs, allocationSize }: ContainerPreferredAllocationRequest): string[] {
    const { offers, admission, clock } = this.#parts;
    const near = admission?.near(offers.resource.resource, clock.monotonic()) ?? [];
    const request = { available: availableDeviceIDs, mustInclude: mustIncludeDeviceIDs, size: allocationSize, near };
    return preferredIds(request, placementsOf(offers.current()), preferenceOf(offers.resource));
  }

  #allocate(ids: readonly string[]): ContainerAllocateResponse {
    const { offers, access, healthOf, admission, clock } = this.#parts;
    try {
      const all = offers.current();
      const response = allocateContainer(ids, all, offers.resource, access, healthOf);
      const places = placementsOf(all.filter(({ id }) => ids.includes(id)));
      admission?.granted(offers.resource.resource, places, clock.monotonic());
      this.#counts.allocations.add('ok');
      return response;
    } catch (error) {
      this.#counts.allocations.add(error instanceof Refusal ? error.reason : 'internal');
      throw error;
    }
  }

  async #checkBeforeStart(ids: readonly string[]): Promise<object> {
    const { offers, clock } = this.#parts;
    if (!isCheckedBeforeStart(offers.resource)) return {};
    const { resource } = offers.resource;
    const askedMs = clock.monotonic();
    try {
      namedOffers(ids, offers.current(), resource);
      if (this.#refresh !== undefined) await endsWithin(this.#refresh(), REFRESH_LIMIT_MS, clock);
      const granted = grantedOffers(ids, offers.current(), resource);
      if (offers.resource.requireClean === true) this.#refuseDirty(granted, askedMs);
      return {};
    } catch (error) {
      this.#counts.allocations.add(error instanceof Refusal ? error.reason : 'internal');
      throw error;
    }
  }

  /** A container gets every device of a pool, so one dirty device is enough. */
  #refuseDirty(granted: readonly Offer[], askedMs: number): void {
    const { offers, whyDirty = () => 'nothing is known of its processes' } = this.#parts;
    const keys = new Map(granted.flatMap(({ id, devices }) => devices.map((state) => [state.key, id] as const)));
    for (const [key, id] of keys) {
      const why = whyDirty(key, askedMs);
      if (why === undefined) continue;
      const { resource } = offers.resource;
      throw new Refusal('dirty-device', `device ${listed([id])} of ${resource} is not clean, so no container starts on it: ${why}`);
    }
  }

  /** Starts a timer. The caller calls the returned function when the method has ended. */
  #timer(method: Method): () => void {
    const { clock } = this.#parts;
    const startMs = clock.monotonic();
    return () => this.#counts.calls.add(method, (clock.monotonic() - startMs) / 1_000);
  }

  #unary<Q, A>(method: Method, answer: (request: Q) => A | Promise<A>): handleUnaryCall<Q, A> {
    return (call, callback) => {
      const done = this.#timer(method);
      // `async` turns what `answer` throws into a rejection.
      (async () => answer(call.request))().then(
        (value) => {
          done();
          callback(null, value);
        },
        (error: unknown) => {
          done();
          callback(serviceError(error));
        },
      );
    };
  }
}

const isCheckedBeforeStart = ({ preStart, requireClean }: PluginResource): boolean => preStart === true || requireClean === true;

function serviceError(error: unknown): { code: number; details: string } {
  if (error instanceof Refusal) return { code: STATUS_OF[error.reason], details: error.message };
  return { code: status.INTERNAL, details: error instanceof Error ? error.message : String(error) };
}

/**
 * Returns a function that runs `refresh`: one at a time, and each at least `spacingMs` after the begin of the one before. Calls that wait share
 * the next run, so each call gets a read that began after it, and any number of calls costs no more than one run in each spacing.
 */
function spaced(refresh: () => Promise<unknown>, spacingMs: number, clock: Clock): () => Promise<void> {
  let next: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let beganMs = Number.NEGATIVE_INFINITY;
  const run = async (): Promise<void> => {
    await last;
    const waitMs = beganMs + spacingMs - clock.monotonic();
    if (waitMs > 0) await pause(clock, waitMs);
    next = undefined;
    beganMs = clock.monotonic();
    last = refresh().catch(() => undefined);
    await last;
  };
  return () => {
    next ??= run();
    return next;
  };
}

/** Event counts by name. */
export class Counts {
  readonly #counts: Map<string, number>;

  /** Names that are counted from 0. Any other name is present only after its first event. */
  constructor(names: readonly string[] = []) {
    this.#counts = new Map(names.map((name) => [name, 0]));
  }

  add(name: string): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
  }

  all(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }
}

export type Method = 'GetDevicePluginOptions' | 'ListAndWatch' | 'GetPreferredAllocation' | 'Allocate' | 'PreStartContainer';

/** What is counted of one resource since the agent started, whatever settings the resource had. */
export interface ResourceCounts {
  /** Registrations by result; `ok` means that the kubelet asked for the list. */
  readonly registrations: Counts;
  /** Answers to `Allocate` by result, and refusals of `PreStartContainer`. */
  readonly allocations: Counts;
  readonly calls: DurationTally<Method>;
}

export const resourceCounts = (): ResourceCounts => ({
  registrations: new Counts(),
  // Prometheus sees no increase of a counter that first appears with the value 1, and an alert depends on these.
  allocations: new Counts(['ok', ...REFUSAL_REASONS, 'internal']),
  calls: new DurationTally(),
});
