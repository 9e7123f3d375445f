import { dirname, join } from 'node:path';
import { Accounts, type AccountsSettings } from '../accounting/accounts.ts';
import { createUsageFile, type SavedUsage, type UsageFile, type UsageRead } from '../accounting/usage-file.ts';
import type { UptimeClock } from '../host/clock.ts';
import { endsWithin } from '../host/clock.ts';
import { setAside } from '../host/fs/kept-file.ts';
import { SingleFlight } from '../host/single-flight.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import { defined } from '../model/defined.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Usage } from '../model/usage.ts';
import { type WaitingSettings, WaitingTracker } from '../waiting/tracker.ts';
import type { AgentSettings } from './settings.ts';
import { bootIdOf, StateLease } from './state.ts';

/** Snapshots of one refresh that come within this time are saved together. */
const SETTLE_MS = 100;
/** A write that takes longer counts as failed until it ends. */
const WRITE_TIMEOUT_MS = 5_000;

/** Keeps the accounts over restarts of the agent: connects them with their file, their timer and the log. */
export class AccountingService {
  readonly accounts: Accounts;
  /** Its memory lies in the same file. */
  readonly waiting: WaitingTracker;
  readonly #clock: UptimeClock;
  readonly #file: UsageFile | undefined;
  readonly #lease: StateLease;
  readonly #report: (error: string | undefined) => void;
  #intervalMs: number;
  /** The accounts that are on the disk. Absent while the disk has none or does not take them. */
  #onDisk: Usage | undefined;
  #latest: Snapshot | undefined;
  #onKept: (snapshot: Snapshot) => void = () => {};
  #steppedMs = 0;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  readonly #writes = new SingleFlight(() => this.#write());
  #cancel: (() => void) | undefined;
  #isClosed = false;

  private constructor(
    settings: AgentSettings,
    clock: UptimeClock,
    logger: Logger,
    file: UsageFile | undefined,
    read: UsageRead | undefined,
    lease: StateLease,
  ) {
    this.#clock = clock;
    this.#lease = lease;
    this.#file = file;
    this.#intervalMs = settings.refresh.interval;
    const changes = createChangeLog(logger, () => clock.monotonic());
    this.#report = (error) => changes.update('usage', error === undefined ? [] : [unsaved(file?.path ?? '', error)]);
    const saved = read?.saved;
    const isSameBoot = saved !== undefined && isOfThisBoot(saved, read?.ignored === undefined ? read?.bootId : '', settings, clock);
    this.accounts = new Accounts(
      accountsSettings(settings),
      saved === undefined
        ? undefined
        : { state: saved.accounts, gapMs: gapOf(saved, isSameBoot, clock), monotonicMs: clock.monotonic(), isSameBoot },
    );
    this.waiting = new WaitingTracker(waitingSettings(settings), saved?.waiting);
    // The page never shows more than what a later run will know.
    if (file !== undefined) this.#onDisk = this.accounts.usage();
  }

  /** Reads what an earlier run saved beside the health state. Without a state file, everything is in memory only. */
  static async open(settings: AgentSettings, logger: Logger, clock: UptimeClock, lease = new StateLease()): Promise<AccountingService> {
    const { file: stateFile } = settings.state;
    const file = stateFile === '' ? undefined : createUsageFile(join(dirname(stateFile), 'usage.json'), bootIdOf(settings.roots.procfs));
    const read = await file?.read();
    if (file !== undefined && read?.ignored !== undefined && read.ignored !== 'absent') {
      tellUnused(logger, file.path, { reason: read.ignored, detail: read.message, kept: read.kept });
    }
    try {
      return new AccountingService(settings, clock, logger, file, read, lease);
    } catch (error) {
      // Only a file of another make has the checksum and not the fields.
      const [path, detail] = [file?.path ?? '', error instanceof Error ? error.message : String(error)];
      tellUnused(logger, path, { reason: 'damaged', detail, kept: await setAside(path) });
      return new AccountingService(settings, clock, logger, file, undefined, lease);
    }
  }

  /** Takes other settings from the next snapshot on. */
  configure(settings: AgentSettings): void {
    this.#intervalMs = settings.refresh.interval;
    this.accounts.configure(accountsSettings(settings));
    this.waiting.configure(waitingSettings(settings));
  }

  /**
   * The totals for the metrics page. They are those on the disk: a counter that shows more would fall when the agent is killed. While the
   * disk does not take them, they are those of the latest snapshot.
   */
  shown(latest: Usage | undefined): Usage | undefined {
    return this.#onDisk ?? latest;
  }

  /**
   * Calls `onKept` with each snapshot whose accounts are on the disk, and with each one that the disk did not take. Snapshots between two
   * writes are left out.
   */
  follow(onKept: (snapshot: Snapshot) => void): void {
    this.#onKept = onKept;
  }

