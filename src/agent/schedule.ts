import type { Awaited } from '../accounting/accounts.ts';
import type { Clock } from '../host/clock.ts';
import type { AllocationState } from '../model/snapshot.ts';
import type { FamilyRunner } from '../supervisor/family-runner.ts';
import { ClaimArrivals } from './claim-arrivals.ts';

/** While other reads run, inputs that arrive within this time share one snapshot. */
const SETTLE_MS = 20;
/** The same for inputs that change no holder and no verdict: a refresh that is not slower makes one snapshot. */
const QUIET_SETTLE_MS = 1_000;
/** Shortest time between two reads that a probe asked for. */
const WAKE_SPACING_MS = 100;
/** Work outside the interval waits for this multiple of the time that it last took, so that it takes at most a tenth of a core. */
const REST = 10;
/** Shortest time between the begins of two reads of a family for the sake of claims whose devices are not known. Claims arrive rarely. */
const CLAIM_SPACING_MS = 250;
/** Time between requests to the kubelet while it is unknown whom a fault hit. */
const FAULT_ASK_MS = 500;

/** What a snapshot lacks, and what the schedule therefore reads before the next refresh. All times are of the monotonic clock. */
export interface Lacks {
  /** Families with a container whose counters have no base yet. */
  readonly awaited: ReadonlyMap<string, Awaited>;
  /** Families with a container that seems to wait. */
  readonly readSoon: ReadonlySet<string>;
  /** When a device was first seen that may be a claim's, if the files of that claim were read before. */
  readonly unconfirmedMs: number | undefined;
  readonly allocations: readonly AllocationState[];
  /** Whom a fault hit is known when the kubelet answers after it. */
  readonly isFaultOpen: boolean;
}

/** What the schedule starts. */
export interface Work {
  /** Makes a snapshot of the latest inputs. */
  assemble(): Lacks;
  /** Asks the kubelet, and reads the files that belong to its answer. */
  ask(isForFault: boolean): Promise<void>;
  /** Reads the files of claims again. */
  readClaims(): Promise<void>;
}

export interface ScheduleSettings {
  readonly clock: Clock;
  readonly runners: readonly FamilyRunner[];
  /** Interval of the reads of a family whose container seems to wait. */
  readonly sampleMs: number;
  /** One refresh makes one snapshot, on request only, and nothing is read between two refreshes. */
  readonly isSteady: boolean;
}

/** When to read, to ask and to assemble: the timers of the agent between two refreshes. */
export class Schedule {
  readonly #clock: Clock;
  readonly #runners: readonly FamilyRunner[];
  readonly #isSteady: boolean;
  readonly #work: Work;
  #sampleMs: number;
  readonly #assembly: Alarm;
  readonly #faultAsk: Alarm;
  /** The next read of a family outside the interval. */
  readonly #reads: ReadonlyMap<FamilyRunner, Alarm>;
  /** The next read of its awaited devices alone. */
  readonly #readsOfAwaited: ReadonlyMap<FamilyRunner, Alarm>;
  readonly #restedMs = new Map<FamilyRunner, number>();
  #awaited: Lacks['awaited'] = new Map();
  /** For each family, the {@link Awaited.fromMs} of its last read outside the interval. */
  readonly #readFor = new Map<FamilyRunner, number>();
  /** For each family, the latest time at which a claim was seen that its reads serve. */
  readonly #readForClaims = new Map<FamilyRunner, number>();
  readonly #arrivals = new ClaimArrivals();
  /** The latest {@link Lacks.unconfirmedMs} for which the files of claims were read again. */
  #confirmedMs = Number.NEGATIVE_INFINITY;
  /** Monotonic clock before which no assembly begins outside a refresh. */
  #restsUntilMs = 0;
  /** An input has arrived since the last snapshot. */
  #isBehind = false;
  /** Running requests to the kubelet. */
  #asking = 0;
  #isAskingForFaults = false;
  #isClosed = false;

