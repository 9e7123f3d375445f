import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { AgentSettings } from '../../src/agent/settings.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { allocation } from '../support/snapshots.ts';
import { accountsIn, boot, DiskAgent, devicesIn, HandClock, linesIn, settingsIn } from './disk-agent.ts';
import { usageReport } from './ledger/sample.ts';
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

/** What the ledger has at the end: of containers pod, device, bytes and hours; of devices their seconds. */
async function ledger() {
  return {
    containers: (await accountsIn(settings, clock)).map(({ pod, device, receivedBytes, allocatedSeconds }) => [
      pod,
      device,
      receivedBytes,
      allocatedSeconds,
    ]),
    devices: (await devicesIn(settings, clock)).map(({ device, allocatedSeconds }): [string, number] => [device, allocatedSeconds]).sort(),
  };
}

/** The report of `device-agent usage --by device`: containers, hours and bytes of each device. */
async function reportByDevice() {
  const { rows } = usageReport(await linesIn(settings, clock), { sinceMs: 0, untilMs: clock.now(), by: 'device' });
  return rows.map(({ name, containers, allocatedSeconds, receivedBytes }) => [name, containers, allocatedSeconds, receivedBytes]);
}

describe('a device with another name', () => {
  it('goes on in its account and in that of its pod', async () => {
    const a = [byAddress(0, 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    // After the full hour, the ledger has lines under the earlier name. Nobody observed that hour.
    clock.pass(60 * MINUTE);
    for (const bytes of [2_000_000, 3_000_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    const before = received(agent);
    for (const bytes of [4_000_000, 5_000_000]) await turn(agent, [card(0, 'h9', bytes)], a);
    expect([before, received(agent)]).toEqual([{ 'a h0': 2_999_000 }, { 'a h9': 4_999_000 }]);
    await stop(agent);
    expect(await ledger()).toEqual({ containers: [['a', 'hca/h9', 4_999_000, 40]], devices: [['hca/h9', 40]] });
    expect(await reportByDevice()).toEqual([['hca/h9', 1, 40, 4_999_000]]);
  });

  it('does so when the name changes while no agent runs', async () => {
    const a = [byAddress(0, 'a')];
    let agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_000_000, 3_000_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    agent = await DiskAgent.start(settings, clock, [card(0, 'h0', 0)]);
    for (const bytes of [4_000_000, 5_000_000]) await turn(agent, [card(0, 'h9', bytes)], a);
    expect(received(agent)).toEqual({ 'a h9': 4_999_000 });
    await stop(agent);
    // The interval in which nobody looked is in no account.
    expect(await ledger()).toEqual({ containers: [['a', 'hca/h9', 4_999_000, 30]], devices: [['hca/h9', 30]] });
  });

  it('keeps the pod that holds it by its address when two cards swap their names', async () => {
    const [a, b] = [byAddress(0, 'a'), byAddress(1, 'b')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_001_000]) await turn(agent, [card(0, 'h0', bytes), card(1, 'h1', bytes / 10)], [a, b]);
    for (const bytes of [3_001_000, 4_001_000]) await turn(agent, [card(0, 'h1', bytes), card(1, 'h0', bytes / 10)], [a, b]);
    expect(received(agent)).toEqual({ 'a h1': 4_000_000, 'b h0': 400_000 });
    await stop(agent);
    expect((await ledger()).containers).toEqual([
      ['a', 'hca/h1', 4_000_000, 30],
      ['b', 'hca/h0', 400_000, 30],
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
    expect((await ledger()).containers).toEqual([['a', 'hca/h9', 3_000_000, 30]]);
  });

  it('leaves the pod that holds it by its name when two cards swap their names', async () => {
    const [a, b] = [holds('h0', 'a'), holds('h1', 'b')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_001_000]) await turn(agent, [card(0, 'h0', bytes), card(1, 'h1', bytes / 10)], [a, b]);
    // The kubelet says that pod a has h0, which is the other card now.
    for (const bytes of [3_001_000, 4_001_000]) await turn(agent, [card(0, 'h1', bytes), card(1, 'h0', bytes / 10)], [a, b]);
    await stop(agent);
    expect(await ledger()).toEqual({
      containers: [
        ['a', 'hca/h1', 2_000_000, 20],
        ['b', 'hca/h0', 200_000, 20],
        ['a', 'hca/h0', 100_000, 10],
        ['b', 'hca/h1', 1_000_000, 10],
      ],
      devices: [
        ['hca/h0', 30],
        ['hca/h1', 30],
      ],
    });
  });
});

describe('a device that is forgotten', () => {
  it('ends in the ledger, with the device that contained it', async () => {
    const part = report(hca('h5', { identity: 'guid-5', parent: 'h0', model: 'Toy' }), hcaReadings(0, 0));
    const agent = await DiskAgent.start(settings, clock);
    for (let turns = 0; turns < 3; turns += 1) await turn(agent, [card(0, 'h0', 0), part], []);
    await turn(agent, [card(0, 'h0', 0)], []);
    clock.pass(settings.device['missing-retention']);
    for (let turns = 0; turns < 2; turns += 1) await turn(agent, [card(0, 'h0', 0)], []);
    const entries = async () => (await devicesIn(settings, clock)).filter(({ device }) => device === 'hca/h5');
    // The agent does not wait for the ledger.
    await expect.poll(entries).toMatchObject([{ model: 'Toy', parent: 'hca/h0', unallocatedSeconds: 30, endedAtMs: expect.any(Number) }]);
    await stop(agent);
  });
});

describe('other hardware under a name', () => {
  it('begins new accounts, and those of the earlier hardware end in the ledger', async () => {
    const a = [holds('h0', 'a')];
    const agent = await DiskAgent.start(settings, clock);
    for (const bytes of [1_000, 2_001_000, 3_001_000]) await turn(agent, [card(0, 'h0', bytes)], a);
    for (const bytes of [500, 1_277]) await turn(agent, [card(1, 'h0', bytes)], a);
    await stop(agent);
    expect(await ledger()).toEqual({
      containers: [
        ['a', 'hca/h0', 3_000_000, 30],
        ['a', 'hca/h0', 777, 10],
      ],
      devices: [
        ['hca/h0', 10],
        ['hca/h0', 30],
      ],
    });
  });
});
