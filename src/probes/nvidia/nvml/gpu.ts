import type { GpuIdentity, GpuSample, KeptTimes, LinkSample, LinkState, LinkStates } from '../sample.ts';
import { combinedRecovery } from '../states.ts';
import type { Values } from '../values.ts';
import { CODE, kindOf, unreadFor } from './codes.ts';
import { Activities } from './gpm.ts';
import type { DriverVersion } from './gpu-questions.ts';
import { Instances } from './instances.ts';
import type { Handle, Library } from './library.ts';
import { LinkErrors } from './link-errors.ts';
import { type LinkEnds, type LinksRead, NO_ENDS, NO_LINKS, readLinkEnds, readLinks } from './nvlink.ts';
import { Processes } from './processes.ts';
import { Answers, type CallTracker, placesOf, type Question } from './question.ts';

/** Library, driver and questions with which GPUs are read. */
export interface Bound {
  readonly library: Library;
  readonly driver: DriverVersion;
  readonly gpuQuestions: readonly Question[];
  readonly instanceQuestions: readonly Question[];
  readonly isActivityWanted: boolean;
}

/** Groups of values to read in addition to the quickly changing values. */
export interface Due {
  /** Values for which an interval of half a minute is enough. */
  readonly slow: boolean;
  /** Values that change only when an operator changes them. True only together with `slow`. */
  readonly facts: boolean;
  /** Monotonic time. */
  readonly nowMs: number;
}

/** One GPU with its handle and its instances. */
export class Gpu {
  readonly handle: Handle;
  readonly identity: GpuIdentity;
  readonly tracker: CallTracker;
  readonly #library: Library;
  readonly #answers: Answers;
  readonly #instances: Instances;
  readonly #processes: Processes;
  readonly #activities: Activities;
  #links: LinksRead = NO_LINKS;
  #linksMs = -Infinity;
  /** Monotonic clock of the last round. */
  #nowMs = -Infinity;
  #highestLinks = 0;
  readonly #linkErrors = new LinkErrors();
  #ends: LinkEnds = NO_ENDS;
  #isLost = false;

  constructor(handle: Handle, identity: GpuIdentity, bound: Bound, tracker: CallTracker) {
    this.handle = handle;
    this.identity = identity;
    this.tracker = tracker;
    this.#library = bound.library;
    this.#answers = new Answers(bound.gpuQuestions, handle, tracker);
    this.#instances = new Instances(bound.library, bound.instanceQuestions, handle, tracker);
    this.#processes = new Processes(bound.library, bound.driver.branch, handle, tracker);
    this.#activities = new Activities(bound.library, handle, tracker, bound.isActivityWanted);
  }

  get isLost(): boolean {
    return this.#isLost;
  }

  /** True when it is split into instances, or when this could not be read. */
  get maySplit(): boolean {
    return this.#answers.sample().values?.isMigOn !== false;
  }

  /** Ends of its NVLinks from the last read. */
  get linkEnds(): LinkEnds {
    return this.#ends;
  }