  /** Must be called after each snapshot. Saves it soon, once in an interval. */
  published(snapshot: Snapshot): void {
    this.#latest = snapshot;
    this.#steppedMs = this.#clock.monotonic();
    if (this.#file === undefined) this.#onKept(snapshot);
    if (this.#file === undefined || this.#isClosed) return;
    const dueInMs = this.#writtenAtMs + this.#intervalMs - this.#steppedMs;
    this.#cancel ??= this.#clock.after(Math.max(SETTLE_MS, dueInMs), () => {
      this.#cancel = undefined;
      void this.save();
    });
  }

  /** Saves the latest accounts, after the write that is under way. Resolves when they are on disk or when that takes too long. */
  async save(): Promise<void> {
    const snapshot = this.#latest;
    if (this.#file === undefined || snapshot === undefined) return;
    if (!(await endsWithin(this.#writes.again(), WRITE_TIMEOUT_MS, this.#clock)))
      this.#written(snapshot, 'the disk has not answered for 5 s');
  }

  /** Resolves when the write that is under way has ended, or takes too long. */
  async settled(): Promise<void> {
    const { running } = this.#writes;
    if (running !== undefined) await endsWithin(running, WRITE_TIMEOUT_MS, this.#clock);
  }

  /** Saves a last time. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    await this.save();
  }

  async #write(): Promise<void> {
    const [file, snapshot] = [this.#file as UsageFile, this.#latest as Snapshot];
    this.#writtenAtMs = this.#clock.monotonic();
    const agoMs = this.#writtenAtMs - this.#steppedMs;
    const saved: SavedUsage = {
      savedAtMs: this.#clock.now() - agoMs,
      sinceBootMs: this.#clock.sinceBoot() - agoMs,
      accounts: this.accounts.state(),
      waiting: this.waiting.state(),
    };
    const error = this.#lease.isHeld ? await file.write(saved, this.#isClosed) : undefined;
    this.#written(snapshot, error);
  }

  #written(snapshot: Snapshot, error: string | undefined): void {
    // After a failure the page shows the latest totals. It stays with them until the disk has those.
    if (error !== undefined) this.#onDisk = undefined;
    else if (this.#onDisk !== undefined || snapshot === this.#latest) this.#onDisk = snapshot.usage;
    this.#report(error);
    this.#onKept(snapshot);
  }
}

interface Unused {
  readonly reason: string;
  readonly detail: string;
  readonly kept: string | undefined;
}

function tellUnused(logger: Logger, path: string, unused: Unused): void {
  logger.warn('the saved usage is not used; all totals start at 0', defined({ path, ...unused }));
}

const unsaved = (path: string, detail: string) => ({
  key: path,
  message: 'the usage of devices cannot be saved; it would be lost at a restart',
  ended: 'the usage of devices could not be saved; it is saved again',
  fields: { path },
  detail,
});

/** A monotonic clock that is behind the saved one proves a reboot too. Without an identity, the boot may be another one. */
function isOfThisBoot(saved: SavedUsage, bootId: string | undefined, settings: AgentSettings, clock: UptimeClock): boolean {
  return bootId !== '' && bootId === bootIdOf(settings.roots.procfs) && saved.sinceBootMs <= clock.sinceBoot();
}

/** Time since the last step of the earlier run. Over a reboot only the wall clock tells it. */
function gapOf(saved: SavedUsage, isSameBoot: boolean, clock: UptimeClock): number {
  return Math.max(0, isSameBoot ? clock.sinceBoot() - saved.sinceBootMs : clock.now() - saved.savedAtMs);
}

function accountsSettings(settings: AgentSettings): AccountsSettings {
  const families = settings.families.map(({ family }) => family);
  const counters = families.flatMap(({ metrics }) =>
    metrics.filter(({ type, container, faults }) => type === 'counter' && container === true && faults === undefined),
  );
  const ofContainers = new Set(counters.map(({ name }) => name));
  return {
    staleAfterMs: settings.refresh['stale-after'],
    missingRetentionMs: settings.device['missing-retention'],
    zeroForMs: settings.usage['zero-for'],
    // The last values of an account are in a later snapshot too, so that one of them reaches the disk.
    lingerMs: Math.max(settings.usage.linger, 3 * settings.refresh.interval),
    absentForMs: settings.usage['absent-for'],
    activity: new Map(
      families.flatMap(({ name, activity, progress }) =>
        activity === undefined ? [] : [[name, { spec: activity, thresholds: settings.idle[name], powerSensors: progress?.power.sensors }]],
      ),
    ),
    isCounter: (metric) => ofContainers.has(metric),
  };
}

const waitingSettings = ({ stall: options, families }: AgentSettings): WaitingSettings => ({
  options,
  watched: new Map(
    families.flatMap(({ family: { name, progress, activity } }) =>
      progress === undefined && activity?.traffic === undefined ? [] : [[name, { progress, traffic: activity?.traffic?.metrics }]],
    ),
  ),
});
