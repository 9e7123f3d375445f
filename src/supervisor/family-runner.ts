import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../host/clock.ts';
import { deviceDirectory, type Step } from '../host/fs/step-guard.ts';
import type { Roots } from '../host/host.ts';
import type { Collection, DeviceReport, HungStep, Problem } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { ReadTimes } from '../model/device-record.ts';
import type { FaultMark } from '../model/fault.ts';
import type { Finding } from '../model/health.ts';
import type { ReadingList } from '../model/readings.ts';
import type { Release } from '../model/release.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { HungPlaces, hungAt } from './hung-places.ts';
import type { ReadAgain } from './posted-collection.ts';
import type { Job, Outcome, OutcomeOf, ReaderPool, StuckReader } from './reader-pool.ts';
import { RunTally } from './run-tally.ts';

/** A timer fires a little early, so the time is shorter than three default refreshes. */
const ABSENT_EVERY_MS = 29_000;
/** A family that waits longer for its vendor's library or program lets no other family wait for it again. */
const SLOW_MS = 1_500;
/** A reader needs descriptors to start and to load its code. The module loader reports the shortage in its own text. */
const SHORTAGE = /\bE[MN]FILE\b|too many open files/i;

export interface RunnerSettings {
  readonly family: string;
  /** The data of a declared family; absent for a family in code. */
  readonly declared?: object;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
  readonly timeoutMs: number;
  /** See {@link DeviceFamily.canBeSlow}. */
  readonly canBeSlow?: boolean | undefined;
  /** It has a reader of its own from the start. */
  readonly isApart?: boolean;
  /** Steps that hung when an earlier run of the agent ended. They are tried last. */
  readonly hung?: readonly HungStep[];
  /** An earlier run of the agent knew devices of this family. */
  readonly isExpected?: boolean;
  /** An earlier run of the agent read all of the family since the machine booted. */
  readonly wasReadCompletely?: boolean;
}

export interface RunnerEvents {
  /** The state was determined again. `isNews` is false for a collection that changes no verdict, and when there is still no hardware. */
  changed(isNews: boolean): void;
  /** The probe detected an event and requests a read soon. */
  wake(): void;
  /** The probe or its reader ended with an error that differs from its last one. */
  crashed(family: string, message: string): void;
}

export interface RunnerDependencies {
  readonly clock: Clock;
  readonly readers: ReaderPool;
  readonly events: RunnerEvents;
  /** Whether the machine may have devices of the family. Default: true. Must return quickly. */
  readonly isPresent?: () => boolean;
  /** Known devices of the family. */
  readonly known?: () => readonly Device[];
  /** What was counted of its faults in the log. */
  readonly counted?: () => FaultMark;
}

/** One collection of a family, with its times. */
export interface TimedCollection extends ReadTimes {
  readonly collection: Collection<ReadingList>;
  /** When devices were read that were read again since, keyed by id. */
  readonly again?: ReadonlyMap<string, ReadTimes>;
}

/**
 * The state of one family: its latest collection, and the places that its reads leave out. Two runs never overlap. A family that was never on this
 * node has no probe. A family that was on this node before is read at each refresh, because its devices may return; until then they are not read.
 */
export class FamilyRunner {
  readonly family: string;
  #settings: RunnerSettings;
  readonly #clock: Clock;
  readonly #readers: ReaderPool;
  readonly #events: RunnerEvents;
  readonly #known: () => readonly Device[];
  readonly #counted: (() => FaultMark) | undefined;
  readonly #isPresent: () => boolean;
  readonly #tally = new RunTally();
  readonly #hung: HungPlaces;
  /** It has a reader of its own from now on, even when nothing hangs: it was slow, or a library ended its reader. */
  #isApart: boolean;
  #isTrying = false;
  /** The probe has other options than it should, or is in an unknown state. */
  #isOutdated = false;
  #refresh: { readonly done: Promise<void>; readonly isOfSome: boolean } | undefined;
  #latest: TimedCollection | undefined;
  /** The family has or had devices on this node. */
  #isKnown: boolean;
  /** Monotonic clock of the last look that found no hardware; undefined when it may be there. */
  #absentAtMs: number | undefined;
  /** The last refresh found no hardware and made no run. */
  #isSkipped = false;
  #wasReadCompletely: boolean;
  /** Why the last run failed. */
  #fault: Problem | undefined;
  #lastCrash: string | undefined;
  /** The last request to close the driver. The probe itself decides when it is over. */
  #release: Release | undefined;
  #isClosed = false;

