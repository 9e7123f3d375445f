import { dirname, join } from 'node:path';
import { TREND_MS } from '../board/trend.ts';
import { BUSY_WAITING, STALLED } from '../health/policy/use-conditions.ts';
import type { Clock } from '../host/clock.ts';
import { kernelLogPath } from '../host/host.ts';
import { failuresSince } from '../incidents/by-device.ts';
import { crashFolders } from '../incidents/crash-log.ts';
import type { IncidentPlace } from '../incidents/freeze.ts';
import { type HistorySettings, ReadingHistoryStore } from '../incidents/history.ts';
import { KernelLog } from '../incidents/kernel-log.ts';
import type { ListedIncident } from '../incidents/record.ts';
import { IncidentRecorder, isOneIncident, type RecorderSettings } from '../incidents/recorder.ts';
import { IncidentStore, type RecordRead, type StoreSettings } from '../incidents/store.ts';
import { eventsOfHardware } from '../incidents/timeline.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { AgentStats } from '../model/agent-stats.ts';
import { hours } from '../model/duration.ts';
import type { SavedFault } from '../model/fault.ts';
import type { HealthService } from './health.ts';
import type { AgentSettings } from './settings.ts';
import type { StateLease } from './state.ts';
import type { Store } from './store.ts';

const WEEK_MS = hours(7 * 24);

export interface IncidentDependencies {
  readonly health: HealthService;
  place(): IncidentPlace;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly lease: StateLease;
}

/** Connects the recorder of incidents with the verdicts, the snapshots, the kernel log and the disk. */
export class IncidentService {
  readonly #recorder: IncidentRecorder;
  readonly #store: IncidentStore;
  readonly #kernel: KernelLog;
  readonly #faults: () => readonly SavedFault[];
  readonly #clock: Clock;

  private constructor(settings: AgentSettings, store: IncidentStore, { health, place, clock }: IncidentDependencies) {
    this.#store = store;
    this.#clock = clock;
    this.#faults = () => health.faults.kept;
    const { procfs, sysfs } = settings.roots;
    this.#kernel = new KernelLog({ path: kernelLogPath(settings.roots), procfs, crashes: crashFolders(sysfs) }, clock);
    this.#recorder = new IncidentRecorder(
      {
        place,
        eventsOf: (device, sinceMs) => eventsOfHardware(health.engine.eventsSince(0), device).filter(({ timeMs }) => timeMs >= sinceMs),
        kernelLines: (marks) => this.#kernel.linesOf(marks),
        save: (record) => store.save(record),
        isTaken: (id) => store.isTaken(id),
      },
      recorderSettings(settings),
      store.list(),
    );
    health.onEvents((events) => this.#recorder.judged(events));
    // A kill after the verdict must not leave an event without its record.
    health.beforeSave(() => store.saved());
  }

  /** undefined while no incident is kept. */
  static async open(settings: AgentSettings, parts: IncidentDependencies): Promise<IncidentService | undefined> {
    if (settings.incidents.keep === 0) return undefined;
    const store = await IncidentStore.open(storeSettings(settings), createChangeLog(parts.logger), () => parts.lease.isHeld);
    return new IncidentService(settings, store, parts);
  }

  /** Takes each snapshot of the agent, and the one that is already there. */
  follow(snapshots: Store): void {
    const take = (): void => {
      const snapshot = snapshots.snapshot();
      if (snapshot !== undefined) this.#recorder.take(snapshot);
    };
    snapshots.subscribe(take);
    take();
  }

  /** Readings of a device over the last minutes. */
  get history(): ReadingHistoryStore {
    return this.#recorder.history;
  }

  /** Takes other settings. The history starts anew with another interval of refreshes. */
  configure(settings: AgentSettings): void {
    this.#recorder.configure(recorderSettings(settings));
  }

  list(): readonly ListedIncident[] {
    return this.#store.list();
  }

  failures(): NonNullable<AgentStats['failures']> {
    return failuresSince(this.#clock.now() - WEEK_MS, this.list());
  }

  /** Faults, the oldest first. */
  faults(): readonly SavedFault[] {
    return this.#faults();
  }

  read(id: string): Promise<RecordRead | undefined> {
    return this.#store.read(id);
  }

  /** Writes what stayed in memory while a newer agent wrote. */
  resume(): Promise<void> {
    return this.#store.resume(isOneIncident);
  }

  /** Resolves when the writes that have begun have ended. */
  saved(): Promise<void> {
    return this.#store.saved();
  }

  /** Writes what is not yet on disk. */
  async close(): Promise<void> {
    this.#kernel.close();
    await this.#store.close();
  }
}

/** Incidents lie beside the state file. Without a state file, nothing is on disk. */
export function incidentDirectory(stateFile: string): string | undefined {
  return stateFile === '' ? undefined : join(dirname(stateFile), 'incidents');
}

function storeSettings({ state, incidents }: AgentSettings): StoreSettings {
  return {
    directory: incidentDirectory(state.file),
    keep: incidents.keep,
    keepBytes: incidents['keep-mib'] * 1_048_576,
  };
}

const recorderSettings = (settings: AgentSettings): RecorderSettings => ({
  ...historySettings(settings),
  recordMs: settings.incidents.readings,
  recorded: new Set([BUSY_WAITING, STALLED]),
});

/** Charts show half an hour; the record of an incident can reach back further. */
function historySettings({ families, incidents, refresh }: AgentSettings): HistorySettings {
  const specs = new Map(families.flatMap(({ family }) => family.metrics).map((spec) => [spec.name, spec]));
  return { periodMs: Math.max(TREND_MS, incidents.readings), intervalMs: refresh.interval, specs };
}

/** The latest readings of all devices, for rates and charts. Where incidents are kept, it is the history of their recorder. */
export class HistoryService {
  readonly #incidents: IncidentService | undefined;
  #settings: HistorySettings;
  #own: ReadingHistoryStore | undefined;

  constructor(settings: AgentSettings, incidents: IncidentService | undefined, snapshots: Store) {
    this.#incidents = incidents;
    this.#settings = historySettings(settings);
    if (incidents !== undefined) return;
    this.#own = new ReadingHistoryStore(this.#settings);
    snapshots.subscribe(() => this.#own?.take(snapshots.snapshot()?.devices ?? []));
  }

  get current(): ReadingHistoryStore {
    return (this.#incidents?.history ?? this.#own) as ReadingHistoryStore;
  }

  configure(settings: AgentSettings): void {
    const { intervalMs, periodMs } = this.#settings;
    this.#settings = historySettings(settings);
    const isSame = this.#settings.intervalMs === intervalMs && this.#settings.periodMs === periodMs;
    if (this.#own !== undefined && !isSame) this.#own = new ReadingHistoryStore(this.#settings);
  }
}
