import { describe, expect, it } from 'vitest';
import { ContainerCounters, HolderCounters } from '../../src/join/container-counters.ts';
import { containerReadings } from '../../src/join/container-readings.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { MetricSpec, Reading } from '../../src/model/metric.ts';
import { type PodFacts, type PodFactsByName, podName } from '../../src/model/pod-facts.ts';
import type { CheckpointEntry } from '../../src/model/pod-resources.ts';
import type { ContainerReadings, DeviceState } from '../../src/model/snapshot.ts';
import { allocation, device } from '../support/snapshots.ts';

const specs = new Map<string, MetricSpec>(
  [
    { name: 'device_temperature_celsius', type: 'gauge', container: true },
    { name: 'device_received_bytes_total', type: 'counter', container: true },
    { name: 'device_memory_used_bytes', type: 'gauge', container: true },
    { name: 'device_toy_secret', type: 'gauge' },
  ].map((part) => [part.name, { help: '', labels: [], source: '', ...part } as MetricSpec]),
);

const state = (holders: readonly Allocation[], readings: readonly Reading[], processes: readonly DeviceProcess[] = []): DeviceState => ({
  key: 'toy/d',
  device: device({ id: 'd' }),
  readings,
  processes,
  verdict: { state: 'healthy', sinceMs: 0, conditions: [] },
  holders,
  readAtMs: 0,
  stale: false,
});

/** Readings of containers after a read that began at `readFromMs` and is joined with the allocations at `nowMs`. */
const seen = (devices: readonly DeviceState[], sight: Partial<Sight> = {}): readonly ContainerReadings[] => {
  const { checkpoint = [], pods, counters = new ContainerCounters(), nowMs = 0 } = sight;
  const { readFromMs } = { readFromMs: nowMs, ...sight };
  return containerReadings(
    devices.map((one) => ({ state: one, readFromMs })),
    specs,
    { checkpoint, ...(pods === undefined ? {} : { pods }) },
    counters,
    nowMs,
  );
};

interface Sight {
  readonly checkpoint: readonly CheckpointEntry[];
  readonly pods: PodFactsByName;
  readonly counters: ContainerCounters;
  readonly nowMs: number;
  readonly readFromMs: number | undefined;
}