  /** Returns the codes of device faults among the latest answers. */
  faults(): ReadonlySet<number> {
    return new Set(this.#answers.codes().filter((code) => kindOf(code) === 'device'));
  }

  /** Reads the quickly changing values and the values that are due. Returns the code if a node failure ended the round. */
  refresh(due: Due): number | undefined {
    // A lost GPU that returns has no known values, so everything is read.
    this.#nowMs = due.nowMs;
    const ended = this.#round(this.#isLost ? { ...due, slow: true, facts: true } : due);
    this.#isLost = ended === CODE.gpuIsLost;
    if (this.#isLost) this.#forget();
    return this.#isLost ? undefined : ended;
  }

  /** Returns the sample of the last round. `factsAtMs`: monotonic clock of the last round that read all facts of all GPUs. */
  sample(factsAtMs: number): GpuSample {
    if (this.#isLost)
      return {
        identity: { ...this.#answers.sample().identity, ...this.identity },
        unread: unreadFor(CODE.gpuIsLost, placesOf(['temperatureCelsius'])),
      };
    const answered = this.#answers.sample();
    const instances = this.#instances.samples();
    const processes = this.#processes.list();
    // A call that fails with "reset required" also means a recovery action.
    const recovery = combinedRecovery(answered.recovery, this.faults().has(CODE.resetRequired) ? true : undefined);
    return {
      ...answered,
      identity: { ...answered.identity, ...this.identity },
      values: { ...answered.values, ...this.#trafficOfLinks(this.#activities.whole()) },
      recovery,
      links: this.#links.links,
      linkStates: this.#linkStates(),
      instances: instances.map((instance) => ({
        ...instance,
        values: { ...instance.values, ...this.#trafficOfLinks(this.#activities.of(instance)) },
        times: new Map([...(instance.times ?? []), ...this.#activities.times(this.#nowMs, instance)]),
      })),
      times: this.#times(factsAtMs),
      unread: [...(answered.unread ?? []), ...this.#instances.unread()],
      ...(processes && { processes }),
    };
  }

  /** Must be called before the library's client ends. */
  close(): void {
    this.#activities.free();
  }

  /** Runs one round. Returns the code that ended it: a code of the node, or that the GPU is lost. */
  #round({ slow: isDue, facts, nowMs }: Due): number | undefined {
    const answers = this.#answers;
    let ended = facts ? answers.ask(nowMs, 'once') : undefined;
    ended ??= answers.ask(nowMs, 'read');
    const wasSplit = this.#instances.isSplit;
    ended ??= this.#instances.refresh(answers.sample().values?.isMigOn, isDue, nowMs);
    // What was read of a split GPU tells nothing of the whole one: its links are down, for example.
    const slow = isDue || this.#instances.isSplit !== wasSplit;
    if (facts) ended ??= answers.ask(nowMs, 'facts');
    if (slow) ended ??= answers.ask(nowMs, 'slow');
    if (ended !== undefined) return ended;
    this.#processes.refresh(slow, nowMs);
    if (slow) {
      this.#links = this.tracker.during('nvmlDeviceGetNvLinkState', () => readLinks(this.#library, this.handle, this.#highestLinks));
      this.#highestLinks = Math.max(this.#highestLinks, this.#links.links.length);
      this.#linkErrors.take(this.#links.links, nowMs);
      this.#linksMs = nowMs;
    }
    if (facts)
      this.#ends = this.tracker.during('nvmlDeviceGetNvLinkRemotePciInfo', () =>
        readLinkEnds(this.#library, this.handle, this.#links.links, this.#ends),
      );
    this.#activities.refresh(nowMs, this.#instances.isSplit, this.#instances.samples());
    return undefined;
  }

  /** A GPU without links has no traffic of links: driver 580 answers 0 for an H200 of a virtual machine that was given none. */
  #trafficOfLinks(means: Values | undefined): Values | undefined {
    const { links, isComplete } = this.#links;
    if (!isComplete || links.length > 0) return means;
    return means && { ...means, nvlinkMeanReceiveBytesPerSecond: undefined, nvlinkMeanTransmitBytesPerSecond: undefined };
  }

  #times(factsAtMs: number): KeptTimes {
    const times = this.#answers.times(this.#nowMs);
    if (this.#linksMs !== this.#nowMs) times.set('links', this.#linksMs);
    if (factsAtMs !== this.#nowMs) times.set('peers', factsAtMs);
    for (const [part, atMs] of this.#activities.times(this.#nowMs)) times.set(part, atMs);
    return times;
  }

  #linkStates(): LinkStates {
    const { links, isComplete } = this.#links;
    const stateOf = (link: LinkSample): LinkState => ({
      number: link.number,
      isUp: link.isUp,
      end: this.#ends.ofLink.get(link.number),
      errors: this.#linkErrors.of(link),
    });
    return { links: links.map(stateOf), isComplete };
  }

  /** Drops all values from before the loss. It keeps the ends of the links, which do not change. */
  #forget(): void {
    this.#answers.forget();
    this.#instances.forget();
    this.#processes.forget();
    this.#activities.free();
    this.#links = NO_LINKS;
  }
}
