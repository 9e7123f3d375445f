import { describe, expect, it } from 'vitest';
import { hours, millis } from '../../src/model/duration.ts';
import { KUBELET_RATE } from '../support/kubelet/rate-limit.ts';
import { ManualClock } from './support/manual-clock.ts';
import { gpuPod, holders, makeNode } from './support/node.ts';

describe('older kubelets', () => {
  it('are asked by v1alpha1, and by v1 again once the socket is another one', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start({ v1: false, v1alpha1: true, allocatable: 'unimplemented' });
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const poller = makePoller();
    await poller.refresh();
    await poller.refresh();
    expect(poller.current()).toMatchObject({ api: 'v1alpha1', exclusive: [] });
    expect(poller.current().allocatable).toBeUndefined();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    // The first question found out that there is no v1; it was not asked again.
    expect(poller.stats().requests).toEqual([
      { method: 'List', code: 'OK', count: 2 },
      { method: 'List', code: 'UNIMPLEMENTED', count: 1 },
    ]);

    await kubelet.restart({ apis: { v1: true, v1alpha1: true, allocatable: 'yes' } });
    await poller.refresh();
    expect(poller.current()).toMatchObject({ api: 'v1', allocatable: { devices: [] } });
    expect(kubelet.calls('v1alpha1.List')).toBe(2);
  });

  it.each(['gate-off', 'unimplemented'] as const)('without capacity (%s) are asked for it once per socket', async (allocatable) => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start({ v1: true, v1alpha1: true, allocatable });
    const poller = makePoller();
    for (const _ of [1, 2, 3]) await poller.refresh();
    expect(poller.current()).toMatchObject({ api: 'v1' });
    expect(poller.current().problem).toBeUndefined();
    expect(poller.current().allocatable).toBeUndefined();
    expect(kubelet.calls('v1.GetAllocatableResources')).toBe(1);
    await kubelet.restart({ apis: { v1: true, v1alpha1: true, allocatable: 'yes' } });
    await poller.refresh();
    expect(poller.current().allocatable).toEqual({ devices: [], cpus: [], memory: [] });
  });
});

describe("the kubelet's rate limit", () => {
  it('is given way to for longer and longer, while the last answer stands', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const clock = new ManualClock();
    const poller = makePoller({ clock });
    await poller.refresh();

    kubelet.setFault({ kind: 'rate-limited' });
    const waits: number[] = [];
    for (let rejections = 1; rejections <= 9; rejections += 1) {
      await poller.refresh();
      const { backOff } = poller.stats();
      expect(backOff?.rejections).toBe(rejections);
      expect(poller.current()).toMatchObject({ problem: { reason: 'rate-limited' } });
      expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
      waits.push(backOff!.remainingMs);
      clock.advance(backOff!.remainingMs - 1);
      const asked = kubelet.calls('v1.List');
      await poller.refresh();
      expect(kubelet.calls('v1.List')).toBe(asked);
      clock.advance(1);
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);

    kubelet.setFault(undefined);
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
    expect(poller.stats().backOff).toBeUndefined();
    expect(poller.stats().restarts).toBe(0);
  });

  it('is not reached by one agent, and tripped by another client it costs no attribution', async () => {
    const kubeletClock = new ManualClock();
    const { kubelet, poller: makePoller } = makeNode({ rate: KUBELET_RATE, clock: kubeletClock });
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const clock = new ManualClock();
    const poller = makePoller({ clock });
    const others = Array.from({ length: 5 }, () => makePoller());
    await poller.refresh();
    await Promise.all(others.map((other) => other.refresh()));
    await poller.refresh();
    expect(poller.current().problem?.reason).toBe('rate-limited');
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    kubeletClock.advance(1_000);
    clock.advance(1_000);
    await poller.refresh();
    expect(poller.current().problem).toBeUndefined();
  });
});

describe('a silent kubelet', () => {
  it('has its last answer kept for the hold and no longer', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.setStock({ devices: [{ resource: 'vendor.com/gpu', id: 'gpu-0' }], cpus: [], memory: [] });
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const clock = new ManualClock();
    let changes = 0;
    const poller = makePoller({ clock, options: { hold: millis(60_000) }, onChange: () => (changes += 1) });
    await poller.refresh();
    const { answeredAtMs } = poller.current();
    await kubelet.stop();
    clock.advance(30_000);
    await poller.refresh();
    clock.advance(29_999);
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    expect(changes).toBe(2);

    // It expires by itself, without another refresh.
    clock.advance(1);
    expect(changes).toBe(3);
    expect(poller.current()).toMatchObject({ allocations: [], exclusive: [], problem: { reason: 'refused' }, answeredAtMs });
    expect(poller.current().allocatable).toBeUndefined();

    await kubelet.start();
    await poller.refresh();
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
  });

  it('has it kept for a hold that is longer than a timer can be set', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const clock = new ManualClock();
    const poller = makePoller({ clock, options: { hold: hours(30 * 24) } });
    await poller.refresh();
    await kubelet.stop();
    await poller.refresh();
    clock.advance(hours(30 * 24) - 1);
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    clock.advance(1);
    expect(holders(poller)).toEqual([]);
  });

  it('loses nothing when refreshes are rarer than the hold but succeed', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const clock = new ManualClock();
    const poller = makePoller({ clock, options: { hold: millis(1_000) } });
    await poller.refresh();
    clock.advance(5_000);
    expect(holders(poller)).toEqual(['train/main=vendor.com/gpu:gpu-0']);
    await kubelet.stop();
    await poller.refresh();
    expect(holders(poller)).toEqual([]);
  });
});