  constructor({ clock, runners, sampleMs, isSteady }: ScheduleSettings, work: Work) {
    this.#clock = clock;
    this.#runners = runners;
    this.#sampleMs = sampleMs;
    this.#isSteady = isSteady;
    this.#work = work;
    this.#assembly = new Alarm(clock);
    this.#faultAsk = new Alarm(clock);
    this.#reads = new Map(runners.map((runner) => [runner, new Alarm(clock)]));
    this.#readsOfAwaited = new Map(runners.map((runner) => [runner, new Alarm(clock)]));
  }

  configure({ sampleMs }: Pick<ScheduleSettings, 'sampleMs'>): void {
    this.#sampleMs = sampleMs;
  }

  /** Reads families, and asks for the holders where wanted. Resolves when each has answered or timed out, after the snapshot with the answers. */
  async read(runners: readonly FamilyRunner[], { hasHolders }: { readonly hasHolders: boolean }): Promise<void> {
    await Promise.all([hasHolders ? this.#ask() : undefined, ...runners.map((runner) => this.#refresh(runner))]);
    this.catchUp();
  }

  /** Makes a snapshot if an input has arrived since the last one. */
  catchUp(): void {
    if (this.#isBehind && !this.#isSteady) this.assemble();
  }

  /**
   * An input has arrived. A snapshot follows at once when no other read runs and the last snapshot was not made just now. Otherwise news waits
   * {@link SETTLE_MS} for the other reads, and an input that brings nothing new waits {@link QUIET_SETTLE_MS}. The end of a refresh makes the
   * snapshot at once.
   */
  changed(isNews = true): void {
    this.#isBehind = true;
    if (this.#isSteady) return;
    const nowMs = this.#clock.monotonic();
    const isReading = this.#asking > 0 || this.#runners.some((runner) => runner.isReading);
    const atMs = Math.max(nowMs + (!isReading ? 0 : isNews ? SETTLE_MS : QUIET_SETTLE_MS), this.#restsUntilMs);
    if (atMs <= nowMs) this.assemble();
    else this.#assembly.set(atMs, () => this.assemble());
  }

  /** Makes a snapshot now, and plans the reads for what it lacks. */
  assemble(): void {
    this.#assembly.cancel();
    this.#isBehind = false;
    const begunMs = this.#clock.monotonic();
    const { awaited, readSoon, unconfirmedMs, allocations, isFaultOpen } = this.#work.assemble();
    const endedMs = this.#clock.monotonic();
    this.#restsUntilMs = endedMs + REST * (endedMs - begunMs);
    this.#awaited = awaited;
    if (isFaultOpen) this.#askForFaults();
    const claimedMs = this.#arrivals.look(allocations, endedMs);
    for (const runner of this.#runners) {
      const { family } = runner;
      // A container's counters start at the first read that began after the container was seen. An early read loses the least.
      if (this.#isOpen(this.#readFor, runner, awaited.get(family)?.fromMs)) this.#wakeForAwaited(runner);
      if (readSoon.has(family)) this.wake(runner, Math.max(startedMs(runner) + this.#sampleMs, restedMs(runner)));
      // A driver may have made the device, an instance of a GPU for example, when it prepared the claim.
      if (this.#isOpen(this.#readForClaims, runner, claimedMs(family))) this.wake(runner, startedMs(runner) + CLAIM_SPACING_MS);
    }
    this.#confirmClaims(unconfirmedMs);
  }

  /** Reads a family outside the interval, but not before `fromMs` (monotonic clock). */
  wake(runner: FamilyRunner, fromMs = 0): void {
    this.#wake(this.#reads.get(runner), fromMs, () => void this.read([runner], { hasHolders: false }));
  }

  #wakeForAwaited(runner: FamilyRunner): void {
    this.#wake(this.#readsOfAwaited.get(runner), this.#restedMs.get(runner) ?? 0, async () => {
      const awaited = this.#awaited.get(runner.family);
      if (awaited === undefined) return;
      const begunMs = this.#clock.monotonic();
      await runner.refresh(awaited.ids);
      const endedMs = this.#clock.monotonic();
      this.#restedMs.set(runner, endedMs + REST * (endedMs - begunMs));
    });
  }

  #wake(alarm: Alarm | undefined, fromMs: number, read: () => unknown): void {
    if (!this.#isSteady) alarm?.set(Math.max(this.#clock.monotonic() + WAKE_SPACING_MS, fromMs), read);
  }

  /** Ends all timers. What runs goes on. */
  close(): void {
    this.#isClosed = true;
    for (const alarm of [this.#assembly, this.#faultAsk, ...this.#reads.values(), ...this.#readsOfAwaited.values()]) alarm.cancel();
  }

  /** Begins a read, which serves the requests for a later one. */
  #refresh(runner: FamilyRunner): Promise<void> {
    if (!runner.isReading) for (const reads of [this.#reads, this.#readsOfAwaited]) reads.get(runner)?.cancel();
    return runner.refresh();
  }

  /** Whether no read was requested yet that begins after `seenMs`. One is enough, even if it fails. `done`: the latest such time of each family. */
  #isOpen(done: Map<FamilyRunner, number>, runner: FamilyRunner, seenMs: number | undefined): boolean {
    if (seenMs === undefined || seenMs <= (done.get(runner) ?? Number.NEGATIVE_INFINITY)) return false;
    if (!runner.isReading) done.set(runner, seenMs);
    return true;
  }

  async #ask(isForFault = false): Promise<void> {
    this.#asking += 1;
    await this.#work.ask(isForFault);
    this.#asking -= 1;
  }

  #askForFaults(): void {
    if (this.#isSteady || this.#isAskingForFaults) return;
    this.#isAskingForFaults = true;
    this.#faultAsk.set(this.#clock.monotonic() + FAULT_ASK_MS, () => {
      void this.#ask(true).then(() => {
        this.#isAskingForFaults = false;
        if (!this.#isClosed) this.assemble();
      });
    });
  }

  /** Reads the files of claims again, once for each time at which a device was first seen that may be theirs. */
  #confirmClaims(seenMs: number | undefined): void {
    if (this.#isSteady || seenMs === undefined || seenMs <= this.#confirmedMs) return;
    this.#confirmedMs = seenMs;
    void this.#work.readClaims().then(() => this.changed());
  }
}

/** One call to come. */
class Alarm {
  readonly #clock: Clock;
  #next: { readonly atMs: number; cancel(): void } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls `run` at `atMs` (monotonic clock), unless a call comes before. */
  set(atMs: number, run: () => void): void {
    if (this.#next !== undefined && this.#next.atMs <= atMs) return;
    this.cancel();
    const due = (): void => {
      this.#next = undefined;
      run();
    };
    this.#next = { atMs, cancel: this.#clock.after(atMs - this.#clock.monotonic(), due) };
  }

  cancel(): void {
    this.#next?.cancel();
    this.#next = undefined;
  }
}

/** When a family that was just read may be read again for the sake of its holders. The next refresh reads it anyway. */
function restedMs(runner: FamilyRunner): number {
  const { startedMs, monotonicMs } = runner.latest() ?? { startedMs: 0, monotonicMs: 0 };
  return monotonicMs + REST * (monotonicMs - startedMs);
}

const startedMs = (runner: FamilyRunner): number => runner.latest()?.startedMs ?? 0;

/**
 * Calls `tick` at once and then every `intervalMs`, without drift. The second call comes after a random part of the interval, so
 * that the nodes of a cluster do not read at the same time. `tick` only starts work. A part that still runs ignores the tick, so a slow
 * part never delays another. Returns a function that stops the calls.
 */
export function every(intervalMs: number, tick: () => void, clock: Clock, random: () => number = Math.random): () => void {
  let dueMs = clock.monotonic() + intervalMs * (0.5 + random() / 2);
  let cancel = (): void => {};
  const wait = (): void => {
    cancel = clock.after(Math.max(0, dueMs - clock.monotonic()), () => {
      // Ticks missed while the whole machine was suspended are skipped.
      dueMs = Math.max(dueMs, clock.monotonic() - intervalMs) + intervalMs;
      wait();
      tick();
    });
  };
  wait();
  tick();
  return () => cancel();
}
