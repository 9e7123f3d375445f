import { describe, expect, it } from 'vitest';
import { Accounts } from '../../src/accounting/accounts.ts';
import { usageOptionsFor } from '../../src/accounting/options.ts';
import { Assembler } from '../../src/agent/assemble.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { DeviceProcess } from '../../src/model/collection.ts';
import { defaultValues } from '../../src/model/options.ts';
import { type CheckpointEntry, type PodFacts, type PodResources, podName } from '../../src/model/pod-resources.ts';
import { measured, shared } from '../../src/model/shared-metrics.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { resolve } from '../../src/probes/nvidia/devices.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { settings } from '../accounting/small-node.ts';
import { allocation, device, familyState, listed, lookAt, podResources, report } from '../support/snapshots.ts';

const WALL = Date.parse('2030-01-01T00:00:00Z');
const MIB = 1_048_576;
const usage = defaultValues(usageOptionsFor([family]));
const uuid = (n: number): string => `GPU-4000000${n}-0000-4000-8000-00000000000${n}`;
const GPUS = [0, 1].map((n) => device({ family: 'nvidia', id: uuid(n), uuid: uuid(n), kind: 'gpu' }));
const specs = new Map([measured(shared.utilization, 'a'), measured(shared.memoryUsed, 'b')].map((spec) => [spec.name, spec]));

const uid = (pod: string): string => `uid-of-${pod}`;
const inPod = (pod: string, mib: number, part: Partial<DeviceProcess> = {}): DeviceProcess => ({
  ...{ pid: mib, name: 'python3', memoryUsedBytes: mib * MIB, podUid: uid(pod), containerId: `c-${pod}` },
  ...part,
});
const given = (pod: string, deviceId: string, part: Partial<Allocation> = {}): Allocation =>
  allocation({ namespace: 'team', pod, container: 'main', resource: 'nvidia.com/gpu', deviceId, ...part });
const facts = (pod: string, part: Partial<PodFacts> = {}): PodFacts => ({
  ...{ namespace: 'team', pod, uid: uid(pod), phase: 'Running', containers: [{ name: 'main', id: `c-${pod}` }] },
  ...part,
});

interface Moment {
  readonly held?: readonly Allocation[];
  /** Processes of each GPU. */
  readonly on?: readonly (readonly DeviceProcess[])[];
  readonly pods?: readonly PodFacts[];
  readonly checkpoint?: readonly CheckpointEntry[];
  readonly kubelet?: Partial<PodResources>;
}

/** Assembler, accounts and engine, with a second between two reads. The answer of the kubelet comes half a second after the read. */
class Node {
  #ms = 0;
  readonly #assembler: Assembler;
  snapshot: Snapshot | undefined;