  constructor(settings: RunnerSettings, { clock, readers, events, isPresent = () => true, known = () => [], counted }: RunnerDependencies) {
    this.family = settings.family;
    this.#settings = settings;
    this.#clock = clock;
    this.#readers = readers;
    this.#events = events;
    this.#known = known;
    this.#counted = counted;
    this.#isPresent = isPresent;
    this.#isApart = settings.isApart ?? false;
    this.#isKnown = settings.isExpected ?? false;
    this.#wasReadCompletely = settings.wasReadCompletely ?? false;
    this.#hung = new HungPlaces(clock, settings.hung ?? []);
    readers.onChange(({ family, path }, hasEnded) => {
      if (family !== this.family || this.#isClosed) return;
      if (hasEnded && path !== undefined) this.#hung.answered(deviceDirectory(path));
      if (!this.isReading) events.changed(true);
    });
  }

  /** Other options take effect in a new probe, at the next run. Equal options keep the probe. */
  configure({ options, timeoutMs }: Pick<RunnerSettings, 'options' | 'timeoutMs'>): void {
    const isOther = !isDeepStrictEqual(options, this.#settings.options);
    this.#settings = { ...this.#settings, options, timeoutMs };
    this.#isOutdated ||= isOther;
    // A run in progress still has the old options.
    if (isOther && this.isReading) void this.refresh().then(() => this.refresh());
  }

  /** The latest finished collection. */
  latest(): TimedCollection | undefined {
    return this.#latest;
  }

  /** The last run failed, so the latest collection says nothing about the present. */
  get isBlind(): boolean {
    return this.#fault !== undefined;
  }

  /** Whether a refresh is in progress. */
  get isReading(): boolean {
    return this.#refresh !== undefined;
  }

  /** Hanging steps, to be saved for a later run of the agent. */
  get hung(): readonly HungStep[] {
    return this.#hung.steps;
  }

  state(): FamilyState {
    const read = this.#latest?.collection.problems ?? [];
    const hanging = [...this.#hung.problems, ...this.#readers.stuck(this.family).map(asleep)];
    const problems = [...read, ...hanging, ...(this.#fault === undefined ? [] : [this.#fault])];
    const state = this.#tally.state(this.family, withoutRepetition(problems), hanging.length > 0 || this.#fault?.code === 'probe-hung');
    // A read without any device says only that there is none at present: a driver can load later.
    const isNone = this.#latest !== undefined && this.#fault === undefined && isWhole(this.#latest.collection);
    return this.#wasReadCompletely || this.#isSkipped || isNone ? { ...state, readCompletely: true } : state;
  }

  /** A read since the boot reached all of the family and found devices. */
  get wasReadCompletely(): boolean {
    return this.#wasReadCompletely;
  }

  /**
   * Refreshes once; resolves when the refresh has succeeded or failed. Joins a refresh in progress. `ids`: devices that are enough, if the
   * last refresh read all of the family.
   */
  refresh(ids?: ReadonlySet<string>): Promise<void> {
    const running = this.#refresh;
    if (running !== undefined) return ids === undefined && running.isOfSome ? running.done.then(() => this.refresh()) : running.done;
    if (this.#isClosed || this.#readers.isAtLimit(this.family)) return Promise.resolve();
    if (!this.#isKnown && this.#isAbsent()) {
      this.#skip();
      return Promise.resolve();
    }
    this.#isSkipped = false;
    const isEnough = this.#hung.isEmpty && this.#fault === undefined && this.#latest?.collection.listing === 'complete';
    const done = this.#read(isEnough ? ids : undefined);
    this.#refresh = { done, isOfSome: ids !== undefined };
    return done;
  }

  /**
   * Lets the probe close the driver until the release ends, or open it again. Resolves to the number of readers that sleep in the driver, and thus
   * keep it open.
   */
  async release(release: Release | undefined): Promise<number> {
    this.#release = release;
    // A refresh in progress may have begun before.
    if (this.isReading) await this.refresh();
    await this.refresh();
    return this.#readers.stuck(this.family).length;
  }

  /** No further run begins. The readers end by themselves, see {@link ReaderPool.close}. */
  close(): void {
    this.#isClosed = true;
  }

  /** Hardware that is not there is looked for twice a minute at most. */
  #isAbsent(): boolean {
    const nowMs = this.#clock.monotonic();
    if (this.#absentAtMs !== undefined && nowMs - this.#absentAtMs < ABSENT_EVERY_MS) return true;
    this.#absentAtMs = this.#isPresent() ? undefined : nowMs;
    return this.#absentAtMs !== undefined;
  }

  /** Ends a refresh without a run: the family has and had no devices. */
  #skip(): void {
    this.#readers.leave(this.family);
    this.#latest = undefined;
    this.#fault = undefined;
    this.#tally.skipped(this.#clock.now());
    const isNews = !this.#isSkipped;
    this.#isSkipped = true;
    this.#events.changed(isNews);
  }

  /** Runs until a run completes or fails. A run whose step hangs is repeated without the place of that step. */
  async #read(ids: ReadonlySet<string> | undefined): Promise<void> {
    let isNews: boolean | undefined;
    while (isNews === undefined) {
      const job = { ...this.#job(), ids, isFresh: this.#isOutdated };
      this.#isOutdated = false;
      isNews = this.#took(await this.#readers.run(job));
    }
    this.#refresh = undefined;
    if (this.#isClosed) return;
    this.#events.changed(isNews);
    // A place that is left out is tried again after the other devices were read.
    if (this.#fault === undefined) void this.#tryAgain();
  }

  #job(): Omit<Job, 'ids' | 'isFresh'> {
    const { family, timeoutMs } = this.#settings;
    return {
      ...{ family, timeoutMs, leftOut: this.#hung.places, release: this.#release, isApart: this.#mustBeApart },
      start: () => {
        const { declared, options, roots } = this.#settings;
        return { declared, options, roots, known: this.#known(), counted: this.#counted?.() };
      },
      wake: () => this.#events.wake(),
      erred: (message) => this.#reportCrash(message),
    };
  }

  /** Tries the places that are due, one after the other, beside the reads of the other devices. */
  async #tryAgain(): Promise<void> {
    const place = this.#isTrying || this.#readers.isAtLimit(this.family) ? undefined : this.#hung.due(this.#sleeping);
    if (place === undefined) return;
    this.#isTrying = true;
    const isOfLibrary = this.#hung.isOfLibrary(place);
    const leftOut = this.#hung.places.filter((other) => other !== place);
    const outcome = await this.#readers.run({
      ...this.#job(),
      ids: undefined,
      leftOut,
      isTrial: true,
      isFresh: true,
      wake() {},
      erred() {},
    });
    this.#isTrying = false;
    if (outcome.end !== 'collected') {
      this.#hung.postpone(place);
      return;
    }
    this.#hung.delete(place);
    // A probe decides at its start with which devices of a library it works.
    this.#isOutdated ||= isOfLibrary;
    this.#events.wake();
    void this.#tryAgain();
  }

  /** Takes the result of a run. Returns whether there is news; undefined when the run must be repeated. */
  #took(outcome: Outcome): boolean | undefined {
    switch (outcome.end) {
      case 'collected':
        return this.#collected(outcome);
      case 'partial':
        return this.#readAgain(outcome.startedMs, outcome.again);
      case 'failed':
        return this.#crashed(outcome.message);
      case 'hung':
        return this.#abandoned(outcome);
      case 'died':
        return this.#died(outcome);
      case 'closed':
        return false;
    }
  }

  #abandoned({ step, isRunOverdue }: OutcomeOf<'hung'>): true | undefined {
    this.#tally.abandoned();
    const wasApart = this.#mustBeApart;
    this.#isApart ||= step?.kind === 'call' || (isRunOverdue && this.#canBeSlow);
    // A call that is slow, and does not hang, has more time there.
    if (step?.kind === 'call' && !wasApart) return undefined;
    const isLeftOut = step !== undefined && this.#leaveOut(step);
    if (isLeftOut && !isRunOverdue && !this.#readers.isAtLimit(this.family)) return undefined;
    // The reader was ended, and the problem lasts until a run completes.
    return this.#failed(hungAt(step));
  }

  /** False when the place was left out before, so that a further run would not differ. */
  #leaveOut(step: Step, problem?: Problem): boolean {
    const isNew = !this.#hung.has(deviceDirectory(step.path));
    this.#hung.add(step, problem);
    return isNew;
  }

  get #canBeSlow(): boolean {
    return this.#settings.canBeSlow ?? false;
  }

  get #mustBeApart(): boolean {
    return this.#isApart || !this.#hung.isEmpty;
  }

  get #sleeping(): ReadonlySet<string> {
    return new Set(this.#readers.stuck(this.family).flatMap(({ path }) => (path === undefined ? [] : [deviceDirectory(path)])));
  }

  /** A call that ends the reader is left out like one that hangs. */
  #died({ step, by: { how, isFromOutside, refused } }: OutcomeOf<'died'>): true | undefined {
    if (refused !== undefined) {
      const code = SHORTAGE.test(refused) ? 'descriptors-exhausted' : 'reader-refused';
      return this.#failed({ code, message: `a reader cannot be started: ${how}` });
    }
    const problem = { code: 'reader-ended', message: `the reader ended${step === undefined ? '' : ` in ${step.path}`}: ${how}` };
    this.#reportCrash(problem.message);
    if (step?.kind !== 'call' || isFromOutside) return this.#failed(problem);
    this.#isApart = true;
    return this.#leaveOut(step, problem) ? undefined : this.#failed(problem);
  }

