import { mkdirSync, readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/host/clock.ts';
import { millis } from '../../src/model/duration.ts';
import { SimulatedPluginWatcher } from '../support/kubelet/plugin-watcher.ts';
import { until } from '../support/until.ts';
import { deviceState, listed, ownSockets, pause, QUICK, setUp, TOY } from './support.ts';

/** The real clock, with a count of the timers that are still to fire. */
function countingClock(): { clock: Clock; pending: () => number } {
  let pending = 0;
  const clock: Clock = {
    ...systemClock,
    after(delayMs, run) {
      let isOpen = true;
      pending += 1;
      const close = (): void => {
        if (isOpen) pending -= 1;
        isOpen = false;
      };
      const cancel = systemClock.after(delayMs, () => {
        close();
        run();
      });
      return () => {
        close();
        cancel();
      };
    },
  };
  return { clock, pending: () => pending };
}

interface Count {
  readonly descriptors: number;
  readonly timers: number;
  readonly streams: number;
  readonly subscribers: number;
  readonly sockets: number;
}

const RESTARTS = 100;

describe('device plugin and a kubelet that restarts', () => {
  it('is back with the full list after each of 100 restarts under load, and has leaked nothing', async () => {
    const { clock, pending } = countingClock();
    // So long a wait for the stream that a timer left behind by an earlier attempt is still there to be counted.
    const bench = setUp({ parts: { clock }, streamTimeout: millis(60_000) });
    const { manager, plugin, store, directory } = bench;
    const count = (): Count => ({
      descriptors: readdirSync('/proc/self/fd').length,
      timers: pending(),
      streams: plugin.stats().resources[0]?.streams ?? -1,
      subscribers: store.subscribers,
      sockets: ownSockets(directory).length,
    });
    store.publish(Array.from({ length: 8 }, (_, at) => deviceState({ id: `t${at}`, numaNode: at % 2 })));
    await manager.start();
    plugin.start();
    const isWhole = (): boolean => plugin.stats().resources[0]?.registered === true && listed(manager).length === 8;
    await until(isWhole, 'it is registered');

    let isLoaded = true;
    let served = 0;
    const load = async (worker: number): Promise<void> => {
      for (let pod = 0; isLoaded; pod += 1) {
        const request = { podUid: `${worker}-${pod}`, container: 'main', resource: TOY.resource, count: 1 + (pod % 2) };
        // A kubelet that goes down in the middle takes its admissions along.
        await manager.allocate(request).then(
          () => (served += 1),
          () => pause(1),
        );
        manager.release(request.podUid);
        await pause(0);
      }
    };
    const workers = [0, 1, 2].map(load);
    await restart();
    await until(() => count().streams === 1, 'the connections of the kubelet that went down have ended');
    const before = count();
    for (let round = 1; round <= RESTARTS; round += 1) {
      await restart();
      await until(() => served > round, 'a further pod is served');
    }
    // Connections of a kubelet that went down end a moment later. What leaks stays.
    const leaks = (): string[] =>
      Object.entries(count())
        .filter(([name, now]) => now > before[name as keyof Count])
        .map(([name]) => name);
    await expect.poll(leaks).toEqual([]);
    isLoaded = false;
    await Promise.all(workers);
    expect(served).toBeGreaterThan(RESTARTS);
    expect(before).toMatchObject({ streams: 1, sockets: 1, subscribers: 1 });

    await bench.close();
    expect(pending()).toBe(0);
    expect(store.subscribers).toBe(0);

    async function restart(): Promise<void> {
      const known = manager.registrations;
      await manager.restart();
      await until(() => manager.registrations > known && isWhole(), 'it is registered again');
      expect(listed(manager)).toEqual(Array.from({ length: 8 }, (_, at) => `t${at}=Healthy`));
    }
  });
});

describe('waits after failures', () => {
  /** Neither it nor a multiple of it is how long anything else waits. */
  const FIRST_MS = 7_000;
  const timings = { ...QUICK, firstWaitMs: FIRST_MS, longestWaitMs: 32 * FIRST_MS, stableMs: 60_000 };

  /** The real clock, but for the waits after failures: they are noted and last no time at all. */
  function impatientClock(waits: number[]): Clock {
    const isWait = (delayMs: number): boolean => delayMs >= FIRST_MS && delayMs % FIRST_MS === 0;
    return {
      ...systemClock,
      after(delayMs, run) {
        if (!isWait(delayMs) || delayMs === timings.stableMs) return systemClock.after(delayMs, run);
        waits.push(delayMs / FIRST_MS);
        return systemClock.after(1, run);
      },
    };
  }

  it.each(['direct', 'watcher'] as const)('grow, and are short again once another kubelet is there (%s)', async (registration) => {
    const waits: number[] = [];
    const bench = setUp({ registration, parts: { clock: impatientClock(waits), timings, random: () => 1 } });
    const { manager, plugin, store, registry } = bench;
    mkdirSync(registry, { recursive: true });
    const watcher = new SimulatedPluginWatcher(registry, manager, systemClock, 5);
    if (registration === 'watcher') watcher.start();
    manager.setFault(registration === 'direct' ? { kind: 'refuse', message: 'not today' } : { kind: 'cut-stream' });
    store.publish([deviceState({ id: 't0' })]);
    await manager.start();
    plugin.start();
    await until(() => waits.includes(32), 'the waits have grown');
    expect(waits.slice(0, 6)).toEqual([1, 2, 4, 8, 16, 32]);
    waits.length = 0;
    await manager.restart();
    await until(() => waits.includes(1), 'they have begun anew');
    manager.setFault(undefined);
    await until(() => plugin.stats().resources[0]?.registered === true && listed(manager).length === 1, 'it is registered');
    watcher.stop();
    await bench.close();
  });
});
