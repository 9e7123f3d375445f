import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentSettings } from '../../src/agent/settings.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { allocation } from '../support/snapshots.ts';
import { accountsIn, boot, DiskAgent, HandClock, linesIn, settingsIn } from './disk-agent.ts';
import { usageReport } from './sample.ts';
import { hca, hcaReadings, holds, MINUTE, report } from './small-node.ts';

const INTERVAL = 10_000;
let folder = '';
let settings: AgentSettings;
let clock: HandClock;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-renamed-'));
  boot(folder, 'first');
  settings = settingsIn(folder);
  clock = new HandClock();
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** One of two cards. `id`: the name that the kernel gives it. */
const card = (which: 0 | 1, id: string, received: number): DeviceReport =>
  report(
    hca(id, { identity: `guid-${which}`, pciAddress: `0000:0${which}:00.0`, aliases: [`0000:0${which}:00.0`] }),
    hcaReadings(received, 0),
  );
const byAddress = (which: 0 | 1, pod: string): Allocation =>
  allocation({ deviceId: `0000:0${which}:00.0`, pod, resource: 'example.com/hca' });

async function turn(agent: DiskAgent, reports: readonly DeviceReport[], all: readonly Allocation[]): Promise<void> {
  const checkpoint = all.map(({ pod, container, resource, deviceId }) => ({
    podUid: `uid-${pod}`,
    container,
    resource,
    deviceIds: [deviceId],
  }));
  agent.refresh({ reports, holds: all, checkpoint });
  await agent.save();
  clock.pass(INTERVAL);
}

async function stop(agent: DiskAgent): Promise<void> {
  await agent.keeper.close();
  await agent.ledger.close();
}

/** Received bytes on the page by pod and device. */
const received = (agent: DiskAgent): Record<string, number> =>
  Object.fromEntries(
    [...agent.totals()].flatMap(([series, value]): [string, number][] => {
      const [, device] = /received_bytes_total\{.*device="([^"]+)"/.exec(series) ?? [];
      return device === undefined ? [] : [[`${/pod="([^"]+)"/.exec(series)?.[1]} ${device}`, value]];
    }),
  );

/** What the ledger has at the end: pod, device, bytes and seconds of each account. */
async function ledger() {
  return (await accountsIn(settings, clock)).map(({ pod, device, receivedBytes, allocatedSeconds }) => [
    pod,
    device,
    receivedBytes,
    allocatedSeconds,
  ]);
}

/** The report of `device-agent usage`: containers, seconds and bytes. */
async function reportBy(by: 'device' | 'pod') {
  const { rows } = usageReport(await linesIn(settings, clock), { sinceMs: 0, untilMs: clock.now(), by });
  return rows.map(({ name, containers, allocatedSeconds, receivedBytes }) => [name, containers, allocatedSeconds, receivedBytes]);
}

describe('a device with another name', () => {
  it('begins another account of its pod, and no second is lost or counted twice', async () => {
    const a = [byAddress(0, 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    // After the full hour, the ledger has lines under the earlier name. Nobody observed that hour.
    clock.pass(60 * MINUTE);
    for (const bytes of [2_000_000, 3_000_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    expect(received(agent)).toEqual({ 'a h0': 2_999_000 });
    for (const bytes of [4_000_000, 5_000_000]) await turn(agent, [card(0, 'h9', bytes)], a);
    expect(received(agent)).toEqual({ 'a h0': 2_999_000, 'a h9': 1_000_000 });
    await stop(agent);
    expect(await ledger()).toEqual([
      ['a', 'hca/h0', 2_999_000, 30],
      ['a', 'hca/h9', 1_000_000, 10],
    ]);
    expect(await reportBy('pod')).toEqual([['ml/a', 1, 40, 3_999_000]]);
  });

  it('does so when the name changes while no agent runs', async () => {
    const a = [byAddress(0, 'a')];
    let agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 3_000_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    const endedAtMs = clock.now() - INTERVAL;
    agent = await DiskAgent.start(settings, clock, [card(0, 'h0', 0)]);
    for (const bytes of [4_000_000, 5_000_000]) await turn(agent, [card(0, 'h9', bytes)], a);
    await stop(agent);
    // The interval in which nobody looked is in no account.
    expect(await ledger()).toEqual([
      ['a', 'hca/h0', 2_999_000, 20],
      ['a', 'hca/h9', 1_000_000, 10],
    ]);
    expect((await accountsIn(settings, clock))[0]).toMatchObject({ endedAtMs });
  });

  it.each([
    ['by its address', byAddress, ['hca/h1', 'hca/h0']],
    ['by its name', (which: 0 | 1, pod: string) => holds(`h${which}`, pod), ['hca/h0', 'hca/h1']],
  ] as const)('swaps it with another card: the pod that holds it %s begins anew where its id leads', async (_, holding, [ofA, ofB]) => {
    const both = [holding(0, 'a'), holding(1, 'b')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_001_000]) await turn(agent, [card(0, 'h0', bytes), card(1, 'h1', bytes / 10)], both);
    for (const bytes of [3_001_000, 4_001_000]) await turn(agent, [card(0, 'h1', bytes), card(1, 'h0', bytes / 10)], both);
    await stop(agent);
    expect(await ledger()).toEqual([
      ['a', 'hca/h0', 2_000_000, 20],
      ['b', 'hca/h1', 200_000, 20],
      ...[
        ['a', ofA, ofA === 'hca/h1' ? 1_000_000 : 100_000, 10],
        ['b', ofB, ofB === 'hca/h1' ? 1_000_000 : 100_000, 10],
      ].sort(([, one], [, other]) => (String(one) < String(other) ? -1 : 1)),
    ]);
  });

  it('ends the account of a pod whose id leads to nothing, once it was absent for long', async () => {
    const a = [holds('h0', 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_001_000, 3_001_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    for (let turns = 0; turns < 5; turns += 1) await turn(agent, [card(0, 'h9', 4_001_000)], a);
    // The agent does not wait for the ledger.
    await expect
      .poll(() => accountsIn(settings, clock))
      .toMatchObject([{ pod: 'a', endedAtMs: expect.any(Number), receivedBytes: 3_000_000 }]);
    await stop(agent);
    expect(await ledger()).toEqual([['a', 'hca/h0', 3_000_000, 30]]);
  });
});

it.each([
  ['while it runs', false],
  ['while no agent runs', true],
])('other hardware under a name begins a new account: %s', async (_, isRestart) => {
  const a = [holds('h0', 'a')];
  let agent = await DiskAgent.start(settings, clock);
  for (const bytes of [1_000, 2_001_000, 3_001_000]) await turn(agent, [card(0, 'h0', bytes)], a);
  if (isRestart) agent = await DiskAgent.start(settings, clock, [card(0, 'h0', 0)]);
  for (const bytes of [500, 1_277]) await turn(agent, [card(1, 'h0', bytes)], a);
  await stop(agent);
  expect(await ledger()).toEqual([
    ['a', 'hca/h0', 3_000_000, isRestart ? 20 : 30],
    ['a', 'hca/h0', 777, 10],
  ]);
});
