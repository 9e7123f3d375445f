import { existsSync, renameSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ListResult, PodResourcesClient } from '../../src/kubelet/client/client.ts';
import { millis } from '../../src/model/duration.ts';
import { ManualClock } from './support/manual-clock.ts';
import { gpuPod, heldPods, holders, makeNode } from './support/node.ts';

const GRACE_MS = 30_000;

async function nodeWithTwoPods() {
  const node = makeNode();
  await node.kubelet.start();
  node.kubelet.admitPod(gpuPod('eval', 'gpu-1'));
  node.kubelet.admitPod(gpuPod('train', 'gpu-0'));
  const clock = new ManualClock();
  const answered: (() => void)[] = [];
  const poller = node.poller({ clock, onChange: () => answered.splice(0).forEach((resolve) => void resolve()) });
  await poller.refresh();
  const nextChange = (): Promise<void> => new Promise((resolve) => answered.push(resolve));
  return { ...node, clock, makePoller: node.poller, poller, nextChange };
}

const BOTH = ['eval/main=vendor.com/gpu:gpu-1', 'train/main=vendor.com/gpu:gpu-0'];

describe('a restart of the kubelet', () => {
  it('never has its empty List read as all pods gone, and marks what is held until it comes back', async () => {
    const { kubelet, poller } = await nodeWithTwoPods();
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(holders(poller)).toEqual(BOTH);
    expect(heldPods(poller)).toEqual(['eval', 'train']);
    expect(poller.stats()).toMatchObject({ held: 2, restarts: 1 });

    kubelet.deliverPods();
    await poller.refresh();
    expect(holders(poller)).toEqual(BOTH);
    expect(heldPods(poller)).toEqual([]);
  });

  it('is seen when its new socket comes between the look at the old one and the question', async () => {
    const { kubelet, options } = await nodeWithTwoPods();
    const next = makeNode();
    await next.kubelet.start();
    let replace = (): void => {};
    const clock = new ManualClock();
    // The client looks at the clock just before it asks.
    clock.monotonic = () => {
      replace();
      return 0;
    };
    const ask = async (): Promise<ListResult> => {
      const client = new PodResourcesClient(options, clock);
      const answer = await client.list();
      client.close();
      return answer;
    };
    const before = await ask();
    await kubelet.stop();
    replace = () => {
      if (existsSync(next.kubelet.podResourcesSocket)) renameSync(next.kubelet.podResourcesSocket, options.socket);
    };
    const answer = await ask();
    expect(before).toMatchObject({ ok: true, attribution: { allocations: [{}, {}] } });
    expect(answer).toMatchObject({ ok: true, attribution: { allocations: [] } });
    expect(answer).not.toMatchObject({ identity: before.ok && before.identity });
  });

  it('ends for a pod that did not come back when the grace is over, without a refresh from outside', async () => {
    const { kubelet, poller, clock, nextChange } = await nodeWithTwoPods();
    await kubelet.restart();
    kubelet.removePod('ml', 'eval');
    await poller.refresh();
    expect(heldPods(poller)).toEqual(['eval']);
    clock.advance(GRACE_MS - 1);
    await poller.refresh();
    expect(heldPods(poller)).toEqual(['eval']);

    const changed = nextChange();
    clock.advance(1);
    clock.advance(250);
    await changed;
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    expect(poller.current().held.size).toBe(0);
  });

  it('ends at once for a pod whose device the kubelet has forgotten', async () => {
    const { kubelet, poller } = await nodeWithTwoPods();
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await poller.refresh();
    poller.dropUnknown(() => true);
    expect(heldPods(poller)).toEqual(['eval', 'train']);
    poller.dropUnknown(({ deviceId }) => deviceId !== 'gpu-1');
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    expect(heldPods(poller)).toEqual(['train']);
    await poller.refresh();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
  });

  it('ends with the next answer of a kubelet that knows all its pods', async () => {
    const { kubelet, poller, clock, nextChange } = await nodeWithTwoPods();
    await kubelet.restart();
    kubelet.removePod('ml', 'eval');
    await poller.refresh();
    expect(heldPods(poller)).toEqual(['eval']);
    const changed = nextChange();
    poller.settled();
    clock.advance(250);
    await changed;
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
  });

  it('is noticed by its silence too, and a second one while the first is in grace begins it anew', async () => {
    const { kubelet, poller, clock } = await nodeWithTwoPods();
    for (const _ of [1, 2, 3]) {
      await kubelet.stop();
      await poller.refresh();
      expect(poller.current().problem?.reason).toBe('refused');
      expect(holders(poller)).toEqual(BOTH);
      clock.advance(GRACE_MS - 1_000);
      await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
      await poller.refresh();
      expect(heldPods(poller)).toEqual(['eval', 'train']);
    }
    expect(poller.stats().restarts).toBe(3);
  });

  it('drops nothing at the end of the grace while the kubelet is away again', async () => {
    const { kubelet, poller, clock, nextChange } = await nodeWithTwoPods();
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await poller.refresh();
    await kubelet.stop();
    const changed = nextChange();
    clock.advance(GRACE_MS);
    await changed;
    expect(poller.current().problem?.reason).toBe('refused');
    expect(holders(poller)).toEqual(BOTH);
  });

  it('holds nothing that has meanwhile another holder', async () => {
    const { kubelet, poller } = await nodeWithTwoPods();
    await kubelet.restart();
    kubelet.removePod('ml', 'train');
    kubelet.admitPod(gpuPod('next', 'gpu-0'));
    await poller.refresh();
    expect(holders(poller)).toEqual(['eval/main=vendor.com/gpu:gpu-1', 'next/main=vendor.com/gpu:gpu-0']);
    expect(heldPods(poller)).toEqual([]);
  });

  it('holds nothing where no grace is wanted', async () => {
    const { kubelet, makePoller } = await nodeWithTwoPods();
    const poller = makePoller({ options: { 'restart-grace': millis(0) } });
    await poller.refresh();
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await poller.refresh();
    expect(holders(poller)).toEqual([]);
  });

  it('is not seen in a pod that ended, which is gone with the next answer', async () => {
    const { kubelet, poller } = await nodeWithTwoPods();
    kubelet.removePod('ml', 'eval');
    await poller.refresh();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    expect(poller.current().held.size).toBe(0);
  });

  it('keeps exclusive CPUs through the empty List as well', async () => {
    const { kubelet, poller } = await nodeWithTwoPods();
    kubelet.admitPod({ namespace: 'ml', name: 'pinned', uid: 'u', containers: [{ name: 'main', cpus: [4, 5] }] });
    await poller.refresh();
    await kubelet.restart({ emptyForMs: Number.POSITIVE_INFINITY });
    await poller.refresh();
    expect(poller.current().exclusive).toEqual([{ namespace: 'ml', pod: 'pinned', container: 'main', cpus: [4, 5], memory: [] }]);
  });
});
