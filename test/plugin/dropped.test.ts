import { afterEach, expect, it } from 'vitest';
import type { PodResources } from '../../src/model/pod-resources.ts';
import { VendorPlugin } from '../kubelet/real/support/vendor-plugin.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, listed, pause, setUp, TOY } from './support.ts';

const open: Bench[] = [];
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close();
});

const isWhole = ({ manager }: Bench): boolean => manager.isConnected(TOY.resource) && listed(manager).join() === 't0=Healthy';
const dropped = ({ plugin }: Bench): number => plugin.stats().resources[0]?.registrations.dropped ?? 0;

/** A kubelet that was asked that long after the last list, and what it can hand out. */
function answer(
  { store, plugin }: Bench,
  laterMs: number,
  deviceIds: readonly string[],
  health: 'healthy' | 'unhealthy' = 'healthy',
): void {
  const devices = deviceIds.length === 0 ? [] : [{ resource: TOY.resource, deviceIds }];
  const others = [{ resource: 'vendor.com/other', deviceIds: ['x'] }];
  const allocatable: PodResources['allocatable'] = { devices: [...devices, ...others], cpus: [], memory: [] };
  const sentMs = plugin.stats().resources[0]?.lastUpdateMs ?? 0;
  store.publish([deviceState({ id: 't0' }, health)], undefined, { allocatable, allocatableAskedMs: sentMs + laterMs });
}

async function registered(): Promise<Bench> {
  const bench = setUp();
  open.push(bench);
  bench.store.publish([deviceState({ id: 't0' })]);
  await bench.manager.start();
  bench.plugin.start();
  await until(() => isWhole(bench), 'it is registered');
  return bench;
}

it("a resource is registered again when the kubelet dropped it with another vendor's plugin, which had taken its place", async () => {
  const bench = await registered();
  const rival = await new VendorPlugin(bench.directory, { resource: TOY.resource, devices: [{ id: 'theirs' }] }).start();
  await until(() => listed(bench.manager).join() === 'theirs=Healthy', 'the other took its place');
  answer(bench, 5_000, ['theirs']);
  rival.close();
  await until(() => !bench.manager.isConnected(TOY.resource), 'the kubelet dropped the resource');
  expect(bench.plugin.stats().resources[0]).toMatchObject({ registered: true, registrations: { ok: 1 } });
  answer(bench, 5_000, []);
  await until(() => dropped(bench) === 1 && isWhole(bench), 'it is back');
  expect(bench.fields[0]).toMatchObject({ reason: 'dropped', resource: TOY.resource });
  // Where that changes nothing, it is left alone for longer and longer.
  answer(bench, 5_000, []);
  await pause(100);
  expect(dropped(bench)).toBe(1);
  expect(bench.plugin.stats().resources[0]).toMatchObject({ streams: 1, registered: false });
  answer(bench, 5_000, ['t0']);
  expect(bench.plugin.stats().resources[0]).toMatchObject({ streams: 1, registered: true });
});

it.each([
  ['lists it', 5_000, ['t0'], 'healthy'],
  ['was asked before the list can have reached it', 900, [], 'healthy'],
  ['has been told of nothing healthy', 60_000, [], 'unhealthy'],
] as const)('a resource is left alone where the kubelet %s', async (_, laterMs, deviceIds, health) => {
  const bench = await registered();
  if (health === 'unhealthy') {
    bench.store.publish([deviceState({ id: 't0' }, health)]);
    await until(() => listed(bench.manager).join() === 't0=Unhealthy', 'it is told');
  }
  answer(bench, laterMs, deviceIds, health);
  await pause(100);
  expect(dropped(bench)).toBe(0);
});
