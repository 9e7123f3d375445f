import { afterEach, describe, expect, it } from 'vitest';
import { millis } from '../../src/model/duration.ts';
import type { PluginResource } from '../../src/model/plugin-resource.ts';
import { familyState } from '../support/snapshots.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, listed, ownSockets, setUp, TOY } from './support.ts';

const open: Bench[] = [];
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close();
});

const OTHER: PluginResource = { resource: 'example.com/other', select: { family: 'other' } };
const all = ['toy0=Healthy', 'toy1=Healthy'];

/** A plugin whose resource the kubelet has. */
async function registered(resources: readonly PluginResource[] = [TOY]): Promise<Bench> {
  // On a busy machine the kubelet can connect late. With a short limit the plugin would register a second time.
  const bench = setUp({ resources, streamTimeout: millis(60_000) });
  open.push(bench);
  await bench.manager.start();
  bench.store.publish(
    [deviceState({ id: 'toy0' }), deviceState({ id: 'toy1' }), deviceState({ id: 'other0', family: 'other' })],
    [familyState('toy'), familyState('other')],
  );
  bench.plugin.start();
  await until(() => resources.length === 0 || listed(bench.manager).length > 0, 'the kubelet has its devices');
  return bench;
}

describe('other resources while the plugin runs', () => {
  it('registers a new resource, and leaves socket and stream of the others alone', async () => {
    const { plugin, manager, directory } = await registered();
    const [socket] = ownSockets(directory);
    // The settings come from a file that was read again: equal, but not the same objects.
    await plugin.offer([structuredClone(TOY), OTHER]);
    await until(() => listed(manager, OTHER.resource).length === 1, 'the new resource is there');
    expect(manager.registrations).toBe(2);
    expect(ownSockets(directory)).toContain(socket);
    expect(listed(manager)).toEqual(all);
    const [toy] = plugin.stats().resources;
    expect(toy).toMatchObject({ resource: TOY.resource, streams: 1, registrations: { ok: 1 } });
  });

  it('ends a removed resource, and begins with none', async () => {
    const { plugin, manager, directory } = await registered([]);
    expect(plugin.stats().resources).toEqual([]);
    await plugin.offer([TOY, OTHER]);
    await until(() => listed(manager).length === 2 && listed(manager, OTHER.resource).length === 1, 'both are there');
    await plugin.offer([OTHER]);
    await until(() => !manager.isConnected(TOY.resource), 'the devices are gone');
    expect(ownSockets(directory)).toHaveLength(1);
    expect(manager.isConnected(OTHER.resource)).toBe(true);
    expect(plugin.stats().resources.map(({ resource }) => resource)).toEqual([OTHER.resource]);
    expect(manager.registrations).toBe(2);
  });

  it('registers a changed resource anew, and counts on', async () => {
    const { plugin, manager, directory } = await registered();
    await manager.allocate({ podUid: 'u', container: 'c', resource: TOY.resource, count: 1 });
    await plugin.offer([{ ...TOY, replicas: 2 }]);
    await until(() => listed(manager).length === 4, 'the replicas are there');
    expect(manager.registrations).toBe(2);
    expect(ownSockets(directory)).toHaveLength(1);
    expect(plugin.stats().resources[0]).toMatchObject({ registrations: { ok: 2 }, allocations: { ok: 1 } });
  });

  it('ends in the state of the last of several changes', async () => {
    const { plugin, manager } = await registered();
    await Promise.all([plugin.offer([]), plugin.offer([OTHER]), plugin.offer([TOY, OTHER]), plugin.offer([TOY])]);
    await until(() => manager.isConnected(TOY.resource) && listed(manager).join() === all.join(), 'the kubelet has its devices again');
    expect(manager.isConnected(OTHER.resource)).toBe(false);
  });
});
