import { describe, expect, it } from 'vitest';
import { millis } from '../../src/model/duration.ts';
import { KUBELET_RATE } from '../../src/simulator/kubelet/rate-limit.ts';
import { ManualClock } from './support/manual-clock.ts';
import { gpuPod, holders, makeNode } from './support/node.ts';

describe('asking the kubelet', () => {
  it('tells allocations, exclusive resources, capacity and time in one', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.setStock({ devices: [{ resource: 'vendor.com/gpu', id: 'gpu-0', numaNodes: [0, 1] }], cpus: [1, 2], memory: [] });
    kubelet.admitPod({
      namespace: 'ml',
      name: 'train',
      uid: 'u',
      containers: [
        { name: 'setup', kind: 'init', devices: [{ resource: 'vendor.com/gpu', id: 'gpu-9' }] },
        { name: 'main', devices: [{ resource: 'vendor.com/gpu', id: 'gpu-0', numaNodes: [0, 1] }], cpus: [2] },
        { name: 'plain' },
      ],
    });
    const clock = new ManualClock();
    const poller = makePoller({ clock });
    await poller.refresh();
    expect(poller.current()).toEqual({
      api: 'v1',
      allocations: [{ namespace: 'ml', pod: 'train', container: 'main', resource: 'vendor.com/gpu', deviceId: 'gpu-0', numaNodes: [0, 1] }],
      held: new Set(),
      exclusive: [{ namespace: 'ml', pod: 'train', container: 'main', cpus: [2], memory: [] }],
      allocatable: { devices: [{ resource: 'vendor.com/gpu', deviceIds: ['gpu-0'] }], cpus: [1, 2], memory: [] },
      answeredAtMs: clock.now(),
    });
  });

  it('survives 10,000 devices in one answer', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    for (let pod = 0; pod < 100; pod += 1) {
      const ids = Array.from({ length: 100 }, (_, index) => `gpu-${String(pod * 100 + index).padStart(5, '0')}`);
      kubelet.admitPod(gpuPod(`train-${String(pod).padStart(2, '0')}`, ...ids));
    }
    const poller = makePoller();
    await poller.refresh();
    const ids = poller.current().allocations.map(({ deviceId }) => deviceId);
    expect(ids).toEqual(Array.from({ length: 10_000 }, (_, index) => `gpu-${String(index).padStart(5, '0')}`));
  });

  it('never asks twice at once: callers during a run wait for that run', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const poller = makePoller();
    const first = poller.refresh();
    expect(poller.refresh()).toBe(first);
    await first;
    expect(kubelet.calls('v1.List')).toBe(1);
    await poller.refresh();
    expect(kubelet.calls('v1.List')).toBe(2);
  });

  it('counts requests by method and status, and says how long the last took', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const poller = makePoller();
    await poller.refresh();
    await poller.refresh();
    await kubelet.close();
    await poller.refresh();
    expect(poller.stats().requests).toEqual([
      { method: 'GetAllocatableResources', code: 'OK', count: 2 },
      { method: 'List', code: 'OK', count: 2 },
      { method: 'List', code: 'UNAVAILABLE', count: 1 },
    ]);
    expect(poller.stats().durations.map(({ method }) => method)).toEqual(['List', 'GetAllocatableResources']);
  });

  it('tells of each run, failed ones included', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const seen: (string | undefined)[] = [];
    const poller = makePoller({ onChange: () => seen.push(poller.current().problem?.reason) });
    await poller.refresh();
    await kubelet.stop();
    await poller.refresh();
    expect(seen).toEqual([undefined, 'refused']);
  });

  it('answers nothing more and starts nothing new once closed, even from the middle of a run', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.setFault({ kind: 'hang' });
    const clock = new ManualClock();
    let changes = 0;
    const poller = makePoller({ clock, onChange: () => (changes += 1) });
    poller.watch();
    const run = poller.refresh();
    poller.close();
    await run;
    await poller.refresh();
    expect(changes).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });
});

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
