import { dirname, join } from 'node:path';
import { Accounts, type AccountsSettings } from '../accounting/accounts.ts';
import { type SavedUsage, USAGE_FORMAT, USAGE_SCHEMA } from '../accounting/saved-accounts.ts';
import { endsWithin, type UptimeClock } from '../host/clock.ts';
import { setAside } from '../host/fs/kept-file.ts';
import { schemaProblem } from '../host/fs/saved-schema.ts';
import { SavedStateFile } from '../host/fs/saved-state.ts';
import { SingleFlight } from '../host/single-flight.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import { defined } from '../model/defined.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Usage } from '../model/usage.ts';
import { type WaitingSettings, WaitingTracker } from '../waiting/tracker.ts';
import type { AgentSettings } from './settings.ts';
import { bootIdOf, StateLease } from './state.ts';

const MAX_BYTES = 64 * 1024 * 1024;
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
  readonly #file: SavedStateFile | undefined;
  readonly #lease: StateLease;
  readonly #report: (error: string | undefined) => void;
  #intervalMs: number;
  /** The accounts that are on the disk. Absent while the disk has none or does not take them. */
  #onDisk: Usage | undefined;
  #latest: Snapshot | undefined;
  #onKept: (snapshot: Snapshot) => void = () => {};
  #snapshotAtMs = 0;
  #writtenAtMs = Number.NEGATIVE_INFINITY;
  /** The disk has an empty state. It is not written again while no container holds a device. */
  #isEmptyOnDisk = false;
  readonly #writes = new SingleFlight(() => this.#write());
  #cancel: (() => void) | undefined;
  #isClosed = false;

  private constructor(settings: AgentSettings, clock: UptimeClock, logger: Logger, lease: StateLease, disk: Disk | undefined) {
    this.#clock = clock;
    this.#lease = lease;
    this.#file = disk?.file;
    this.#intervalMs = settings.refresh.interval;
    const changes = createChangeLog(logger, () => clock.monotonic());
    this.#report = (error) => changes.update('usage', error === undefined ? [] : [unsaved(disk?.path ?? '', error)]);
    const saved = disk?.saved;
    this.accounts = new Accounts(accountsSettings(settings), saved && { state: saved, savedAtMs: saved.times.savedAtMs, atMs: disk?.atMs });
    this.waiting = new WaitingTracker(waitingSettings(settings), saved?.waiting);
    // The page never shows more than what a later run will know.
    if (disk !== undefined) this.#onDisk = this.accounts.usage();
  }

  /** Reads what an earlier run saved beside the health state. Without a state file, everything is in memory only. */
  static async open(settings: AgentSettings, logger: Logger, clock: UptimeClock, lease = new StateLease()): Promise<AccountingService> {
    const { file } = settings.state;
    const disk = file === '' ? undefined : await readDisk(join(dirname(file), 'usage.json'), settings, logger, clock);
    return new AccountingService(settings, clock, logger, lease, disk);
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
    this.#snapshotAtMs = this.#clock.monotonic();
    if (this.#file === undefined) this.#onKept(snapshot);
    if (this.#file === undefined || this.#isClosed) return;
    const dueInMs = this.#writtenAtMs + this.#intervalMs - this.#snapshotAtMs;
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
    const [file, snapshot] = [this.#file as SavedStateFile, this.#latest as Snapshot];
    this.#writtenAtMs = this.#clock.monotonic();
    const agoMs = this.#writtenAtMs - this.#snapshotAtMs;
    const times = { savedAtMs: this.#clock.now() - agoMs, sinceBootMs: this.#clock.sinceBoot() - agoMs };
    const saved: SavedUsage = { times, ...this.accounts.state(), waiting: this.waiting.state() };
    const { isHeld } = this.#lease;
    const isEmpty = [saved.containers, saved.waiting].every((entries) => Object.keys(entries).length === 0);
    const isNeeded = isHeld && (this.#isClosed || !isEmpty || !this.#isEmptyOnDisk);
    const error = isNeeded ? await file.write({ ...saved }, undefined, this.#isClosed) : undefined;
    this.#isEmptyOnDisk = isHeld && isEmpty && error === undefined;
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

/** The file, and what an earlier run saved in it. */
interface Disk {
  readonly path: string;
  readonly file: SavedStateFile;
  readonly saved?: SavedUsage;
  /** Monotonic clock of the save. Undefined after a reboot. */
  readonly atMs?: number | undefined;
}

/** A file that cannot be used is renamed, so that no write destroys it. */
async function readDisk(path: string, settings: AgentSettings, logger: Logger, clock: UptimeClock): Promise<Disk> {
  const bootId = bootIdOf(settings.roots.procfs);
  const file = new SavedStateFile(path, USAGE_FORMAT, bootId, MAX_BYTES);
  const read = await file.read();
  const problem = read.ignored === undefined ? await schemaProblem(USAGE_SCHEMA, read.body) : read.message;
  if (read.ignored === undefined && problem === undefined) {
    const saved = read.body as unknown as SavedUsage;
    // A monotonic clock that is behind the saved one proves a reboot too. Without an identity, the boot may be another one.
    const agoMs = clock.sinceBoot() - saved.times.sinceBootMs;
    return { path, file, saved, atMs: bootId !== '' && read.bootId === bootId && agoMs >= 0 ? clock.monotonic() - agoMs : undefined };
  }
  if (read.ignored !== 'absent') {
    const unused = { path, reason: read.ignored ?? 'damaged', detail: problem, kept: await setAside(path) };
    logger.warn('the saved usage is not used; all totals start at 0', defined(unused));
  }
  return { path, file };
}

const unsaved = (path: string, detail: string) => ({
  key: path,
  message: 'the usage of devices cannot be saved; it would be lost at a restart',
  ended: 'the usage of devices could not be saved; it is saved again',
  fields: { path },
  detail,
});

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
