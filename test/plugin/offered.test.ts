import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import type { PluginResourceStats } from '../../src/model/agent-stats.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import { VendorPlugin } from '../kubelet/real/support/vendor-plugin.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, listed, pause, pluginAt, setUp, TestStore, TOY } from './support.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

const IDS = ['t0', 't1'];
const HEALTHY = IDS.map((id) => `${id}=Healthy`).join();
const devices = (...sick: string[]) => IDS.map((id) => deviceState({ id }, sick.includes(id) ? 'unhealthy' : 'healthy'));
const statsOf = ({ plugin }: Pick<Bench, 'plugin'>): PluginResourceStats => plugin.stats().resources[0] as PluginResourceStats;
const listIs = (bench: Bench, list: string) => until(() => listed(bench.manager).join() === list, `the kubelet has ${list}`);

/** A clock that moves when it is told to. */
function clockAhead() {
  const startMs = systemClock.monotonic();
  let aheadMs = 0;
  return {
    clock: { ...systemClock, monotonic: () => startMs + aheadMs },
    forward: (ms: number): void => {
      aheadMs += ms;
    },
  };
}

interface Node extends Bench {
  /** Time passes, then the kubelet is asked, and tells what it offers, or these ids. */
  ask(laterMs?: number, ids?: readonly string[]): void;
}

/** An agent that is registered with a kubelet. */
async function registered(release: '1.36' | '1.37'): Promise<Node> {
  const { clock, forward } = clockAhead();
  const bench = setUp({ manager: { release }, parts: { clock } });
  open.push(bench);
  const ask: Node['ask'] = (laterMs = 2_000, ids) => {
    forward(laterMs);
    const healthy = bench.manager.devices(TOY.resource).flatMap(({ ID, health }) => (health === 'Healthy' ? [ID] : []));
    const deviceIds = ids ?? healthy;
    const others = [{ resource: 'vendor.com/other', deviceIds: ['x'] }];
    const allocatable: PodResources['allocatable'] = { devices: [{ resource: TOY.resource, deviceIds }, ...others], cpus: [], memory: [] };
    const told = bench.store.snapshot()?.devices ?? [];
    bench.store.publish(told, undefined, { allocatable, allocatableAskedMs: clock.monotonic() });
  };
  bench.store.publish(devices());
  await bench.manager.start();
  bench.plugin.start();
  await listIs(bench, HEALTHY);
  await until(() => statsOf(bench).streams === 1, 'it is registered');
  return { ...bench, ask };
}

async function rivalOf({ directory }: Bench, socket = 'a-vendor.sock'): Promise<VendorPlugin> {
  const rival = new VendorPlugin(directory, { resource: TOY.resource, devices: [{ id: 'theirs' }], socket });
  open.push(rival);
  return rival.start();
}

/** The kubelet answers again and again until something is so. */
const askUntil = (node: Node, isTrue: () => boolean, what: string, laterMs?: number) =>
  until(() => {
    node.ask(laterMs);
    return isTrue();
  }, what);

describe('up to 1.36, after the end of a plugin that registered later', () => {
  it('the kubelet offers nothing though the list goes on, and the resource is registered again; where that does not help, not soon again', async () => {
    const node = await registered('1.36');
    const rival = await rivalOf(node);
    await listIs(node, 'theirs=Healthy');
    rival.close();
    await until(() => !node.manager.isConnected(TOY.resource), 'the kubelet dropped the resource');
    expect(statsOf(node)).toMatchObject({ registered: true, registrations: { ok: 1 } });
    await askUntil(node, () => statsOf(node).registrations.dropped === 1, 'it is found');
    await listIs(node, HEALTHY);
    expect(node.fields).toContainEqual(expect.objectContaining({ reason: 'dropped', resource: TOY.resource }));
    // Where that changes nothing, as with the socket of another kubelet, it is done ever more rarely: here for ten minutes.
    for (let asked = 0; asked < 300; asked += 1) {
      await until(() => statsOf(node).streams === 1, 'it is registered');
      node.ask(2_000, []);
      await pause(2);
    }
    await until(() => statsOf(node).streams === 1, 'it is registered');
    expect(statsOf(node)).toMatchObject({ registered: false, difference: { ids: 2, offered: 0 } });
    expect(statsOf(node).registrations.dropped).toSatisfy((times: number) => times > 4 && times < 12);
  });
});

