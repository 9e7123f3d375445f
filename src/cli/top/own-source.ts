import { type AgentDependencies, openReader } from '../../agent/agent.ts';
import type { AgentSettings } from '../../agent/settings.ts';
import { boardOf, declaredBy } from '../../board/board.ts';
import type { RateOf } from '../../board/chosen-reading.ts';
import { type Labels, type Reading, readMsOf } from '../../model/metric.ts';
import { ofMetric } from '../../model/readings.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';
import { eventsView, readingViews } from '../../server/api/views.ts';
import type { BoardSource } from './app.ts';
import { detailOf } from './detail.ts';

/** Boards that this command reads by itself, because no agent answers. */
export async function ownSource(settings: AgentSettings, parts: AgentDependencies): Promise<BoardSource> {
  const reader = await openReader(settings, parts);
  let latest: Snapshot | undefined;
  const declared = declaredBy(settings.families.map(({ family }) => family));
  return {
    name: 'no agent, read by this command',
    intervalMs: settings.refresh.interval,
    async board() {
      const before = latest;
      latest = await reader.read();
      return {
        board: boardOf(latest, { nowMs: Date.now(), node: settings.node, rateOf: ratesBetween(before, latest), ...declared }),
      };
    },
    async detail(family, id) {
      const state = latest?.devices.find(({ device }) => device.family === family && device.id === id);
      if (state === undefined) return undefined;
      const told = { ...state.device, readings: readingViews(state.readings) };
      return detailOf(told, eventsView(reader.events()), state.key);
    },
    close: () => reader.close(),
  };
}

/** Growth per second from one read of a device to the next. Unknown without an earlier read, and after a counter was reset. */
export function ratesBetween(before: Snapshot | undefined, now: Snapshot): RateOf {
  const earlier = new Map((before?.devices ?? []).map((state) => [state.key, state]));
  const later = new Map(now.devices.map((state) => [state.key, state]));
  return (key, metric, labels) => {
    const a = earlier.get(key);
    const b = later.get(key);
    if (a?.monotonicMs === undefined || b?.monotonicMs === undefined) return undefined;
    const [from, to] = [readingOf(a, metric, labels), readingOf(b, metric, labels)];
    if (from === undefined || to === undefined || to.value < from.value) return undefined;
    const spanMs = readMsOf(to, b.monotonicMs) - readMsOf(from, a.monotonicMs);
    if (spanMs <= 0) return undefined;
    // Large counters differ by little: the difference is taken before digits are lost.
    const areExact = typeof from.value === 'bigint' && typeof to.value === 'bigint';
    const growth = areExact ? Number((to.value as bigint) - (from.value as bigint)) : Number(to.value) - Number(from.value);
    return (growth * 1_000) / spanMs;
  };
}

function readingOf({ readings }: DeviceState, metric: string, labels: Labels | undefined): Reading | undefined {
  return ofMetric(readings, metric).find((one) => one.metric === metric && isSame(one.labels ?? {}, labels ?? {}));
}

const isSame = (a: Labels, b: Labels): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([name, value]) => b[name] === value);