  /** What the other devices reported stays, with the time of their read. */
  #readAgain(startedMs: number, { reports, ids }: ReadAgain): boolean {
    const before = this.#latest as TimedCollection;
    const times = { startedMs, readAtMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() };
    const collection = { ...before.collection, reports };
    this.#latest = { ...before, collection, again: new Map([...(before.again ?? []), ...ids.map((id) => [id, times] as const)]) };
    return hasNews(before.collection, collection);
  }

  #collected({ collection: raw, durationMs, startedMs }: OutcomeOf<'collected'>): boolean {
    const readAtMs = this.#clock.now();
    const isLost = raw.listing === 'absent' && this.#isKnown;
    const collection = isLost ? { ...raw, problems: [...raw.problems, NOTHING_SHOWN] } : raw;
    const isNews = this.#fault !== undefined || hasNews(this.#latest?.collection, collection);
    this.#latest = { collection, startedMs, readAtMs, monotonicMs: this.#clock.monotonic() };
    this.#fault = undefined;
    this.#tally.ended(hasRead(collection) && !isLost, durationMs, readAtMs);
    this.#isApart ||= this.#canBeSlow && durationMs > SLOW_MS;
    this.#isKnown ||= raw.reports.length > 0;
    this.#wasReadCompletely ||= collection.reports.length > 0 && isWhole(collection);
    return isNews;
  }

  /** A thrown error is a bug. The probe is made anew, so that no inconsistent state remains. */
  #crashed(message: string): true {
    const [first = ''] = message.split('\n', 1);
    const isShort = SHORTAGE.test(first);
    if (!isShort) this.#reportCrash(message);
    this.#isOutdated = true;
    return this.#failed({ code: isShort ? 'descriptors-exhausted' : 'probe-crashed', message: first });
  }

  /** An error is identified by its message and first stack line; the rest of the stack differs from run to run. */
  #reportCrash(message: string): void {
    const crash = message.split('\n', 2).join('\n');
    if (crash !== this.#lastCrash) this.#events.crashed(this.family, message);
    this.#lastCrash = crash;
  }

  #failed(fault: Problem): true {
    this.#fault = fault;
    this.#tally.failed();
    return true;
  }
}

