import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentSettings } from '../../src/agent/settings.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { CheckpointEntry } from '../../src/model/pod-resources.ts';
import { allocation } from '../support/snapshots.ts';
import { accountsIn, boot, DiskAgent, HandClock, settingsIn } from './disk-agent.ts';
import { hca, hcaReadings, holds, MINUTE, report } from './small-node.ts';

const INTERVAL = 10_000;
let folder = '';
let settings: AgentSettings;
let clock: HandClock;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-usage-'));
  boot(folder, 'first');
  settings = settingsIn(folder);
  clock = new HandClock();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const h0 = (received: number, uuid = 'u-h0'): DeviceReport => report(hca('h0', { uuid }), hcaReadings(received, 0));
const h1 = (received: number): DeviceReport => report(hca('h1'), hcaReadings(received, 0));
const uids = (all: readonly Allocation[], uidOf: (pod: string) => string): readonly CheckpointEntry[] =>
  all.map(({ pod, container, resource, deviceId }) => ({ podUid: uidOf(pod), container, resource, deviceIds: [deviceId] }));
const own = (pod: string): string => `uid-${pod}`;

/** One refresh with its write. */
async function turn(agent: DiskAgent, reports: readonly DeviceReport[], all: readonly Allocation[], uidOf = own): Promise<void> {
  agent.refresh({ reports, holds: all, checkpoint: uids(all, uidOf) });
  await agent.save();
  clock.pass(INTERVAL);
}

async function stop(agent: DiskAgent): Promise<void> {
  await agent.keeper.close();
  await agent.ledger.close();
}

describe('an account ends in the ledger', () => {
  it('when the pod is created again with another UID within one refresh', async () => {
    const a = [holds('h0', 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 4_001_000]) await turn(agent, [h0(bytes)], a, () => 'uid-1');
    await turn(agent, [h0(5_001_000)], a, () => 'uid-2');
    await turn(agent, [h0(5_001_777)], a, () => 'uid-2');
    await stop(agent);
    expect(await accountsIn(settings, clock)).toMatchObject([
      { uid: 'uid-1', allocatedSeconds: 30, receivedBytes: 4_000_000 },
      { uid: 'uid-2', receivedBytes: 777 },
    ]);
  });

  it('when that happens while no agent runs', async () => {
    const a = [holds('h0', 'a')];
    let agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 4_001_000]) await turn(agent, [h0(bytes)], a, () => 'uid-1');
    clock.pass(10 * MINUTE);
    agent = await DiskAgent.start(settings, clock, [h0(0)]);
    await turn(agent, [h0(9_000_000)], a, () => 'uid-2');
    await turn(agent, [h0(9_000_777)], a, () => 'uid-2');
    await stop(agent);
    expect(await accountsIn(settings, clock)).toMatchObject([
      { uid: 'uid-1', allocatedSeconds: 20, receivedBytes: 4_000_000 },
      { uid: 'uid-2', receivedBytes: 777 },
    ]);
  });

  it('when the card is replaced under a pod', async () => {
    const a = [holds('h0', 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 4_001_000]) await turn(agent, [h0(bytes)], a);
    for (const bytes of [500, 1_277]) await turn(agent, [h0(bytes, 'u-other')], a);
    await stop(agent);
    expect(await accountsIn(settings, clock)).toMatchObject([
      { uid: 'uid-a', allocatedSeconds: 30, receivedBytes: 4_000_000 },
      { uid: 'uid-a', receivedBytes: 777 },
    ]);
  });

  it('when the agent is killed after the end is in its file, and before it is in the ledger', async () => {
    const a = [holds('h0', 'a')];
    let agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 4_001_000]) await turn(agent, [h0(bytes)], a);
    agent.ledger.update = () => {};
    for (let turns = 0; turns < 4; turns += 1) await turn(agent, [h0(4_001_000)], []);
    expect(agent.keeper.accounts.usage().containers).toMatchObject([{ endedAtMs: expect.any(Number) }]);
    clock.pass(20 * MINUTE);
    agent = await DiskAgent.start(settings, clock, [h0(0)]);
    for (let turns = 0; turns < 3; turns += 1) await turn(agent, [h0(4_001_000)], []);
    await stop(agent);
    expect(await accountsIn(settings, clock)).toMatchObject([{ uid: 'uid-a', endedAtMs: expect.any(Number), receivedBytes: 4_000_000 }]);
  });
});