  constructor(delegation = { holders: usage['delegated-holders'], ids: usage['delegated-ids'] }) {
    const { policy } = createPolicy({ specs: { nvidia: family.conditions }, config: {}, use: usage });
    const engine = createHealthEngine({ policy });
    const { activity } = family;
    if (activity === undefined) throw new Error('the family declares no activity');
    this.#assembler = new Assembler(
      {
        rules: { pools: [], families: new Map([['nvidia', resolve]]), delegatedIds: delegation.ids },
        specs,
        staleAfterMs: 60_000,
        missingRetentionMs: 3_600_000,
        use: { activities: new Map([['nvidia', activity]]), idle: {}, limits: usage, delegation },
      },
      (devices, { nowMs, monotonicMs }) => engine.judge({ devices, monotonicMs }, nowMs).verdicts,
      [],
      { accounts: new Accounts({ ...settings, activity: new Map([['nvidia', { spec: activity }]]) }) },
    );
  }

  pass(seconds: number, { held = [], on = [], pods, checkpoint, kubelet = {} }: Moment, look: (node: Node) => void = () => {}): this {
    for (let left = seconds; left > 0; left -= 1) {
      this.#ms += 1_000;
      const reports = GPUS.map((one, at) => {
        const processes = on[at] ?? [];
        const used = processes.reduce((sum, { memoryUsedBytes = 0 }) => sum + memoryUsedBytes, 0);
        const readings = [
          { metric: shared.utilization.name, labels: { engine: 'gpu' }, value: processes.length === 0 ? 0 : 0.9 },
          { metric: shared.memoryUsed.name, value: used },
        ];
        return report({ device: one, readings, processes, hasAllProcesses: true });
      });
      const nowMs = WALL + this.#ms;
      const uidOf = ({ container, resource, deviceId, pod }: Allocation): CheckpointEntry => ({
        ...{ podUid: uid(pod), container, resource, deviceIds: [deviceId] },
      });
      this.snapshot = this.#assembler.assemble(
        {
          families: [{ state: familyState('nvidia'), latest: lookAt(listed(reports), nowMs - 500, this.#ms - 500) }],
          podResources: podResources(held, { answeredAtMs: nowMs, answeredMonotonicMs: this.#ms, ...kubelet }),
          ...(pods === undefined ? {} : { pods: new Map(pods.map((pod) => [podName(pod), pod])) }),
          checkpoint: checkpoint ?? held.map(uidOf),
        },
        { nowMs, monotonicMs: this.#ms },
      );
      look(this);
    }
    return this;
  }

  of(gpu: number) {
    const state = this.snapshot?.devices[gpu];
    if (state === undefined) throw new Error('no such GPU');
    return state;
  }

  conditions(gpu: number): readonly string[] {
    const { conditions, pending = [] } = this.of(gpu).verdict;
    return [...conditions, ...pending].map(({ type }) => type).filter((type) => type !== 'IdleHeld');
  }

  users(gpu: number): readonly string[] {
    return (this.of(gpu).users ?? []).map(({ pod, uid: own }) => pod ?? own);
  }

  /** Accounts on a GPU by pod, in whole seconds. */
  seconds(gpu: number, of: (one: ContainerUsage) => number | undefined): Readonly<Record<string, number | undefined>> {
    const own = this.snapshot?.usage?.containers.filter((one) => one.device === this.of(gpu).key) ?? [];
    return Object.fromEntries(own.map((one) => [one.pod, of(one)]));
  }

  device(gpu: number) {
    return this.snapshot?.usage?.devices.find(({ device: key }) => key === this.of(gpu).key);
  }

  /** MiB by pod. */
  memory(gpu: number): Readonly<Record<string, number>> {
    const own = this.snapshot?.containerReadings.filter((one) => one.device === this.of(gpu).device.id) ?? [];
    return Object.fromEntries(
      own.flatMap(({ pod, readings }) =>
        [...readings].flatMap(({ metric, value }) => (metric === shared.memoryUsed.name ? [[pod, Number(value) / MIB] as const] : [])),
      ),
    );
  }
}

const sum = (amounts: Readonly<Record<string, number | undefined>>): number =>
  Object.values(amounts).reduce<number>((total, amount = 0) => total + amount, 0);

/** Shares add up to the allocated time of each GPU, and memory to that of its processes. */
function expectTrueSums(node: Node): void {
  for (const gpu of [0, 1]) {
    expect(sum(node.seconds(gpu, ({ shareSeconds }) => shareSeconds))).toBeCloseTo(node.device(gpu)?.allocatedSeconds ?? 0, 6);
    const processes = node.of(gpu).processes.reduce((total, { memoryUsedBytes = 0 }) => total + memoryUsedBytes / MIB, 0);
    expect(sum(node.memory(gpu))).toBe(processes);
  }
}

const KAI = given('gpu-reservation-node1-abcde', uuid(0), { namespace: 'kai-resource-reservation', container: 'resource-reservation' });
const FRACTIONS = [[inPod('frac-a', 20_000), inPod('frac-b', 9_000)]];

describe.each([
  ['KAI', [KAI]],
  ['Run:ai', [{ ...KAI, namespace: 'runai-reservation' }]],
])('a reservation pod of %s holds a GPU', (_, held) => {
  it('for its users, who have the hours and the memory of their processes, by UID or by name', () => {
    for (const pods of [undefined, [facts('frac-a'), facts('frac-b')]]) {
      const name = (pod: string): string => (pods === undefined ? uid(pod) : pod);
      const node = new Node().pass(1, { held, on: FRACTIONS, ...(pods && { pods }) });
      node.pass(600, { held, on: FRACTIONS, ...(pods && { pods }) }, expectTrueSums);
      expect(node.conditions(0)).toEqual([]);
      expect(node.of(0).verdict.state).toBe('healthy');
      expect(node.users(0)).toEqual([name('frac-a'), name('frac-b')]);
      expect(node.memory(0)).toEqual({ [name('frac-a')]: 20_000, [name('frac-b')]: 9_000 });
      expect(node.seconds(0, ({ shareSeconds }) => shareSeconds)).toEqual({
        // The first read began before the agent knew the holder.
        [KAI.pod]: 1,
        [name('frac-a')]: 299.5,
        [name('frac-b')]: 299.5,
      });
      expect(node.seconds(0, ({ delegatedSeconds }) => delegatedSeconds)).toMatchObject({ [KAI.pod]: 599 });
      expect(node.device(0)).toMatchObject({ allocatedSeconds: 600, unallocatedSeconds: 0 });
      expect(node.device(1)).toMatchObject({ allocatedSeconds: 0, unallocatedSeconds: 600 });
    }
  });

  it('and has the time without a user itself; each second of each account is of one kind', () => {
    const node = new Node().pass(101, { held }).pass(100, { held, on: FRACTIONS }, expectTrueSums).pass(100, { held }, expectTrueSums);
    const shares = node.seconds(0, ({ shareSeconds }) => Math.round(shareSeconds));
    expect(shares).toEqual({ [KAI.pod]: 200, [uid('frac-a')]: 50, [uid('frac-b')]: 50 });
    const whole = ({ idleSeconds, unobservedSeconds, delegatedSeconds = 0, allocatedSeconds }: ContainerUsage): number =>
      allocatedSeconds - idleSeconds - unobservedSeconds - delegatedSeconds;
    expect(Math.abs(sum(node.seconds(0, whole)))).toBeLessThan(2);
  });

  it('and a process outside of pods is a stranger as ever, and so is a pod on the GPU beside', () => {
    const node = new Node().pass(70, { held, on: [[...(FRACTIONS[0] ?? []), { pid: 7, name: 'xmrig' }], [inPod('frac-a', 10)]] });
    expect(node.conditions(0)).toEqual(['HeldByStranger']);
    expect(node.of(0).verdict.conditions[0]?.message).not.toContain('frac-');
    expect(node.conditions(1)).toEqual(['HeldByStranger']);
  });
});

describe.each([
  ['HAMi', (n: number) => ({ resource: 'nvidia.com/gpu', deviceId: `${uuid(0)}-${n}` })],
  ['Volcano vGPU', (n: number) => ({ resource: 'volcano.sh/vgpu-number', deviceId: `${uuid(0)}-${n}` })],
  ['Volcano GPU sharing', (n: number) => ({ resource: 'volcano.sh/gpu-memory', deviceId: `0-${n}` })],
  ['Volcano, with ids that are names of GPUs', () => ({ resource: 'volcano.sh/gpu-number', deviceId: uuid(0) })],
])('ids of %s', (_, part) => {
  const held = ['vgpu-a', 'vgpu-b'].map((pod, n) => given(pod, '', part(n)));
  // The scheduler chose the other GPU.
  const on = [[], [inPod('vgpu-a', 4_000), inPod('vgpu-b', 6_000)]];

  it('do not tell the GPU: the processes do, and the GPU is not free', () => {
    const node = new Node().pass(1, { held, on }).pass(400, { held, on }, expectTrueSums);
    expect(node.snapshot?.allocations.map(({ devices, unresolved }) => [devices, unresolved])).toEqual([
      [[], undefined],
      [[], undefined],
    ]);
    expect([0, 1].map((gpu) => node.conditions(gpu))).toEqual([[], []]);
    expect([0, 1].map((gpu) => node.users(gpu))).toEqual([[], [uid('vgpu-a'), uid('vgpu-b')]]);
    expect(node.memory(1)).toEqual({ [uid('vgpu-a')]: 4_000, [uid('vgpu-b')]: 6_000 });
    expect(node.seconds(1, ({ shareSeconds }) => shareSeconds)).toEqual({ [uid('vgpu-a')]: 200, [uid('vgpu-b')]: 200 });
    expect(node.device(1)).toMatchObject({ allocatedSeconds: 400, unallocatedSeconds: 0 });
  });

  it('delegate to their pods alone', () => {
    const node = new Node().pass(70, { held, on: [[], [...(on[1] ?? []), inPod('other', 10)]], pods: [facts('other')] });
    expect(node.conditions(1)).toEqual(['HeldByStranger']);
    expect(node.of(1).verdict.conditions[0]?.message).toMatch(
      /^the device has no holder, but it is used by process 10 \(python3\) of pod team\/other/,
    );
  });
});

describe('a user without delegation', () => {
  const held = [given('job', uuid(0))];
  const on = [[inPod('job', 100), inPod('thief', 50)], [inPod('thief', 30)]];

  it('is a stranger with hours and memory, and the holder keeps the share; a GPU that only a stranger uses is not free', () => {
    const node = new Node().pass(1, { held, on }).pass(100, { held, on }, expectTrueSums);
    expect([0, 1].map((gpu) => node.conditions(gpu))).toEqual([['HeldByStranger'], ['HeldByStranger']]);
    expect(node.memory(0)).toEqual({ job: 100, [uid('thief')]: 50 });
    expect(node.seconds(0, ({ allocatedSeconds, shareSeconds }) => allocatedSeconds - shareSeconds)).toEqual({
      job: 0,
      [uid('thief')]: 99,
    });
    expect(node.device(1)).toMatchObject({ unallocatedSeconds: 0 });
  });

  it('is nobody whom a policy of the user names: by pod, by label of the pod, by resource, by id', () => {
    for (const [holders, ids] of [
      [['team/j*'], []],
      [['role=keeper'], []],
    ] as const) {
      const pods = [facts('job', { labels: { role: 'keeper' } }), facts('thief')];
      const node = new Node({ holders, ids }).pass(70, { held, on: [on[0] ?? []], pods });
      expect(node.conditions(0)).toEqual([]);
      expect(new Node({ holders: ['team/x*', 'role=keep'], ids: [] }).pass(70, { held, on, pods }).conditions(0)).toEqual([
        'HeldByStranger',
      ]);
    }
    const own = [given('thief', 'slice-1', { resource: 'example.com/slice' })];
    for (const ids of [['example.com/slice'], ['example.com/slice:slice-*']])
      expect(new Node({ holders: [], ids }).pass(70, { held: own, on: [[], on[1] ?? []] }).conditions(1)).toEqual([]);
  });

  it('is the one whose processes use the GPU although its id leads to no device: an account, and no accusation', () => {
    const own = [given('thief', 'slice-1', { resource: 'example.com/slice' })];
    const node = new Node().pass(101, { held: own, on: [[], on[1] ?? []] }, () => {});
    expect(node.conditions(1)).toEqual([]);
    expect(node.memory(1)).toEqual({ [uid('thief')]: 30 });
    expect(node.device(1)).toMatchObject({ allocatedSeconds: 100, unallocatedSeconds: 0 });
  });
});

describe('no user is', () => {
  const job: Moment = { held: [given('job', uuid(0))], on: [[inPod('job', 100)]] };
  const never = (node: Node): void => expect(node.users(0)).toEqual([]);

  it('the holder, whose process is read before the answer of the kubelet comes', () => {
    const late = { ...job, held: [], kubelet: { answeredMonotonicMs: 500 } };
    new Node().pass(1, {}, never).pass(3, late, never).pass(10, job, never);
  });

  it('the earlier holder, in a read from before its end', () => {
    const node = new Node().pass(10, job, never);
    node.pass(1, { on: [[inPod('job', 100)]] }, never);
    node.pass(5, {}, never);
    expect(node.device(0)).toMatchObject({ unallocatedSeconds: 5 });
  });

  it('a holder whose UID nobody tells, an allowed program, or a process without a pod', () => {
    new Node().pass(10, { ...job, checkpoint: [] }, never);
    new Node().pass(10, { on: [[inPod('dcgm', 10, { name: 'nv-hostengine' }), { pid: 3, name: 'python3' }]] }, never);
  });

  it('one whose process ended: the account ends, and the GPU is free', () => {
    const node = new Node().pass(20, { on: [[inPod('thief', 5)]] }).pass(60, {});
    expect(node.users(0)).toEqual([]);
    expect(node.seconds(0, ({ endedAtMs }) => endedAtMs)).toMatchObject({ [uid('thief')]: expect.any(Number) });
    expect(node.device(0)?.unallocatedSeconds).toBeGreaterThan(55);
  });

  it('a new one while the kubelet does not answer; those that are known stay', () => {
    const problem = { reason: 'timeout', message: 'no answer' } as const;
    const node = new Node().pass(10, { held: [KAI], on: [[inPod('frac-a', 5)]] });
    node.pass(10, { held: [KAI], on: [[inPod('frac-a', 5), inPod('frac-b', 6)]], kubelet: { problem } });
    expect(node.users(0)).toEqual([uid('frac-a')]);
  });
});

describe('one id in two pods', () => {
  const held = ['notebook-1', 'notebook-2'].map((pod) => given(pod, uuid(0)));
  const on = [[inPod('notebook-1', 20_000), inPod('notebook-2', 9_000)]];
  const checkpoint = held.map(({ pod }) => ({ podUid: uid(pod), container: 'main', resource: 'nvidia.com/gpu', deviceIds: [uuid(0)] }));
  const told = (node: Node): readonly string[] =>
    node.of(0).verdict.conditions.flatMap(({ type, severity, message }) => (type === 'SameIdInPods' ? [`${severity}: ${message}`] : []));

  it('is told of the device, with both pods, and each has the memory of its processes by the Pods API', () => {
    const node = new Node().pass(70, { held, on, checkpoint, pods: [facts('notebook-1'), facts('notebook-2')] });
    expect(node.memory(0)).toEqual({ 'notebook-1': 20_000, 'notebook-2': 9_000 });
    expect(told(node)).toEqual(['info: the kubelet names one id of the device for team/notebook-1, team/notebook-2']);
    expect(node.of(0).verdict.state).toBe('healthy');
    expect(told(node.pass(10, { held: held.slice(1), on, checkpoint, pods: [facts('notebook-2')] }))).toEqual([]);
  });

  it('gives the memory to none where nothing tells the pods apart', () => {
    const node = new Node().pass(70, { held, on, checkpoint });
    expect(node.memory(0)).toEqual({});
    expect(told(node)).toHaveLength(1);
    expect(new Node().pass(10, { held: held.slice(1), on, checkpoint }).memory(0), 'one of both is listed').toEqual({});
    expect(new Node().pass(10, { held: held.slice(1), on: [[inPod('notebook-2', 9_000)]], checkpoint }).memory(0)).toEqual({
      'notebook-2': 9_000,
    });
  });

  it('gives an ended pod that is still listed nothing of the living one, and is no double allocation then', () => {
    const node = new Node().pass(70, { held, on: [[inPod('notebook-2', 9_000)]], checkpoint, pods: [facts('notebook-2')] });
    expect(node.memory(0)).toEqual({ 'notebook-2': 9_000 });
    expect(told(node)).toEqual([]);
  });

  it.each<[string, readonly Allocation[], Partial<PodResources>]>([
    ['init and app container of one pod', [given('job', uuid(0), { container: 'init' }), given('job', uuid(0))], {}],
    [
      'two containers by one claim',
      held.map((one) => ({ ...one, claim: { name: 'c', namespace: 'team', driver: 'd', pool: 'p', device: 'x' } })),
      {},
    ],
    ['replicas of one GPU', held.map((one, n) => ({ ...one, deviceId: `${uuid(0)}::${n}` })), {}],
    [
      'an allocation that is kept over a restart of the kubelet',
      held,
      {
        held: new Set(
          held.slice(0, 1).map((one) => [one.namespace, one.pod, one.container, one.resource, one.deviceId, ''].join('\u0000')),
        ),
      },
    ],
  ])('is not: %s', (_, all, kubelet) => {
    expect(told(new Node().pass(120, { held: all, kubelet }))).toEqual([]);
  });

  it('lasts for a minute before it counts', () => {
    expect(told(new Node().pass(50, { held, checkpoint }))).toEqual([]);
  });
});