describe('from 1.37 on', () => {
  it('the list of a plugin that has ended is replaced on the open stream, and the difference is told until then', async () => {
    const node = await registered('1.37');
    node.ask();
    expect(statsOf(node).difference).toEqual({ ids: 0, offered: 2 });
    const rival = await rivalOf(node);
    await listIs(node, 'theirs=Healthy');
    rival.close();
    await until(() => !rival.watchers, 'it is gone');
    node.ask();
    expect(statsOf(node).difference).toMatchObject({ ids: 3, offered: 1, sinceMs: expect.any(Number) });
    await listIs(node, HEALTHY);
    await askUntil(node, () => statsOf(node).difference?.ids === 0, 'it offers the same');
    expect(statsOf(node)).toMatchObject({ registered: true, registrations: { ok: 1 }, streams: 1 });
    expect(statsOf(node).difference).not.toHaveProperty('sinceMs');
    expect(node.fields).toContainEqual(expect.objectContaining({ message: 'the kubelet offers other devices than it was told' }));
  });

  it('a device that is unhealthy here and offered again is withdrawn', async () => {
    const node = await registered('1.37');
    node.store.publish(devices('t1'));
    await listIs(node, 't0=Healthy,t1=Unhealthy');
    const other = new VendorPlugin(node.directory, { resource: TOY.resource, devices: IDS.map((id) => ({ id })), socket: 'a.sock' });
    open.push(other);
    await other.start();
    await listIs(node, HEALTHY);
    other.close();
    await askUntil(node, () => listed(node.manager).join() === 't0=Healthy,t1=Unhealthy', 'it is withdrawn');
  });
});

describe.each(['1.36', '1.37'] as const)('with a kubelet %s', (release) => {
  it('the resource is taken back from a plugin that registered later and stays', async () => {
    const node = await registered(release);
    const rival = await rivalOf(node);
    await listIs(node, 'theirs=Healthy');
    await askUntil(node, () => listed(node.manager).join() === HEALTHY, 'it is ours again');
    expect(statsOf(node).registrations).toMatchObject({ superseded: 1 });
    // Up to 1.36 the kubelet may cut off this plugin with the other, and it registers once more.
    let given: readonly string[] = [];
    await until(async () => {
      const grants = await node.manager
        .admit({ podUid: 'p', containers: [{ container: 'c', wants: [{ resource: TOY.resource, count: 2 }] }] })
        .catch(() => []);
      given = grants.flatMap(({ deviceIds }) => deviceIds);
      return given.length > 0;
    }, 'a pod is admitted');
    expect([...given].sort()).toEqual(IDS);
    expect(rival.asked).toEqual([]);
  });

  it('a plugin that sends again and again is answered ever more rarely', async () => {
    const node = await registered(release);
    const rival = await rivalOf(node);
    await listIs(node, 'theirs=Healthy');
    await askUntil(node, () => listed(node.manager).join() === HEALTHY, 'it is ours again');
    await until(() => statsOf(node).streams === 1, 'it is registered');
    // As one that tells every two seconds, for ten minutes. The first minute passes after the registration.
    const sent: (number | undefined)[] = [statsOf(node).lastUpdateMs];
    for (let round = 0; round < 300; round += 1) {
      rival.tell([{ id: 'theirs' }, { id: `${round}` }]);
      if (rival.watchers > 0) await until(() => listed(node.manager).length === 2, 'it has told');
      node.ask();
      await pause(2);
      sent.push(statsOf(node).lastUpdateMs);
    }
    const repeated = new Set(sent).size - 1;
    // Up to 1.36 the registration cut the other off.
    if (release === '1.36') expect(repeated).toBe(0);
    else expect(repeated).toSatisfy((times: number) => times > 3 && times < 20);
  });

  it('the older of two agents leaves it to the newer, and corrects the kubelet when that one is gone', async () => {
    const node = await registered(release);
    const store = new TestStore();
    store.publish([deviceState({ id: 't0' })]);
    const newer = pluginAt({ ...node, store });
    open.push({ close: () => newer.stop() });
    newer.start();
    await listIs(node, 't0=Healthy');
    for (let asked = 0; asked < 5; asked += 1) node.ask();
    await until(() => statsOf(node).difference?.ids === 1, 'it is found');
    expect(statsOf(node).registrations).toEqual({ ok: 1 });
    expect(listed(node.manager)).toEqual(['t0=Healthy']);
    await newer.stop();
    await askUntil(node, () => listed(node.manager).join() === HEALTHY, 'the kubelet has the list of the older');
  });

  it.each([
    ['was asked before the list can have reached it', 900, undefined],
    ['was asked later', 1_100, { ids: 0, offered: 2 }],
  ])('an answer of a kubelet that %s', async (_, laterMs, expected) => {
    const node = await registered(release);
    node.ask(laterMs);
    expect(statsOf(node).difference).toEqual(expected);
  });
});
