import { existsSync, mkdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { socketPath } from '../../src/plugin/socket-name.ts';
import { SimulatedPluginWatcher } from '../../src/simulator/kubelet/plugin-watcher.ts';
import { keepSocketFile, listen } from '../../src/simulator/kubelet/renamed-socket.ts';
import { type Bench, type BenchSettings, deviceState, listed, ownSockets, pause, pluginAt, setUp, TOY, until } from './support.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function registeredBench(settings: BenchSettings): Promise<Bench> {
  const bench = setUp(settings);
  open.push(() => bench.close());
  mkdirSync(bench.registry, { recursive: true });
  const watcher = new SimulatedPluginWatcher(bench.registry, bench.manager, systemClock, 5);
  if (settings.registration === 'watcher') watcher.start();
  open.push(() => watcher.stop());
  bench.store.publish([deviceState({ id: 't0' })]);
  await bench.manager.start();
  bench.plugin.start();
  await until('it is registered', () => isWhole(bench));
  return bench;
}

const isWhole = ({ manager }: Bench): boolean => manager.isConnected(TOY.resource) && listed(manager).join() === 't0=Healthy';
const attempts = ({ plugin }: Bench, reason: string): number => plugin.stats().resources[0]?.registrations[reason] ?? 0;

describe('two agents of one node', () => {
  it.each([
    ['direct', '1.36'],
    ['direct', '1.37'],
    ['watcher', '1.36'],
  ] as const)('the first is registered again after the second, which took its place, has ended (%s, %s)', async (registration, release) => {
    const bench = await registeredBench({ registration, manager: { release } });
    const second = pluginAt(bench, { registration });
    second.start();
    await until('the second is registered', () => second.stats().resources[0]?.registered === true && isWhole(bench));
    await pause(100);
    await second.stop();
    await until('the first is back', () => attempts(bench, 'left-alone') === 1 && isWhole(bench));
    const grant = await bench.manager.allocate({ podUid: 'u', container: 'c', resource: TOY.resource, count: 1 });
    expect(grant.deviceIds).toEqual(['t0']);
    expect(bench.fields[0]).toMatchObject({ reason: 'left-alone' });
    expect(ownSockets(registration === 'direct' ? bench.directory : bench.registry)).toHaveLength(1);
  });

  it('the first is registered again after the second was killed, whose socket stays', async () => {
    const bench = await registeredBench({});
    const path = socketPath(bench.directory, TOY.resource, 'second');
    const second = createServer();
    await listen(second, path);
    await pause(150);
    expect(attempts(bench, 'left-alone')).toBe(0);
    keepSocketFile(path, () => second.close());
    await until('the first is back', () => attempts(bench, 'left-alone') === 1 && isWhole(bench));
    expect(existsSync(path)).toBe(false);
  });

  it('stay as they are while the second registers anew', async () => {
    const bench = await registeredBench({});
    for (const unique of ['a', 'b', 'c']) {
      const second = createServer();
      await listen(second, socketPath(bench.directory, TOY.resource, unique));
      await pause(100);
      await new Promise((closed) => second.close(closed));
    }
    expect(attempts(bench, 'left-alone')).toBe(0);
    await until('none came any more', () => attempts(bench, 'left-alone') === 1);
  });
});
