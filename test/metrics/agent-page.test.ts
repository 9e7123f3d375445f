import { closeSync, openSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/host/clock.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { Format } from '../../src/metrics/page/page.ts';
import type { AgentStats } from '../../src/model/agent-stats.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { families, snapshot, stats } from './sample.ts';

const FORMATS: readonly Format[] = ['text', 'openmetrics'];

/** An exposition whose time, snapshot and agent the test moves on; counts how often the agent was asked about itself. */
function movable(shown = families) {
  const world = { nowMs: 0, snapshot: snapshot as Snapshot | undefined, stats: stats as AgentStats, asked: 0 };
  const clock: Clock = { now: () => world.nowMs, monotonic: () => world.nowMs, after: () => () => undefined };
  const exposition = createExposition({
    families: shown,
    snapshot: () => world.snapshot,
    agent: () => {
      world.asked += 1;
      return world.stats;
    },
    clock,
  });
  const pieces = async (format: Format) => (await exposition.page(format)).plain;
  return { world, exposition, pieces, live: async () => Buffer.concat(await pieces('text')) };
}

describe('what the page says of the agent', () => {
  it('is as it is at the time of the scrape', async () => {
    const { world, live } = movable();
    expect((await live()).toString()).toContain('device_agent_node_info{node="node-1"} 1\n');
    world.nowMs += 2_000;
    world.stats = { ...stats, node: 'node-2', pagesUrl: 'https://node-2.example' };
    const later = (await live()).toString();
    expect(later).toContain('device_agent_node_info{node="node-2"} 1\n');
    expect(later).toContain('device_agent_web_info{url="https://node-2.example"} 1\n');
  });

  it.each(FORMATS)('is written once for 50 scrapes that come together, and again a moment later (%s)', async (format) => {
    const { world, pieces } = movable();
    const first = await Promise.all(Array.from({ length: 50 }, () => pieces(format)));
    expect([new Set(first).size, world.asked]).toEqual([1, 1]);
    world.nowMs += 999;
    expect(await pieces(format)).toBe(first[0]);
    world.nowMs += 1;
    expect(await pieces(format)).not.toBe(first[0]);
    expect(world.asked).toBe(2);
  });

  it('is written anew at once for another snapshot', async () => {
    const { world, live } = movable();
    expect((await live()).toString()).toContain(`device_agent_snapshot_timestamp_seconds ${snapshot.takenAtMs / 1_000}\n`);
    world.snapshot = { ...snapshot, takenAtMs: snapshot.takenAtMs + 250 };
    expect((await live()).toString()).toContain(`device_agent_snapshot_timestamp_seconds ${snapshot.takenAtMs / 1_000 + 0.25}\n`);
  });

  it('is tried again after a failure', async () => {
    const { world, live } = movable();
    world.stats = { ...stats, podResourcesRequests: null } as unknown as AgentStats;
    await expect(live()).rejects.toThrow();
    world.stats = stats;
    expect((await live()).toString()).toContain('device_agent_build_info');
  });

  it('counts the open descriptors', async () => {
    const { world, live } = movable();
    const count = async (): Promise<number> => {
      world.nowMs += 1_000;
      return Number(/^process_open_fds (\d+)$/m.exec((await live()).toString())?.[1]);
    };
    const before = await count();
    const opened = Array.from({ length: 7 }, () => openSync('/dev/null', 'r'));
    expect(await count()).toBe(before + 7);
    for (const descriptor of opened) closeSync(descriptor);
    expect(await count()).toBe(before);
  });
});
