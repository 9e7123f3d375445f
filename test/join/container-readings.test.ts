import { describe, expect, it } from 'vitest';
import { containerReadings } from '../../src/join/container-readings.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess } from '../../src/model/collection.ts';
import type { MetricSpec, Reading } from '../../src/model/metric.ts';
import { type CheckpointEntry, type PodFacts, type PodFactsByName, podName } from '../../src/model/pod-resources.ts';
import { Readings } from '../../src/model/readings.ts';
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
  readings: Readings.of(readings),
  processes,
  verdict: { state: 'healthy', sinceMs: 0, conditions: [] },
  holders,
  readAtMs: 0,
  stale: false,
});

const seen = (
  devices: readonly DeviceState[],
  { checkpoint = [], pods }: { readonly checkpoint?: readonly CheckpointEntry[]; readonly pods?: PodFactsByName } = {},
): readonly ContainerReadings[] => containerReadings(devices, specs, { checkpoint, ...(pods === undefined ? {} : { pods }) });

describe('readings of a container', () => {
  it('are the gauges of the device that it alone holds, for metrics with a container metric', () => {
    const readings = [
      { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value: 40 },
      { metric: 'device_toy_secret', value: 1 },
      { metric: 'device_received_bytes_total', value: 1 },
    ];
    expect(seen([state([allocation({ deviceId: 'd' })], readings)])).toEqual([
      {
        namespace: 'ml',
        pod: 'train-0',
        container: 'main',
        resource: 'example.com/toy',
        device: 'd',
        readings: Readings.of(readings.slice(0, 1)),
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
    expect(result.flatMap(({ pod, readings }) => [...readings].map(({ metric, value }) => [pod, metric, value]))).toEqual([
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
      result.flatMap(({ pod, readings }) => [...readings].map(({ metric, labels, value }) => [pod, metric, labels?.engine, value])),
    ).toEqual([
      ['a', 'device_memory_used_bytes', undefined, 5],
      ['a', 'device_utilization_ratio', 'gpu', 0.75],
      ['a', 'device_utilization_ratio', 'memory', 0.125],
      ['b', 'device_memory_used_bytes', undefined, 7],
    ]);
  });

  it('have no utilization for a container with a client of an MPS server whose share nobody tells', () => {
    const [a, b] = [allocation({ deviceId: 'd::0', pod: 'a' }), allocation({ deviceId: 'd::1', pod: 'b' })];
    const processes: readonly DeviceProcess[] = [
      { pid: 1, podUid: 'uid-a', memoryUsedBytes: 3, utilization: { gpu: 0.25 } },
      { pid: 2, podUid: 'uid-a', memoryUsedBytes: 4, isMpsClient: true },
      { pid: 3, podUid: 'uid-a', memoryUsedBytes: 5, utilization: { gpu: 0.5 } },
      { pid: 4, podUid: 'uid-b', memoryUsedBytes: 7, utilization: { gpu: 0.125 }, isMpsClient: true },
    ];
    const checkpoint = [
      { podUid: 'uid-a', container: 'main', resource: 'example.com/toy', deviceIds: ['d::0'] },
      { podUid: 'uid-b', container: 'main', resource: 'example.com/toy', deviceIds: ['d::1'] },
    ];
    const result = seen([state([a, b], [], processes)], { checkpoint });
    expect(result.flatMap(({ pod, readings }) => [...readings].map(({ metric, value }) => [pod, metric, value]))).toEqual([
      ['a', 'device_memory_used_bytes', 12],
      ['b', 'device_memory_used_bytes', 7],
      ['b', 'device_utilization_ratio', 0.125],
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
    expect(result.map(({ pod, container, readings }) => [pod, container, readings.values[0]])).toEqual([
      ['a', 'x', 1],
      ['a', 'y', 20],
      ['b', 'x', 4_300],
    ]);
  });
});
