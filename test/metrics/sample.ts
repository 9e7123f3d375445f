import type { AgentStats } from '../../src/model/agent-stats.ts';
import type { Device } from '../../src/model/device.ts';
import { type DurationCounts, NO_DURATIONS, withDuration } from '../../src/model/duration-counts.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { MetricSpec, Reading } from '../../src/model/metric.ts';
import { podName } from '../../src/model/pod-resources.ts';
import { Readings } from '../../src/model/readings.ts';
import { measured, shared } from '../../src/model/shared-metrics.ts';
import type { ContainerReadings, DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { allocation, device, familyState, podResources } from '../support/snapshots.ts';

/** A node of two toy families, on which most things that can be said of a device are true of some device. */
export const TAKEN_AT_MS = Date.parse('2026-03-01T12:00:00Z');

const crossings: MetricSpec = {
  name: 'device_toy_crossings_total',
  type: 'counter',
  help: 'Crossings with a "quoted" word and a back\\slash.',
  labels: ['kind'],
  source: 'toy/crossings',
};

export const families = [
  {
    name: 'toy',
    metrics: [
      measured(shared.temperature, 'toy/temp'),
      measured(shared.memoryUsed, 'toy/memory'),
      measured(shared.errors, 'toy/errors'),
      crossings,
    ],
    conditions: [],
    problems: [{ code: 'driver-missing', meaning: 'The driver is not loaded.', remedy: 'Load the toy driver.' }],
  },
  {
    name: 'wire',
    metrics: [measured(shared.receivedBytes, 'wire/rx'), measured(shared.errors, 'wire/errors', ['port', 'kind'])],
    conditions: [],
    problems: [],
  },
];

const healthy: Verdict = { state: 'healthy', sinceMs: TAKEN_AT_MS - 60_000, conditions: [] };

export const state = (part: Device, more: Partial<DeviceState> = {}, readings: Iterable<Reading> = more.readings ?? []): DeviceState => ({
  key: `${part.family}/${part.id}`,
  device: part,
  processes: [],
  verdict: healthy,
  holders: [],
  readAtMs: TAKEN_AT_MS - 250,
  stale: false,
  ...more,
  readings: Readings.of([...readings]),
});

const own = allocation({ deviceId: 'toy-0' });
const replicas = [
  allocation({ deviceId: 'toy-1::0', pod: 'share-a' }),
  allocation({ deviceId: 'toy-1::1', pod: 'share-a' }),
  allocation({ deviceId: 'toy-1::2', pod: 'share-b' }),
];
const pool = allocation({ deviceId: '3', pod: 'pool-0', resource: 'example.com/wires' });
const lost = allocation({ deviceId: 'zzz', pod: 'lost-0' });
const gone = allocation({ deviceId: 'toy-2', pod: 'gone-0' });
const claimed = allocation({
  deviceId: 'node-1/wire-b',
  pod: 'dra-0',
  resource: 'wire.example.com',
  claim: { name: 'one-wire', namespace: 'ml', driver: 'wire.example.com', pool: 'node-1', device: 'wire-b' },
});

const durationsOf = (...seconds: number[]): DurationCounts => seconds.reduce(withDuration, NO_DURATIONS);

const temperature: Reading = { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value: 41.5 };
const memory: Reading = { metric: 'device_memory_used_bytes', value: 1_073_741_824 };

const devices: readonly DeviceState[] = [
  state(
    device({
      id: 'toy-0',
      kind: 'big',
      model: 'Toy "Deluxe" \\ 2\nnd edition',
      vendor: 'Toys',
      uuid: 'TOY-0',
      serial: '',
      pciAddress: '0000:3b:00.0',
      numaNode: 0,
      driver: '1.2',
    }),
    { holders: [own] },
    [temperature, memory, { metric: 'device_errors_total', labels: { kind: 'parity' }, value: 18_446_744_073_709_551_615n }],
  ),
  state(
    device({ id: 'toy-1', parent: 'toy-0' }),
    {
      holders: replicas,
      verdict: {
        state: 'degraded',
        sinceMs: TAKEN_AT_MS - 5_000,
        transitions: { degraded: 2, healthy: 1 },
        ignored: [
          {
            type: 'LinkNarrow',
            class: 'latched',
            severity: 'fatal',
            reason: 'FewerLanes',
            message: '8 of 16 lanes',
            remedy: 'reseat',
            sinceMs: TAKEN_AT_MS - 7_000,
            ignoreReason: 'known riser',
            ignoredUntilMs: Date.parse('2026-04-01T00:00:00Z'),
          },
        ],
        conditions: [
          {
            type: 'TooWarm',
            instance: 'core',
            class: 'latched',
            severity: 'degraded',
            reason: 'OverLimit',
            message: '91 °C <over> 90 °C',
            remedy: 'check-cooling',
            sinceMs: TAKEN_AT_MS - 5_000,
          },
          {
            type: 'Noisy',
            class: 'latched',
            severity: 'info',
            reason: 'Loud',
            message: 'loud',
            remedy: 'none',
            sinceMs: TAKEN_AT_MS - 9_000,
          },
        ],
      },
    },
    [
      { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value: 91 },
      { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value: 12 },
      { metric: 'device_temperature_celsius', labels: { sensor: 'edge' }, value: Number.NaN },
      { metric: 'device_toy_crossings_total', labels: { kind: 'a"b\\c\nd' }, value: 7 },
      { metric: 'device_toy_crossings_total', labels: { kind: 'x', colour: 'red' }, value: 1 },
      { metric: 'device_toy_invented', value: 1 },
    ],
  ),
  state(device({ id: 'toy-2' }), {
    missingSinceMs: TAKEN_AT_MS - 1_000,
    holders: [gone],
    verdict: { state: 'unhealthy', sinceMs: TAKEN_AT_MS - 1_000, conditions: [] },
  }),
  state(device({ id: 'wire-a', family: 'wire', kind: 'port' }), { holders: [pool] }, [
    { metric: 'device_received_bytes_total', labels: { port: '1' }, value: 9_007_199_254_740_993n },
    { metric: 'device_errors_total', labels: { kind: 'symbol', port: '1' }, value: 0 },
  ]),
  state(device({ id: 'wire-b', family: 'wire', kind: 'port' }), {
    holders: [pool, claimed],
    stale: true,
    verdict: { state: 'unknown', sinceMs: 0, conditions: [] },
  }),
];

const twin = (reading: Reading, pod: string, id: string): ContainerReadings => ({
  namespace: 'ml',
  pod,
  container: 'main',
  resource: 'example.com/toy',
  device: id,
  readings: Readings.of([reading]),
});

export const snapshot: Snapshot = {
  sequence: 1,
  takenAtMs: TAKEN_AT_MS,
  devices,
  allocations: [
    { allocation: own, devices: ['toy/toy-0'], held: false },
    ...replicas.map((one) => ({ allocation: one, devices: ['toy/toy-1'], held: false })),
    { allocation: pool, devices: ['wire/wire-a', 'wire/wire-b'], held: true },
    { allocation: lost, devices: [], unresolved: 'no-device', held: false },
    { allocation: gone, devices: ['toy/toy-2'], unresolved: 'missing-device', held: false },
    { allocation: claimed, devices: ['wire/wire-b'], by: 'metadata', held: false },
  ],
  containerReadings: [
    twin(temperature, 'train-0', 'toy-0'),
    twin(memory, 'train-0', 'toy-0'),
    twin({ metric: 'device_errors_total', labels: { kind: 'parity' }, value: 5n }, 'train-0', 'toy-0'),
    twin({ metric: 'device_memory_used_bytes', value: 10 }, 'share-a', 'toy-1'),
    twin({ metric: 'device_memory_used_bytes', value: 20 }, 'share-b', 'toy-1'),
  ],
  families: [
    { ...familyState('toy'), lastSuccessMs: TAKEN_AT_MS - 250, durationMs: 12.5, durations: durationsOf(0.0005, 0.0125, 12.5), runs: 3 },
    {
      ...familyState('wire'),
      succeeded: false,
      failures: 2,
      abandoned: 1,
      hung: true,
      problems: [{ code: 'driver-missing', message: 'open wire/<ctl>: ENOENT' }],
    },
  ],
  podResources: podResources([own, ...replicas, pool, lost, gone, claimed], {
    answeredAtMs: TAKEN_AT_MS - 500,
    held: new Set(['one']),
    exclusive: [
      {
        namespace: 'ml',
        pod: 'train-0',
        container: 'main',
        cpus: [2, 3],
        memory: [
          { type: 'memory', bytes: 1_024n, numaNodes: [0] },
          { type: 'memory', bytes: 1_024n, numaNodes: [0] },
          { type: 'hugepages-2Mi', bytes: 2_097_152n, numaNodes: [0, 1] },
        ],
      },
    ],
    podExclusive: [{ namespace: 'ml', pod: 'train-0', cpus: [2, 3, 4], memory: [{ type: 'memory', bytes: 4_096n, numaNodes: [0] }] }],
    allocatable: {
      devices: [{ resource: 'example.com/toy', deviceIds: ['toy-0', 'toy-1::0', 'toy-0'] }],
      cpus: [0, 1, 2, 3],
      memory: [{ type: 'memory', bytes: 17_179_869_184n, numaNodes: [0] }],
    },
    problem: { reason: 'refused', message: 'connect ECONNREFUSED <socket>' },
  }),
  pods: new Map(
    [
      { namespace: 'ml', pod: 'train-0', uid: 'uid-train-0', phase: 'Running', containers: [{ name: 'main', id: 'c0ffee' }] },
      {
        namespace: 'ml',
        pod: 'dra-0',
        uid: 'uid-dra-0',
        phase: 'Running',
        containers: [],
        extended: [{ container: 'main', resource: 'example.com/wire', claim: 'one-wire' }],
      },
    ].map((pod) => [podName(pod), pod]),
  ),
};

export const stats: AgentStats = {
  node: 'node-1',
  version: '1.2.3',
  revision: 'abc',
  podResourcesRequests: [
    { method: 'List', code: 'OK', count: 4 },
    { method: 'List', code: 'UNAVAILABLE', count: 1 },
  ],
  podResourcesDurations: [{ method: 'List', durations: durationsOf(0.00325, 0.001) }],
  webConfig: { isSuccessful: true, lastSuccessMs: 1_767_225_600_000 },
  plugin: {
    resources: [
      {
        resource: 'example.com/toy',
        registered: true,
        difference: { ids: 3, offered: 1, sinceMs: TAKEN_AT_MS - 1_500 },
        streams: 1,
        healthy: 2,
        unhealthy: 1,
        registrations: { ok: 2, 'stream-ended': 1 },
        lastUpdateMs: TAKEN_AT_MS - 750,
        allocations: { ok: 3, 'unknown-device': 1 },
        calls: [
          { method: 'ListAndWatch', durations: durationsOf(0.25) },
          { method: 'Allocate', durations: durationsOf(0.001, 0.0075, 0.002, 0.002) },
        ],
      },
      {
        resource: 'example.com/wire',
        registered: false,
        streams: 0,
        healthy: 0,
        unhealthy: 0,
        registrations: {},
        allocations: {},
        calls: [],
      },
    ],
  },
  host: { manufacturer: 'ACME', kernel: '6.1.0', cpus: 4, memoryBytes: 8_589_934_592, numaNodes: 2 },
};
