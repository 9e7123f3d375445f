import { describe, expect, it } from 'vitest';
import { usageOptionsFor } from '../../src/accounting/options.ts';
import { Assembler } from '../../src/agent/assemble.ts';
import { createHealthEngine, type HealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { createPolicy, type HealthPolicy } from '../../src/health/policy/policy.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess, DeviceRead, DeviceReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { Finding } from '../../src/model/health.ts';
import { defaultValues } from '../../src/model/options.ts';
import type { CheckpointEntry, PodFacts, PodResources } from '../../src/model/pod-resources.ts';
import { podName } from '../../src/model/pod-resources.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { allocation, device, familyState, listed, lookAt, podResources, report } from '../support/snapshots.ts';

const families = [infiniband, nvidia];
const START = Date.parse('2030-01-01T00:00:00Z');
const MIB = 1_048_576;
const usage = defaultValues(usageOptionsFor([nvidia]));
const GPU = device({ family: 'nvidia', id: 'GPU-1', kind: 'gpu' });
const HCA = device({ family: 'infiniband', id: 'mlx5_0', kind: 'pf' });

const uid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
const container = (n: number): string => String(n).repeat(64);
/** A process of a pod, as the probe reports it. */
const inPod = (n: number, part: Partial<DeviceProcess> = {}): DeviceProcess => ({
  pid: 4_000 + n,
  name: 'python3',
  memoryUsedBytes: 1_000 * MIB,
  podUid: uid(n),
  containerId: container(n),
  ...part,
});
const onHost = (name: string, part: Partial<DeviceProcess> = {}): DeviceProcess => ({
  pid: 900,
  name,
  memoryUsedBytes: 500 * MIB,
  ...part,
});

/** The allocation of the GPU, or of another device, to the pod of that number. */
const given = (n: number, part: Partial<Allocation> = {}): Allocation =>
  allocation({ pod: `w-${n}`, resource: 'nvidia.com/gpu', deviceId: 'GPU-1', ...part });
const entry = (n: number, deviceId = 'GPU-1'): CheckpointEntry => ({
  podUid: uid(n),
  container: 'main',
  resource: 'nvidia.com/gpu',
  deviceIds: [deviceId],
});
const facts = (n: number, part: Partial<PodFacts> = {}): PodFacts => ({
  namespace: 'ml',
  pod: `w-${n}`,
  uid: uid(n),
  phase: 'Running',
  containers: [{ name: 'main', id: container(n) }],
  ...part,
});

/** What is the same in each reading of a step. Absent parts are those of an idle, empty, complete GPU. */
interface Moment {
  readonly devices?: readonly Device[];
  readonly processes?: readonly DeviceProcess[];
  readonly areAllListed?: boolean;
  readonly usedMib?: number;
  readonly busy?: number;
  readonly held?: readonly Allocation[];
  readonly kubelet?: Partial<PodResources>;
  readonly checkpoint?: readonly CheckpointEntry[];
  readonly pods?: readonly PodFacts[];
  /** Readings and findings in place of those of a GPU. */
  readonly read?: (device: Device, seconds: number) => Partial<DeviceRead>;
  readonly isUnread?: boolean;
  /** The kubelet answers, and the devices were read before that. */
  readonly isReadBefore?: boolean;
}

const gpuRead = ({ processes = [], areAllListed = true, usedMib = 0, busy = 0 }: Moment): Partial<DeviceRead> => ({
  readings: [
    { metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: busy },
    { metric: 'device_memory_used_bytes', value: usedMib * MIB },
  ],
  processes,
  ...(areAllListed ? { hasAllProcesses: true } : {}),
});

/** A node with the real assembler and the real engine, read each ten seconds by a clock that only the test moves. */
class Node {
  readonly policy: HealthPolicy;
  engine: HealthEngine;
  assembler: Assembler;
  seconds = 0;
  last: DeviceState | undefined;
  #latest: readonly DeviceReport[] = [];
  #readAtMs = START;

  constructor(config: Parameters<typeof createPolicy>[0]['config'] = {}) {
    const { policy, problems } = createPolicy({
      specs: Object.fromEntries(families.map(({ name, conditions }) => [name, conditions])),
      config,
      use: usage,
    });
    expect(problems).toEqual([]);
    this.policy = policy;
    this.engine = createHealthEngine({ policy });
    this.assembler = this.#assembler();
  }

  /** The agent ends and starts again, with the state from disk. */
  restart(): void {
    const state = JSON.parse(JSON.stringify(this.engine.state())) as HealthMemory;
    this.engine = createHealthEngine({ policy: this.policy, state });
    this.assembler = this.#assembler();
  }

  /** So many seconds pass in this state. Returns the conditions of use that count on the first device then. */
  pass(seconds: number, moment: Moment): readonly string[] {
    const endS = this.seconds + seconds;
    while (this.seconds < endS) {
      this.seconds = Math.min(endS, this.seconds + 10);
      this.#take(moment);
    }
    return this.conditions;
  }

  get conditions(): readonly string[] {
    return this.last?.verdict.conditions.map(({ type }) => type) ?? [];
  }

  get message(): string {
    return this.last?.verdict.conditions[0]?.message ?? '';
  }

  #assembler(): Assembler {
    const known = this.engine.knownDevices().map(({ readAtMs = 0, ...one }) => ({ ...one, readAtMs }));
    return new Assembler(
      {
        rules: { pools: [], families: new Map() },
        specs: new Map(),
        staleAfterMs: 60_000,
        missingRetentionMs: 3_600_000,
        use: {
          activities: new Map(families.flatMap(({ name, activity }) => (activity === undefined ? [] : [[name, activity] as const]))),
          idle: {},
          limits: usage,
        },
      },
      (devices, { nowMs, monotonicMs }) => this.engine.judge({ devices, monotonicMs }, nowMs).verdicts,
      known,
    );
  }

  #take(moment: Moment): void {
    const { devices = [GPU], held = [], kubelet = {}, checkpoint = [], pods, read = () => gpuRead(moment) } = moment;
    const { isUnread = false, isReadBefore = false } = moment;
    const nowMs = START + this.seconds * 1_000;
    if (!isUnread && !isReadBefore) {
      this.#latest = devices.map((one) => report({ device: one, ...read(one, this.seconds) }));
      this.#readAtMs = nowMs;
    }
    const byFamily = [...new Set(devices.map(({ family }) => family))];
    const snapshot = this.assembler.assemble(
      {
        families: byFamily.map((family) => ({
          state: familyState(family),
          isBlind: isUnread,
          latest: lookAt(listed(this.#latest.filter((one) => one.device.family === family)), this.#readAtMs),
        })),
        podResources: podResources(held, { answeredAtMs: nowMs, ...kubelet }),
        ...(pods === undefined ? {} : { pods: new Map(pods.map((pod) => [podName(pod), pod])) }),
        checkpoint,
      },
      { nowMs, monotonicMs: nowMs },
    );
    this.last = snapshot.devices.find(({ device: one }) => one.id === devices[0]?.id);
  }
}

const SILENT: Partial<PodResources> = { problem: { reason: 'timeout', message: 'no answer' } };

interface Case {
  readonly name: string;
  readonly moment: Moment;
  /** What happened before. */
  readonly after?: readonly (readonly [seconds: number, Moment])[];
  readonly message?: RegExp;
}

const oneHolder: Moment = { held: [given(1)], checkpoint: [entry(1)], processes: [inPod(1)], usedMib: 1_000, busy: 0.9 };

describe('a device held by a stranger', () => {
  const raised: readonly Case[] = [
    {
      name: 'a process of the host',
      moment: { processes: [onHost('python3')], usedMib: 500 },
      message: /no holder.*process 900 \(python3\) outside of pods, 500 MiB/,
    },
    {
      name: 'a process of the host beside the holder',
      moment: { ...oneHolder, processes: [inPod(1), onHost('xmrig', { utilization: { gpu: 0.5 } })] },
      message: /^ml\/w-1 holds the device, but it is used by process 900 \(xmrig\) outside of pods, 500 MiB, gpu 50 %$/,
    },
    {
      name: 'a process of a pod that holds nothing',
      moment: { ...oneHolder, processes: [inPod(1), inPod(2)], pods: [facts(1), facts(2)] },
      message: /process 4002 \(python3\) of pod ml\/w-2/,
    },
    {
      name: 'a process of a pod that holds another GPU',
      moment: {
        ...oneHolder,
        devices: [GPU, device({ family: 'nvidia', id: 'GPU-2', kind: 'gpu' })],
        held: [given(1), given(2, { deviceId: 'GPU-2' })],
        checkpoint: [entry(1), entry(2, 'GPU-2')],
        processes: [inPod(1), inPod(2)],
      },
      message: /of pod with UID/,
    },
    {
      name: 'the process of the old holder under a new one',
      after: [[60, oneHolder]],
      moment: { held: [given(2)], checkpoint: [entry(2)], processes: [inPod(1), inPod(2)], usedMib: 2_000 },
    },
    {
      name: 'a container of the host, while nobody holds the device',
      moment: { processes: [onHost('python3', { containerId: container(7) })] },
      message: /container 777777777777 outside of pods/,
    },
  ];
  it.each(raised)('is $name, after 60 s', ({ moment, message = /./, after = [] }) => {
    const node = new Node();
    for (const [seconds, before] of after) node.pass(seconds, before);
    expect(node.pass(60, moment)).not.toContain('HeldByStranger');
    expect(node.pass(10, moment)).toContain('HeldByStranger');
    expect(node.message).toMatch(message);
    expect(node.last?.verdict.state).toBe('degraded');
    expect(node.pass(10, { ...moment, processes: [], usedMib: 0 }), 'ends with the process').not.toContain('HeldByStranger');
  });

  const innocent: readonly Case[] = [
    { name: 'the holder', moment: oneHolder },
    {
      name: 'both holders of a shared GPU',
      moment: { held: [given(1), given(2, { deviceId: 'GPU-1' })], checkpoint: [entry(1), entry(2)], processes: [inPod(1), inPod(2)] },
    },
    {
      name: 'a process of another container of the holding pod',
      moment: { ...oneHolder, processes: [inPod(1, { containerId: container(9) })] },
    },
    { name: 'the MPS server on the host', moment: { ...oneHolder, processes: [inPod(1), onHost('nvidia-cuda-mps')] } },
    { name: 'the MPS server in a pod', moment: { ...oneHolder, processes: [inPod(1), inPod(2, { name: 'nvidia-cuda-mps' })] } },
    {
      name: 'DCGM in a pod',
      moment: { ...oneHolder, processes: [inPod(1), inPod(2, { name: 'nv-hostengine' })], pods: [facts(1), facts(2)] },
    },
    { name: 'the persistence daemon', moment: { processes: [onHost('nvidia-persiste')] } },
    { name: 'a process that is not visible below /proc', moment: { processes: [{ pid: 5 }] } },
    { name: 'a process of a holder whose UID nobody tells', moment: { ...oneHolder, checkpoint: [] } },
    {
      name: 'a process of the holder of a claim, by the Pods API alone',
      moment: { held: [given(1)], pods: [facts(1)], processes: [inPod(1)] },
    },
    {
      name: 'a process seen only by the container of the holder',
      moment: { held: [given(1)], pods: [facts(1)], processes: [onHost('python3', { containerId: container(1) })] },
    },
    {
      name: 'a container without a pod, while the containers of the holder are not known',
      moment: { held: [given(1)], checkpoint: [entry(1)], processes: [onHost('python3', { containerId: container(7) })] },
    },
    {
      name: 'a process of a pod whose allocation leads to no device',
      moment: { held: [given(3, { resource: 'other.com/gpu', deviceId: 'slice-7' })], pods: [facts(3)], processes: [inPod(3)] },
    },
    { name: 'anything, while the kubelet is silent', moment: { processes: [onHost('python3')], kubelet: SILENT } },
    {
      name: 'anything, before the kubelet has answered',
      moment: { processes: [onHost('python3')], kubelet: { answeredAtMs: undefined as never } },
    },
    {
      name: 'a process of an instance, for the whole GPU',
      moment: {
        devices: [GPU, device({ family: 'nvidia', id: 'MIG-1', kind: 'mig', parent: 'GPU-1' })],
        held: [given(1, { deviceId: 'MIG-1' })],
        checkpoint: [entry(1, 'MIG-1')],
        processes: [inPod(1), onHost('python3')],
      },
    },
    {
      name: 'a process of the host on an HCA',
      moment: { devices: [HCA], read: () => ({ processes: [onHost('python3')], hasAllProcesses: true }) },
    },
  ];
  it.each(innocent)('is never $name', ({ moment }) => {
    const node = new Node();
    expect(node.pass(600, moment)).not.toContain('HeldByStranger');
  });

  it('is no pod between its stop and its removal', () => {
    const node = new Node();
    node.pass(60, oneHolder);
    expect(node.pass(50, { ...oneHolder, held: [], checkpoint: [] })).toEqual([]);
    expect(node.pass(10, {})).toEqual([]);
  });

  it('stays raised while nothing is known, and over a restart', () => {
    const node = new Node();
    const stranger: Moment = { processes: [onHost('python3')] };
    node.pass(70, stranger);
    expect(node.pass(30, { kubelet: SILENT })).toContain('HeldByStranger');
    expect(node.pass(30, { areAllListed: false })).toContain('HeldByStranger');
    node.restart();
    expect(node.pass(10, { ...stranger, isUnread: true })).toContain('HeldByStranger');
    expect(node.pass(10, {})).toEqual([]);
  });

  it('counts the time on over a restart', () => {
    const node = new Node();
    const stranger: Moment = { processes: [onHost('python3')] };
    node.pass(50, stranger);
    node.restart();
    expect(node.pass(10, stranger)).toEqual([]);
    expect(node.pass(10, stranger)).toEqual(['HeldByStranger']);
  });

  it('is not accused by a read from before its present holders', () => {
    const node = new Node({ conditions: { 'nvidia.HeldByStranger': { for: '0s' }, 'nvidia.DirtyAfterUse': { for: '0s' } } });
    node.pass(10, oneHolder);
    const next: Moment = { held: [given(2)], checkpoint: [entry(2)] };
    expect(node.pass(10, { ...next, isReadBefore: true }), 'another pod has it').toEqual([]);
    expect(node.last?.processes.map(({ podUid }) => podUid)).toEqual([uid(1)]);
    expect(node.pass(10, { ...next, processes: [inPod(2)] })).toEqual([]);
    expect(node.pass(10, { isReadBefore: true }), 'nobody has it').toEqual([]);
    expect(node.pass(10, { ...next, isReadBefore: true }), 'the same pod again').toEqual([]);
    expect(node.pass(10, { ...next, processes: [inPod(1)] }), 'a read since then').toEqual(['HeldByStranger']);
  });

  it('is not accused while the plugin answers Allocate, however long, nor in the moment before the kubelet lists the device', () => {
    const node = new Node();
    node.pass(60, oneHolder);
    node.pass(10, {});
    // The kubelet lists the next pod, and not the device that it reserved.
    const reserved: Moment = { pods: [facts(2, { phase: 'Pending', containers: [] })] };
    expect(node.pass(600, reserved)).toEqual([]);
    expect(node.last?.holders).toEqual([]);
    expect(node.pass(20, { processes: [inPod(2)], pods: [facts(2)] }), 'its process is seen first').toEqual([]);
    const held: Moment = { held: [given(2)], checkpoint: [entry(2)], processes: [inPod(2)], pods: [facts(2)] };
    expect(node.pass(600, held)).toEqual([]);
    expect(node.last?.holders.map(({ pod }) => pod)).toEqual(['w-2']);
    expect(node.pass(70, { ...held, processes: [inPod(1)] }), 'what the last pod left').toEqual(['HeldByStranger']);
  });

  it('takes another time from the health policy', () => {
    const node = new Node({ conditions: { 'nvidia.HeldByStranger': { for: '0s', severity: 'fatal' } } });
    expect(node.pass(10, { processes: [onHost('python3')] })).toEqual(['HeldByStranger']);
    expect(node.last?.verdict.state).toBe('unhealthy');
  });
});

describe('a device that works without a holder', () => {
  const raised: readonly Case[] = [
    { name: 'its engines are busy', moment: { busy: 0.97 }, message: /no process explains its work: gpu 97 %/ },
    { name: 'its memory is in use', moment: { usedMib: 300 }, message: /no process explains 300 MiB/ },
    { name: 'an allowed process explains only a part', moment: { usedMib: 900, processes: [onHost('nv-hostengine')] }, message: /400 MiB/ },
    { name: 'an allowed process is idle', moment: { busy: 0.5, processes: [onHost('nv-hostengine', { utilization: { gpu: 0 } })] } },
  ];
  it.each(raised)('has the condition when $name, after five minutes', ({ moment, message = /./ }) => {
    const node = new Node();
    expect(node.pass(300, moment)).toEqual([]);
    expect(node.pass(10, moment)).toEqual(['BusyWithoutHolder']);
    expect(node.message).toMatch(message);
    expect(node.pass(30, { ...moment, kubelet: SILENT }), 'while the kubelet is silent').toEqual(['BusyWithoutHolder']);
    expect(node.pass(10, oneHolder), 'with a holder').toEqual([]);
  });

  const innocent: readonly Case[] = [
    { name: 'an idle device', moment: { busy: 0.05, usedMib: 256 } },
    { name: 'a device with a holder', moment: { held: [given(1)], checkpoint: [entry(1)], busy: 0.97, usedMib: 9_000 } },
    {
      name: 'a GPU with a held instance',
      moment: {
        devices: [GPU, device({ family: 'nvidia', id: 'MIG-1', kind: 'mig', parent: 'GPU-1' })],
        held: [given(1, { deviceId: 'MIG-1' })],
        busy: 0.97,
        usedMib: 9_000,
      },
    },
    {
      name: 'a GPU with free instances, which tell it themselves',
      moment: { devices: [GPU, device({ family: 'nvidia', id: 'MIG-1', kind: 'mig', parent: 'GPU-1' })], usedMib: 9_000 },
    },
    {
      name: 'a device that only allowed processes use',
      moment: { busy: 0.4, usedMib: 500, processes: [onHost('nvidia-cuda-mps', { utilization: { gpu: 0.4 } })] },
    },
    { name: 'a device of which an allowed process is not read', moment: { busy: 0.4, processes: [onHost('nvidia-cuda-mps')] } },
    { name: 'a device of which not all processes are known', moment: { busy: 0.9, usedMib: 9_000, areAllListed: false } },
    { name: 'any device while the kubelet is silent', moment: { busy: 0.9, kubelet: SILENT } },
    { name: 'an HCA with the traffic of the host', moment: { devices: [HCA], read: (_, seconds) => ({ readings: bytes(seconds * 1e9) }) } },
  ];
  it.each(innocent)('is not $name', ({ moment }) => {
    const node = new Node();
    expect(node.pass(1_200, moment)).not.toContain('BusyWithoutHolder');
  });
});

describe('a device that is dirty after use', () => {
  const ended: Moment = { pods: [] };

  it.each([
    [
      'a process of the last holder',
      { ...ended, processes: [inPod(1, { isStuck: true })], usedMib: 1_000 },
      /ml\/w-1, was gone at 2030-01-01T00:01:10.000Z, but it left process 4001 \(python3\) of pod ml\/w-1, 1000 MiB, waits in the kernel/,
    ],
    ['memory', { ...ended, usedMib: 300 }, /300 MiB of memory that no process explains are left/],
  ] as const)('has %s, for the time after the end of the holder', (_, moment, message) => {
    const node = new Node();
    node.pass(60, oneHolder);
    expect(node.pass(60, moment)).toEqual([]);
    expect(node.pass(10, moment)).toEqual(['DirtyAfterUse']);
    expect(node.message).toMatch(message);
    expect(node.pass(10, { kubelet: SILENT })).toEqual(['DirtyAfterUse']);
    expect(node.pass(10, {})).toEqual([]);
  });

  it('is known to be so when the holder ended while the agent did not run', () => {
    const node = new Node();
    node.pass(60, oneHolder);
    node.restart();
    expect(node.pass(60, { processes: [inPod(1)], usedMib: 1_000 })).toEqual([]);
    expect(node.pass(10, { processes: [inPod(1)], usedMib: 1_000 })).toEqual(['DirtyAfterUse']);
  });

  it('gives what is left to a stranger as soon as another pod has the device', () => {
    const node = new Node();
    node.pass(60, oneHolder);
    const residue: Moment = { processes: [inPod(1)], usedMib: 1_000 };
    expect(node.pass(70, residue)).toEqual(['DirtyAfterUse']);
    const next: Moment = { held: [given(2)], checkpoint: [entry(2)], processes: [inPod(1), inPod(2)], usedMib: 2_000, busy: 0.9 };
    expect(node.pass(60, next)).toEqual([]);
    expect(node.pass(10, next)).toEqual(['HeldByStranger']);
  });

  const innocent: readonly Case[] = [
    { name: 'a clean device', moment: {} },
    { name: 'a device with memory up to the limit', moment: { usedMib: 256 } },
    { name: 'a device that an allowed process uses', moment: { usedMib: 500, processes: [onHost('nv-hostengine')] } },
    { name: 'a device whose memory is not known', moment: { read: () => ({ hasAllProcesses: true }) } },
    {
      name: 'a device of which the kubelet holds the allocation through its restart',
      moment: { ...oneHolder, kubelet: { held: new Set(['x']) } },
    },
    { name: 'a device with a silent kubelet', moment: { usedMib: 9_000, kubelet: SILENT } },
  ];
  it.each(innocent)('is not $name', ({ moment }) => {
    const node = new Node();
    node.pass(60, oneHolder);
    expect(node.pass(600, moment)).not.toContain('DirtyAfterUse');
  });

  it('is not a device that now has the name of another one', () => {
    const node = new Node();
    const named = (pciAddress: string): readonly Device[] => [{ ...GPU, pciAddress }];
    node.pass(60, { ...oneHolder, devices: named('0000:01:00.0') });
    expect(node.pass(200, { devices: named('0000:02:00.0'), usedMib: 300 })).toEqual([]);
    expect(node.pass(110, { devices: named('0000:02:00.0'), usedMib: 300 })).toEqual(['BusyWithoutHolder']);
  });
});

/** Counters of one port after so many bytes. */
function bytes(received: number): DeviceRead['readings'] {
  return [
    { metric: 'device_received_bytes_total', labels: { port: '1' }, value: received },
    { metric: 'device_transmitted_bytes_total', labels: { port: '1' }, value: 0 },
  ];
}

describe('a device that is held and idle', () => {
  const hca = (perSecond: number, part: Partial<Moment> = {}): Moment => ({
    devices: [HCA],
    held: [given(1, { resource: 'rdma/hca', deviceId: 'mlx5_0' })],
    read: (_, seconds) => ({ readings: bytes(perSecond * seconds) }),
    ...part,
  });

  it.each([
    ['a GPU', { ...oneHolder, busy: 0.05, processes: [inPod(1, { utilization: { gpu: 0.05 } })] }],
    ['an HCA', hca(10_000)],
  ] as const)('has the condition after half an hour: %s', (_, moment) => {
    const node = new Node();
    expect(node.pass(1_790, moment)).toEqual([]);
    expect(node.pass(30, moment)).toEqual(['IdleHeld']);
    expect(node.message).toBe('held by ml/w-1 and does nothing');
    expect(node.last?.verdict.state, 'information only').toBe('healthy');
    expect(node.pass(30, { ...moment, kubelet: SILENT }), 'while the kubelet is silent').toEqual(['IdleHeld']);
    expect(node.pass(10, { ...moment, held: [] }), 'without the holder').toEqual([]);
  });

  it.each([
    ['works', { ...oneHolder, busy: 0.06 }],
    ['has a process that works', { ...oneHolder, busy: 0, processes: [inPod(1, { utilization: { sm: 0.06 } })] }],
    ['has traffic', hca(10_001)],
    ['tells no traffic', hca(0, { read: () => ({ readings: [...bytes(0)].slice(0, 1) }) })],
    ['has counters that are set back at each read', hca(0, { read: (_, seconds) => ({ readings: bytes(1e9 - seconds) }) })],
    ['tells no utilization', { ...oneHolder, read: () => ({}) }],
    ['is free', {}],
  ] as const)('does not have it when it %s', (_, moment) => {
    const node = new Node();
    expect(node.pass(3_600, moment)).not.toContain('IdleHeld');
  });

  it('begins anew after work', () => {
    const node = new Node();
    node.pass(1_700, { ...oneHolder, busy: 0 });
    node.pass(10, oneHolder);
    expect(node.pass(1_700, { ...oneHolder, busy: 0 })).toEqual([]);
  });
});

describe('a held device without a port', () => {
  const ports = (states: readonly number[], findings: readonly Finding[] = []): Partial<DeviceRead> => ({
    readings: states.map((value, at) => ({ metric: 'device_link_up', labels: { port: String(at + 1) }, value })),
    findings,
  });
  const held = [given(1, { resource: 'rdma/hca', deviceId: 'mlx5_0' })];
  const at = (states: readonly number[], part: Partial<Moment> = {}): Moment => ({
    devices: [HCA],
    held,
    read: () => ports(states),
    ...part,
  });

  it.each([[[0]], [[0, 0]]])('has the condition after 60 s: %j', (states) => {
    const node = new Node();
    expect(node.pass(60, at(states))).toEqual([]);
    expect(node.pass(10, at(states))).toEqual(['HeldPortDown']);
    expect(node.last?.verdict.conditions[0]).toMatchObject({ severity: 'degraded', remedy: 'check-cable' });
    expect(node.message).toMatch(/^held by ml\/w-1, but its (port is|2 ports are) not up$/);
    expect(node.pass(10, at([1])), 'ends with a port').toEqual([]);
  });

  it('remembers who held a part also for its whole, and who held the whole not for each part', () => {
    const vf = device({ family: 'infiniband', id: 'mlx5_5', kind: 'vf', parent: 'mlx5_0' });
    const lastOf = (first: Device, second: Device, deviceId: string) => {
      const node = new Node();
      node.pass(20, at([0], { devices: [first, second], held: [given(1, { resource: 'rdma/hca', deviceId })] }));
      node.pass(20, at([0], { devices: [first, second], held: [] }));
      return node.last?.lastHolders?.pods.map(({ pod }) => pod) ?? [];
    };
    expect([lastOf(HCA, vf, 'mlx5_5'), lastOf(vf, HCA, 'mlx5_0'), lastOf(vf, HCA, 'mlx5_5')]).toEqual([['w-1'], [], ['w-1']]);
  });

  it('tells the owner of a function to enable its port', () => {
    const vf = { ...HCA, kind: 'vf', parent: 'mlx5_9' };
    const node = new Node();
    node.pass(70, at([0], { devices: [vf] }));
    expect(node.last?.verdict.conditions).toMatchObject([{ type: 'HeldPortDown', remedy: 'enable-port' }]);
  });

  it.each([
    ['one of two ports is up', at([0, 1])],
    ['nobody holds it', at([0], { held: [] })],
    ['it reports no port', at([])],
    ['the kubelet is silent', at([0], { kubelet: SILENT })],
  ] as const)('does not have it when %s', (_, moment) => {
    const node = new Node();
    expect(node.pass(600, moment)).toEqual([]);
  });

  it('is told once when the family tells of the port', () => {
    const node = new Node();
    const down = (level: boolean): Finding[] => [
      { type: 'PortDown', instance: '1', reason: 'LinkPolling', message: 'port 1 is down', level },
    ];
    const moment = (states: readonly number[], level: boolean): Moment => at(states, { read: () => ports(states, down(level)) });
    node.pass(10, moment([1], true));
    // Also while the condition of the family waits to count: two remedies at once would contradict each other.
    const waiting: string[] = [];
    for (let n = 0; n < 3; n += 1) {
      node.pass(10, moment([0], false));
      waiting.push(
        ...(node.last?.verdict.pending ?? []).map(({ type }) => type),
        ...(node.last?.verdict.conditions ?? []).map(({ type }) => type),
      );
    }
    expect(new Set(waiting)).toEqual(new Set(['PortDown']));
    expect(node.pass(300, moment([0], false))).toEqual(['PortDown']);
    expect(node.last?.verdict.pending).toBeUndefined();
    expect(node.pass(80, moment([1], true))).toEqual([]);
  });
});