const asleep = ({ pid, path }: StuckReader): Problem => ({
  code: 'reader-stuck',
  message: `process ${pid} sleeps in the kernel${path === undefined ? '' : ` at ${path}`} and cannot be ended`,
});

/** Whether a collection reached at least some of the hardware. */
const hasRead = ({ listing, reports }: Collection<unknown>): boolean =>
  listing !== 'partial' || reports.some(({ read }) => read !== undefined);

/** Whether a collection left out nothing. A problem of a family without devices can hide all of them. */
const isWhole = ({ listing, reports, problems }: Collection<unknown>): boolean =>
  listing !== 'partial' && (reports.length > 0 || problems.length === 0);

/**
 * Whether a device, a problem or a finding differs from the collection before. A counter that grew is no news: its growth is judged over
 * minutes.
 */
function hasNews(before: Collection<unknown> | undefined, now: Collection<unknown>): boolean {
  if (before === undefined || before.listing !== now.listing || before.reports.length !== now.reports.length) return true;
  if (!isDeepStrictEqual(before.problems, now.problems)) return true;
  return now.reports.some(({ device, read, outOfBand }, at) => {
    const was = before.reports[at] as DeviceReport<unknown>;
    const isSameDevice = was.device.id === device.id && was.device.identity === device.identity;
    return !isSameDevice || areOther(was.read?.findings, read?.findings) || areOther(was.outOfBand?.findings, outOfBand?.findings);
  });
}

function areOther(before: readonly Finding[] | undefined, now: readonly Finding[] | undefined): boolean {
  if (before === now || before === undefined || now === undefined) return before !== now;
  const isOther = ({ type, instance, status, level }: Finding, at: number): boolean => {
    const was = before[at] as Finding;
    return was.type !== type || was.instance !== instance || was.status !== status || was.level !== level;
  };
  return before.length !== now.length || now.some(isOther);
}

function withoutRepetition(problems: readonly Problem[]): readonly Problem[] {
  const keyOf = ({ code, message, device }: Problem): string => [code, message, device].join('\u0000');
  return [...new Map(problems.map((problem) => [keyOf(problem), problem])).values()];
}

const NOTHING_SHOWN: Problem = { code: 'nothing-shown', message: 'the machine shows no trace of the devices that it had' };
