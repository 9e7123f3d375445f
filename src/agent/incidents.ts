import { dirname, join } from 'node:path';
import type { Clock } from '../host/clock.ts';
import type { IncidentPlace } from '../incidents/freeze.ts';
import type { HistorySettings, ReadingHistory } from '../incidents/history.ts';
import { KernelLog } from '../incidents/kernel-log.ts';
import type { RecordRead } from '../incidents/record-file.ts';
import { IncidentRecorder } from '../incidents/recorder.ts';
import { IncidentStore, type ListedIncident, type StoreSettings } from '../incidents/store.ts';
import { createChangeLog } from '../log/changes.ts';
import type { Logger } from '../log/logger.ts';
import type { IncidentCount } from '../model/agent-stats.ts';
import type { HealthKeeper } from './health.ts';
import type { AgentSettings } from './settings.ts';
import type { Store } from './store.ts';

export interface IncidentKeeperParts {
  readonly health: HealthKeeper;
  place(): IncidentPlace;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Connects the recorder of incidents with the verdicts, the snapshots, the kernel log and the disk. */
export class IncidentKeeper {
  readonly #recorder: IncidentRecorder;
  readonly #store: IncidentStore;
  readonly #kernel: KernelLog;
  #historySettings: HistorySettings;

  private constructor(settings: AgentSettings, store: IncidentStore, { health, place, clock }: IncidentKeeperParts) {
    this.#store = store;
    this.#kernel = new KernelLog({ path: kernelLogPath(settings), procfs: settings.roots.procfs }, clock);
    this.#historySettings = historySettings(settings);
    this.#recorder = new IncidentRecorder(
      {
        place,
        eventsOf: (device, sinceMs) => health.engine.eventsSince(0).filter((event) => event.device === device && event.timeMs >= sinceMs),
        kernelLines: (marks) => this.#kernel.linesOf(marks),
        save: (record) => store.save(record),
        isTaken: (id) => store.isTaken(id),
      },
      this.#historySettings,
      store.list(),
    );
    health.onEvents((events) => this.#recorder.judged(events));
    // A kill after the verdict must not leave an event without its record.
    health.beforeSave(() => store.saved());
  }

  /** undefined while no incident is kept. */
  static async open(settings: AgentSettings, parts: IncidentKeeperParts): Promise<IncidentKeeper | undefined> {
    if (settings.incidents.keep === 0) return undefined;
    const store = await IncidentStore.open(storeSettings(settings), createChangeLog(parts.logger));
    return new IncidentKeeper(settings, store, parts);
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
  get history(): Pick<ReadingHistory, 'seriesOf' | 'bytes'> {
    return this.#recorder.history;
  }

  /** Takes another interval of refreshes. The history then starts anew. */
  configure(settings: AgentSettings): void {
    const next = historySettings(settings);
    const { periodMs, intervalMs } = this.#historySettings;
    if (next.periodMs === periodMs && next.intervalMs === intervalMs) return;
    this.#historySettings = next;
    this.#recorder.configure(next);
  }

  list(): readonly ListedIncident[] {
    return this.#store.list();
  }

  read(id: string): Promise<RecordRead | undefined> {
    return this.#store.read(id);
  }

  counts(): readonly IncidentCount[] {
    return this.#recorder.counts();
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

function historySettings({ families, incidents, refresh }: AgentSettings): HistorySettings {
  const specs = new Map(families.flatMap(({ family }) => family.metrics).map((spec) => [spec.name, spec]));
  return { periodMs: incidents.readings, intervalMs: refresh.interval, specs };
}

/** The log that a family is configured to read; otherwise the log of the machine. */
function kernelLogPath({ families, roots }: AgentSettings): string {
  const configured = families.map(({ options }) => options.kmsg).find((path) => typeof path === 'string' && path !== '');
  return typeof configured === 'string' ? configured : join(roots.dev, 'kmsg');
}
