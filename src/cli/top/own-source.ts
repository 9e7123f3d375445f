import { type AgentParts, openReader } from '../../agent/agent.ts';
import type { AgentSettings } from '../../agent/settings.ts';
import { boardOf } from '../../board/board.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { deviceView, eventsView } from '../../server/api/views.ts';
import { detailOf } from './detail.ts';
import { ratesBetween } from './rates.ts';
import type { BoardSource } from './source.ts';

/** Boards that this command reads by itself, because no agent answers. */
export async function ownSource(settings: AgentSettings, parts: AgentParts): Promise<BoardSource> {
  const reader = await openReader(settings, parts);
  let latest: Snapshot | undefined;
  const remedies = new Map(settings.families.map(({ family }) => [family.name, family.problems]));
  return {
    name: 'no agent, read by this command',
    intervalMs: settings.refresh.interval,
    async board() {
      const before = latest;
      latest = await reader.read();
      return {
        board: boardOf(latest, {
          nowMs: Date.now(),
          node: settings.node,
          rateOf: ratesBetween(before, latest),
          shownOf: (family, kind) => settings.families.find((one) => one.family.name === family)?.family.shows?.[kind],
          remedyOf: (family, code) => remedies.get(family)?.find((one) => one.code === code)?.remedy,
        }),
      };
    },
    async detail(family, id) {
      const state = latest?.devices.find(({ device }) => device.family === family && device.id === id);
      return state && detailOf(deviceView(state), eventsView(reader.events()), state.key);
    },
    close: () => reader.close(),
  };
}
