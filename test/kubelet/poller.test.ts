import { describe, expect, it } from 'vitest';
import { ManualClock } from './support/manual-clock.ts';
import { gpuPod, makeNode } from './support/node.ts';

describe('asking the kubelet', () => {
  it('tells allocations, exclusive resources, capacity and time in one', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    kubelet.setStock({ devices: [{ resource: 'vendor.com/gpu', id: 'gpu-0', numaNodes: [0, 1] }], cpus: [1, 2], memory: [] });
    kubelet.admitPod({
      namespace: 'ml',
      name: 'train',
      uid: 'u',
      podCpus: [2, 3],
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
      podExclusive: [{ namespace: 'ml', pod: 'train', cpus: [2, 3], memory: [] }],
      allocatable: { devices: [{ resource: 'vendor.com/gpu', deviceIds: ['gpu-0'] }], cpus: [1, 2], memory: [] },
      allocatableAskedMs: clock.monotonic(),
      answeredAtMs: clock.now(),
      answeredMonotonicMs: clock.monotonic(),
    });
  });

  it('gives the same objects while the answer has the same pods, in any order', async () => {
    const { kubelet, poller: makePoller } = makeNode();
    await kubelet.start();
    const poller = makePoller();
    const ask = async () => {
      await poller.refresh();
      return poller.current().allocations;
    };
    for (const name of ['a', 'b', 'c', 'd']) kubelet.admitPod(gpuPod(name, `gpu-${name}`));
    const first = await ask();
    // The kubelet refuses more than ten calls at once.
    for (let turn = 0; turn < 2; turn += 1) expect(await ask()).toBe(first);
    kubelet.admitPod(gpuPod('e', 'gpu-e'));
    const second = await ask();
    expect(second.map(({ deviceId }) => deviceId)).toEqual(['gpu-a', 'gpu-b', 'gpu-c', 'gpu-d', 'gpu-e']);
    expect(await ask()).toBe(second);
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

  it('counts requests by method and status, and how long those took that could be asked', async () => {
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
    expect(poller.stats().durations.map(({ method, durations }) => [method, durations.count])).toEqual([
      ['List', 2],
      ['GetAllocatableResources', 2],
    ]);
    for (const { durations } of poller.stats().durations) expect(durations.sumSeconds).toBeGreaterThan(0);
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