describe('readings of a container', () => {
  it('are those of the device that it alone holds, for metrics with a container metric', () => {
    const readings = [
      { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value: 40 },
      { metric: 'device_toy_secret', value: 1 },
    ];
    expect(seen([state([allocation({ deviceId: 'd' })], readings)])).toEqual([
      {
        namespace: 'ml',
        pod: 'train-0',
        container: 'main',
        resource: 'example.com/toy',
        device: 'd',
        readings: readings.slice(0, 1),
      },
    ]);
  });

  it('appear once when a container holds the device by several ids', () => {
    const holders = [allocation({ deviceId: 'd::1' }), allocation({ deviceId: 'd::0' })];
    expect(seen([state(holders, [{ metric: 'device_temperature_celsius', value: 40 }])])).toHaveLength(1);
  });

  it('do not exist for a device that two containers share', () => {
    const holders = [allocation({ deviceId: 'd::0' }), allocation({ deviceId: 'd::1', pod: 'other' })];
    expect(seen([state(holders, [{ metric: 'device_temperature_celsius', value: 40 }])])).toEqual([]);
  });

  it('are the memory of each holder by its processes, mapped from UID to container by the checkpoint', () => {
    const a = allocation({ deviceId: 'd::0', pod: 'a' });
    const b = allocation({ deviceId: 'd::1', pod: 'b' });
    const processes = [
      { pid: 1, podUid: 'uid-a', memoryUsedBytes: 100 },
      { pid: 2, podUid: 'uid-a', memoryUsedBytes: 50 },
      { pid: 3, podUid: 'uid-b', memoryUsedBytes: 7 },
      { pid: 4, memoryUsedBytes: 1_000 },
      { pid: 5, podUid: 'uid-of-somebody', memoryUsedBytes: 1_000 },
      { pid: 6, podUid: 'uid-b' },
    ];
    const checkpoint = [
      { podUid: 'uid-a', container: 'main', resource: 'example.com/toy', deviceIds: ['d::0'] },
      { podUid: 'uid-b', container: 'main', resource: 'example.com/toy', deviceIds: ['d::1'] },
    ];
    const result = seen([state([a, b], [], processes)], { checkpoint });
    expect(result.flatMap(({ pod, readings }) => readings.map(({ metric, value }) => [pod, metric, value]))).toEqual([
      ['a', 'device_memory_used_bytes', 150],
      ['b', 'device_memory_used_bytes', 7],
    ]);
  });

  it('are the utilization of each holder by its processes, per engine', () => {
    const [a, b] = [allocation({ deviceId: 'd::0', pod: 'a' }), allocation({ deviceId: 'd::1', pod: 'b' })];
    const processes = [
      { pid: 1, podUid: 'uid-a', utilization: { gpu: 0.25, memory: 0.125 } },
      { pid: 2, podUid: 'uid-a', memoryUsedBytes: 5, utilization: { gpu: 0.5, memory: 0 } },
      { pid: 3, podUid: 'uid-b', memoryUsedBytes: 7 },
      { pid: 4, utilization: { gpu: 1 } },
    ];
    const checkpoint = [
      { podUid: 'uid-a', container: 'main', resource: 'example.com/toy', deviceIds: ['d::0'] },
      { podUid: 'uid-b', container: 'main', resource: 'example.com/toy', deviceIds: ['d::1'] },
    ];
    const result = seen([state([a, b], [], processes)], { checkpoint });
    expect(
      result.flatMap(({ pod, readings }) => readings.map(({ metric, labels, value }) => [pod, metric, labels?.engine, value])),
    ).toEqual([
      ['a', 'device_memory_used_bytes', undefined, 5],
      ['a', 'device_utilization_ratio', 'gpu', 0.75],
      ['a', 'device_utilization_ratio', 'memory', 0.125],
      ['b', 'device_memory_used_bytes', undefined, 7],
    ]);
  });

  it('are absent when two containers of one pod share the device', () => {
    const holders = [allocation({ deviceId: 'd::0', container: 'x' }), allocation({ deviceId: 'd::1', container: 'y' })];
    const checkpoint = [
      { podUid: 'u', container: 'x', resource: 'example.com/toy', deviceIds: ['d::0'] },
      { podUid: 'u', container: 'y', resource: 'example.com/toy', deviceIds: ['d::1'] },
    ];
    expect(seen([state(holders, [], [{ pid: 1, podUid: 'u', memoryUsedBytes: 5 }])], { checkpoint })).toEqual([]);
  });

  it('are told apart by the Pods API, where pods and containers share one claim that the checkpoint does not have', () => {
    const claim = { name: 'shared', namespace: 'ml', driver: 'toy.example.com', pool: 'node', device: 'd' };
    const of = (pod: string, container: string): Allocation => allocation({ deviceId: 'node/d', pod, container, claim });
    const facts = (pod: string, ...ids: readonly string[]): PodFacts => ({
      namespace: of(pod, '').namespace,
      pod,
      uid: `uid-${pod}`,
      phase: 'Running',
      containers: ids.map((id) => ({ name: id.slice(2), id })),
    });
    const pods = new Map([facts('a', 'a-x', 'a-y', 'a-other'), facts('b', 'b-x')].map((one) => [podName(one), one]));
    const processes = [
      { pid: 1, podUid: 'uid-a', containerId: 'a-x', memoryUsedBytes: 1 },
      { pid: 2, podUid: 'uid-a', containerId: 'a-y', memoryUsedBytes: 20 },
      { pid: 3, podUid: 'uid-b', containerId: 'b-x', memoryUsedBytes: 300 },
      // A cgroup namespace hides the UID.
      { pid: 4, containerId: 'b-x', memoryUsedBytes: 4_000 },
      // Of several holders, of a container without the claim, of a pod without the claim.
      { pid: 5, podUid: 'uid-a', memoryUsedBytes: 50_000 },
      { pid: 6, podUid: 'uid-a', containerId: 'a-other', memoryUsedBytes: 600_000 },
      { pid: 7, podUid: 'uid-c', containerId: 'c-x', memoryUsedBytes: 7_000_000 },
    ];
    const result = seen([state([of('a', 'x'), of('a', 'y'), of('b', 'x')], [], processes)], { pods });
    expect(result.map(({ pod, container, readings }) => [pod, container, readings[0]?.value])).toEqual([
      ['a', 'x', 1],
      ['a', 'y', 20],
      ['b', 'x', 4_300],
    ]);
  });

  it('count from the time the container was first seen, and restart for the next container', () => {
    const counters = new ContainerCounters();
    const read = (holder: Allocation, value: number | bigint): (number | bigint)[] =>
      seen([state([holder], [{ metric: 'device_received_bytes_total', labels: { port: '1' }, value }])], { counters }).flatMap(
        ({ readings }) => readings.map((reading) => reading.value),
      );
    const first = allocation({ deviceId: 'd' });
    const second = allocation({ deviceId: 'd', pod: 'train-1' });
    expect([read(first, 1_000), read(first, 1_500), read(second, 1_600), read(second, 1_700)]).toEqual([[0], [500], [0], [100]]);
    expect(counters.size).toBe(1);
  });

  it('restart when the name of the device belongs to another device', () => {
    const counters = new ContainerCounters();
    const holder = allocation({ deviceId: 'd' });
    const read = (one: Partial<Device>, value: number): unknown =>
      seen([{ ...state([holder], [{ metric: 'device_received_bytes_total', value }]), device: device({ id: 'd', ...one }) }], {
        counters,
      })[0]?.readings[0]?.value;
    const [first, second] = [{ pciAddress: '0000:18:00.0' }, { pciAddress: '0000:19:00.0' }];
    expect([read(first, 100), read(first, 150), read(second, 9_000), read(second, 9_001)]).toEqual([0, 50, 0, 1]);
    expect([
      read({ ...second, firmware: '2' }, 9_002),
      read({ ...second, uuid: 'a' }, 9_003),
      read({ ...second, uuid: 'b' }, 9_999),
    ]).toEqual([2, 3, 0]);
  });

  it('keep counting when the readings were absent for a while', () => {
    const counters = new ContainerCounters();
    const read = (readings: Reading[]): unknown =>
      seen([state([allocation({ deviceId: 'd' })], readings)], { counters })[0]?.readings[0]?.value;
    const at = (value: number): Reading[] => [{ metric: 'device_received_bytes_total', value }];
    expect([read(at(10)), read([]), read(at(25))]).toEqual([0, undefined, 15]);
  });

  it('have counters only after a read that began after the container was seen, but gauges from the first read on', () => {
    const counters = new ContainerCounters();
    const read = (value: number, nowMs: number, readFromMs: number | undefined): unknown =>
      seen(
        [
          state(
            [allocation({ deviceId: 'd' })],
            [
              { metric: 'device_received_bytes_total', value },
              { metric: 'device_temperature_celsius', value: 40 },
            ],
          ),
        ],
        { counters, nowMs, readFromMs },
      )[0]?.readings.map(({ value: told }) => told);
    expect(read(1_000, 500, 100), 'the look of before').toEqual([40]);
    expect(counters.awaited).toEqual(new Map([['toy', 500]]));
    expect(read(1_700, 600, 499), 'a look that was under way: whose bytes these are is not known').toEqual([40]);
    expect(read(1_900, 700, 500)).toEqual([0, 40]);
    expect(counters.awaited).toEqual(new Map());
    expect(read(2_000, 800, 750)).toEqual([100, 40]);
    expect(read(2_000, 900, undefined), 'a base stays a base').toEqual([100, 40]);
  });

  it('await the latest time at which a container without a base was seen', () => {
    const counters = new ContainerCounters();
    const of = (id: string, pod?: string): DeviceState => ({
      ...state([allocation({ deviceId: id, ...(pod === undefined ? {} : { pod }) })], []),
      key: `toy/${id}`,
      device: device({ id }),
    });
    seen([of('a')], { counters, nowMs: 100, readFromMs: undefined });
    seen([of('a'), of('b')], { counters, nowMs: 200, readFromMs: 50 });
    expect(counters.awaited).toEqual(new Map([['toy', 200]]));
    seen([of('a'), of('b')], { counters, nowMs: 300, readFromMs: 150 });
    expect(counters.awaited, 'a has its base').toEqual(new Map([['toy', 200]]));
    seen([of('a'), of('b', 'other')], { counters, nowMs: 400, readFromMs: 250 });
    expect(counters.awaited).toEqual(new Map([['toy', 400]]));
    seen([of('a')], { counters, nowMs: 500, readFromMs: 250 });
    expect(counters.awaited, 'nobody waits for what is gone').toEqual(new Map());
  });

  it('restart after a time in which others shared the device', () => {
    const counters = new ContainerCounters();
    const read = (value: number, nowMs: number, readFromMs: number, ...pods: string[]): unknown =>
      seen(
        [
          state(
            pods.map((pod) => allocation({ deviceId: 'd', pod })),
            [{ metric: 'device_received_bytes_total', value }],
          ),
        ],
        { counters, nowMs, readFromMs },
      )[0]?.readings[0]?.value;
    expect([read(10, 0, 0, 'a'), read(15, 1, 1, 'a'), read(90, 2, 2, 'a', 'b'), read(95, 3, 2, 'a'), read(97, 4, 3, 'a')]).toEqual([
      0,
      5,
      undefined,
      undefined,
      0,
    ]);
  });
});

describe('counters of a holder', () => {
  it('continue over a reset of the hardware', () => {
    const counters = new HolderCounters(0);
    expect([100, 160, 10, 30].map((value) => counters.grownTo('x', value))).toEqual([0, 60, 70, 90]);
  });

  it('lose no digit beyond 2^53', () => {
    const counters = new HolderCounters(0);
    const start = 2n ** 60n;
    expect([start, start + 3n, start + 2n ** 55n + 1n].map((value) => counters.grownTo('x', value))).toEqual([0, 3, 2n ** 55n + 1n]);
  });

  it('change a counter that exceeds the exact numbers to bigint', () => {
    const counters = new HolderCounters(0);
    expect([Number.MAX_SAFE_INTEGER, BigInt(Number.MAX_SAFE_INTEGER) + 10n].map((value) => counters.grownTo('x', value))).toEqual([0, 10]);
  });
});
