import { TREND_MS } from '../board/trend.ts';
import type { HistorySettings } from '../incidents/history.ts';
import type { AgentSettings } from './settings.ts';

/** Charts show half an hour; the record of an incident can reach back further. */
export function historySettings({ families, incidents, refresh }: AgentSettings): HistorySettings {
  const specs = new Map(families.flatMap(({ family }) => family.metrics).map((spec) => [spec.name, spec]));
  return { periodMs: Math.max(TREND_MS, incidents.readings), intervalMs: refresh.interval, specs };
}