describe('totals on the page', () => {
  it('do not fall by a kill after a read that a new pod caused', async () => {
    const [a, b] = [holds('h0', 'a'), holds('h1', 'b')];
    let agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 4_001_000]) await turn(agent, [h0(bytes), h1(0)], [a]);
    agent.refresh({ reports: [h0(4_001_000), h1(0)], holds: [a, b], checkpoint: uids([a, b], own) });
    clock.pass(100);
    agent.refresh({ reports: [h0(13_401_000), h1(0)], holds: [a, b], checkpoint: uids([a, b], own) });
    const shown = agent.totalsOf('a').received_bytes_total ?? 0;
    // Killed, and the pod ends before the next agent starts.
    clock.pass(5_000);
    agent = await DiskAgent.start(settings, clock, [h0(0), h1(0)]);
    await turn(agent, [h0(13_401_000), h1(0)], [b]);
    expect(agent.totalsOf('a').received_bytes_total).toBeGreaterThanOrEqual(shown);
  });

  it('stay while a claim shares the device for 18 s, and go on after it', async () => {
    const claim = { name: 'look', namespace: 'ml', driver: 'dra.example.com', pool: 'node', device: 'h0' };
    const shared = [holds('h0', 'a'), allocation({ deviceId: 'h0', pod: 'b', resource: 'dra.example.com', claim })];
    const a = [holds('h0', 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 600_000, 1_364_824]) await turn(agent, [h0(bytes)], a);
    const seen = [agent.totalsOf('a').received_bytes_total];
    for (let turns = 0; turns < 2; turns += 1) {
      agent.refresh({ reports: [h0(1_500_000 + turns)], holds: shared, checkpoint: uids(a, own) });
      await agent.save();
      seen.push(agent.totalsOf('a').received_bytes_total);
      clock.pass(9_000);
    }
    // An answer can lack the claim that still holds the device, so for half a minute nobody knows whose the bytes are.
    for (const bytes of [2_000_000, 2_000_000, 2_000_000, 2_000_000, 2_000_050]) {
      await turn(agent, [h0(bytes)], a);
      seen.push(agent.totalsOf('a').received_bytes_total);
    }
    expect(seen).toEqual([...Array(7).fill(1_363_824), 1_363_874]);
  });

  it('go on when one answer of the kubelet lacks the pod', async () => {
    const a = [holds('h0', 'a')];
    const agent = await DiskAgent.start(settings, clock);
    const seen: unknown[] = [];
    for (const [bytes, all] of [
      [1_000, a],
      [2_000_000, a],
      [4_001_000, a],
      [5_001_000, []],
      [6_001_000, a],
      [6_001_777, a],
    ] as const) {
      await turn(agent, [h0(bytes)], all);
      const { allocated_seconds_total: _, received_bytes_total: received } = agent.totalsOf('a');
      seen.push(received);
    }
    expect(seen).toEqual([0, 1_999_000, 4_000_000, 4_000_000, 6_000_000, 6_000_777]);
    await stop(agent);
    const accounts = await accountsIn(settings, clock);
    // The gap of one interval is in no account.
    expect(accounts).toMatchObject([{ uid: 'uid-a', allocatedSeconds: 40, receivedBytes: 6_000_777 }]);
  });

  it('do not fall when a device goes from one pod to another, and the checkpoint follows later', async () => {
    const [a, b] = [[holds('h0', 'a')], [holds('h0', 'b')]];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000]) await turn(agent, [h0(bytes)], a);
    await turn(agent, [h0(3_000_000)], b, () => 'uid-a');
    await turn(agent, [h0(3_500_000)], b, () => 'uid-a');
    const before = agent.totalsOf('b').received_bytes_total;
    await turn(agent, [h0(3_600_000)], b);
    expect([before, agent.totalsOf('b').received_bytes_total]).toEqual([500_000, 600_000]);
    await stop(agent);
    expect((await accountsIn(settings, clock)).map(({ pod, uid, receivedBytes }) => [pod, uid, receivedBytes])).toEqual([
      ['a', 'uid-a', 1_999_000],
      ['b', 'uid-b', 600_000],
    ]);
  });
});
