import { type HistorySettings, ReadingHistoryStore } from '../incidents/history.ts';
import { historySettings } from './history-settings.ts';
import type { IncidentService } from './incidents.ts';
import type { AgentSettings } from './settings.ts';
import type { Store } from './store.ts';

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
