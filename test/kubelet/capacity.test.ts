import { rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PodResourcesPoller } from '../../src/kubelet/poller.ts';
import type { SimulatedKubeletSettings } from '../../src/simulator/kubelet/kubelet.ts';
import { ManualClock } from './support/manual-clock.ts';
import { makeNode } from './support/node.ts';

const stock = (...ids: readonly string[]) => ({ devices: ids.map((id) => ({ resource: 'vendor.com/gpu', id })), cpus: [], memory: [] });

/** A kubelet with two devices that has been asked once, on a node whose files have long been as they are. */
async function quietNode({ checkpoint, ...settings }: Omit<SimulatedKubeletSettings, 'directory'> & { checkpoint?: string } = {}) {
  const { kubelet, poller: makePoller } = makeNode(settings);
  await kubelet.start();
  kubelet.setStock(stock('a', 'b'));
  const clock = new ManualClock();
  const settle = (): void => {
    const seconds = clock.now() / 1_000 - 60;
    utimesSync(dirname(kubelet.checkpoint), seconds, seconds);
  };
  settle();
  const poller = makePoller({ clock, options: checkpoint === undefined ? {} : { checkpoint } });
  await poller.refresh();
  return { kubelet, clock, poller, settle, asked: () => kubelet.calls('v1.GetAllocatableResources') };
}

const idsOf = (poller: PodResourcesPoller): readonly string[] | undefined => poller.current().allocatable?.devices[0]?.deviceIds;

describe('what the kubelet can hand out', () => {
  it('is asked for once a minute while nothing changes, and stands meanwhile, where who holds what is asked each time', async () => {
    const { kubelet, clock, poller, asked } = await quietNode();
    for (let seconds = 10; seconds < 60; seconds += 10) {
      clock.advance(10_000);
      await poller.refresh();
      expect(idsOf(poller)).toEqual(['a', 'b']);
    }
    expect(asked()).toBe(1);
    expect(kubelet.calls('v1.List')).toBe(6);
    clock.advance(10_000);
    await poller.refresh();
    expect(asked()).toBe(2);
  });

  it('is known anew with the next refresh after the kubelet wrote its checkpoint', async () => {
    const { kubelet, poller } = await quietNode();
    kubelet.setStock(stock('a'));
    await poller.refresh();
    expect(idsOf(poller)).toEqual(['a']);
  });

  it('is asked for when the socket of a plugin came or went', async () => {
    const { kubelet, poller, settle, asked } = await quietNode();
    const socket = join(dirname(kubelet.checkpoint), 'plugin.sock');
    writeFileSync(socket, '');
    await poller.refresh();
    expect(asked()).toBe(2);
    settle();
    await poller.refresh();
    await poller.refresh();
    expect(asked()).toBe(3);
    rmSync(socket);
    await poller.refresh();
    expect(asked()).toBe(4);
  });

  it('is asked for again and again while the last change is so young that the next could look the same', async () => {
    const { kubelet, clock, poller, asked } = await quietNode();
    utimesSync(dirname(kubelet.checkpoint), clock.now() / 1_000, clock.now() / 1_000);
    for (const _ of [1, 2, 3]) await poller.refresh();
    expect(asked()).toBe(4);
    clock.advance(1_001);
    for (const _ of [1, 2, 3]) await poller.refresh();
    expect(asked()).toBe(5);
  });

  it('is asked for after a restart of the kubelet that changed no file', async () => {
    const { kubelet, poller, settle, asked } = await quietNode();
    await kubelet.restart();
    settle();
    const before = asked();
    await poller.refresh();
    expect(asked()).toBe(before + 1);
  });

  it('is asked for after each failure to ask who holds what', async () => {
    const { kubelet, clock, poller, asked } = await quietNode();
    kubelet.setFault({ kind: 'rate-limited' });
    await poller.refresh();
    expect(poller.current().problem?.reason).toBe('rate-limited');
    kubelet.setFault(undefined);
    clock.advance(poller.stats().backOff?.remainingMs ?? 0);
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(asked()).toBe(2);
  });

  it('stands while the rate limit is in the way of asking, and is asked for as soon as that is over', async () => {
    const kubeletClock = new ManualClock();
    const { kubelet, poller, asked } = await quietNode({ rate: { perSecond: 1, burst: 3 }, clock: kubeletClock });
    kubelet.setStock(stock('a'));
    utimesSync(dirname(kubelet.checkpoint), 1, 1);
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(idsOf(poller)).toEqual(['a', 'b']);
    const before = asked();
    kubeletClock.advance(3_000);
    await poller.refresh();
    expect(asked()).toBe(before + 1);
    expect(idsOf(poller)).toEqual(['a']);
  });

  it('is asked for each time where there is no checkpoint to go by', async () => {
    const { poller, asked } = await quietNode({ checkpoint: '' });
    for (const _ of [1, 2, 3]) await poller.refresh();
    expect(asked()).toBe(4);
  });
});
