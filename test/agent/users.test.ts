import { describe, expect, it } from 'vitest';
import type { Allocation } from '../../src/model/allocation.ts';
import type { PodResources } from '../../src/model/pod-resources.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { facts, given, inPod, MIB, type Moment, SharedGpus, uid, uuid } from './shared-gpus.ts';

const sum = (amounts: Readonly<Record<string, number | undefined>>): number =>
  Object.values(amounts).reduce<number>((total, amount = 0) => total + amount, 0);

/** Shares add up to the allocated time of each GPU, and memory to that of its processes. */
function expectTrueSums(node: SharedGpus): void {
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
      const node = new SharedGpus().pass(1, { held, on: FRACTIONS, ...(pods && { pods }) });
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
    const node = new SharedGpus()
      .pass(101, { held })
      .pass(100, { held, on: FRACTIONS }, expectTrueSums)
      .pass(100, { held }, expectTrueSums);
    const shares = node.seconds(0, ({ shareSeconds }) => Math.round(shareSeconds));
    expect(shares).toEqual({ [KAI.pod]: 200, [uid('frac-a')]: 50, [uid('frac-b')]: 50 });
    const whole = ({ idleSeconds, unobservedSeconds, delegatedSeconds = 0, allocatedSeconds }: ContainerUsage): number =>
      allocatedSeconds - idleSeconds - unobservedSeconds - delegatedSeconds;
    expect(Math.abs(sum(node.seconds(0, whole)))).toBeLessThan(2);
  });

  it('and a process outside of pods is a stranger as ever, and so is a pod on the GPU beside', () => {
    const node = new SharedGpus().pass(70, { held, on: [[...(FRACTIONS[0] ?? []), { pid: 7, name: 'xmrig' }], [inPod('frac-a', 10)]] });
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
    const node = new SharedGpus().pass(1, { held, on }).pass(400, { held, on }, expectTrueSums);
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
    const node = new SharedGpus().pass(70, { held, on: [[], [...(on[1] ?? []), inPod('other', 10)]], pods: [facts('other')] });
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
    const node = new SharedGpus().pass(1, { held, on }).pass(100, { held, on }, expectTrueSums);
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
      const node = new SharedGpus({ holders, ids }).pass(70, { held, on: [on[0] ?? []], pods });
      expect(node.conditions(0)).toEqual([]);
      expect(new SharedGpus({ holders: ['team/x*', 'role=keep'], ids: [] }).pass(70, { held, on, pods }).conditions(0)).toEqual([
        'HeldByStranger',
      ]);
    }
    const own = [given('thief', 'slice-1', { resource: 'example.com/slice' })];
    for (const ids of [['example.com/slice'], ['example.com/slice:slice-*']])
      expect(new SharedGpus({ holders: [], ids }).pass(70, { held: own, on: [[], on[1] ?? []] }).conditions(1)).toEqual([]);
  });

  it('is the one whose processes use the GPU although its id leads to no device: an account, and no accusation', () => {
    const own = [given('thief', 'slice-1', { resource: 'example.com/slice' })];
    const node = new SharedGpus().pass(101, { held: own, on: [[], on[1] ?? []] }, () => {});
    expect(node.conditions(1)).toEqual([]);
    expect(node.memory(1)).toEqual({ [uid('thief')]: 30 });
    expect(node.device(1)).toMatchObject({ allocatedSeconds: 100, unallocatedSeconds: 0 });
  });
});

describe('no user is', () => {
  const job: Moment = { held: [given('job', uuid(0))], on: [[inPod('job', 100)]] };
  const never = (node: SharedGpus): void => expect(node.users(0)).toEqual([]);

  it('the holder, whose process is read before the answer of the kubelet comes', () => {
    const late = { ...job, held: [], kubelet: { answeredMonotonicMs: 500 } };
    new SharedGpus().pass(1, {}, never).pass(3, late, never).pass(10, job, never);
  });

  it('the earlier holder, in a read from before its end', () => {
    const node = new SharedGpus().pass(10, job, never);
    node.pass(1, { on: [[inPod('job', 100)]] }, never);
    node.pass(5, {}, never);
    expect(node.device(0)).toMatchObject({ unallocatedSeconds: 5 });
  });

  it('a holder whose UID nobody tells, an allowed program, or a process without a pod', () => {
    new SharedGpus().pass(10, { ...job, checkpoint: [] }, never);
    new SharedGpus().pass(10, { on: [[inPod('dcgm', 10, { name: 'nv-hostengine' }), { pid: 3, name: 'python3' }]] }, never);
  });

  it('one whose process ended: the account ends, and the GPU is free', () => {
    const node = new SharedGpus().pass(20, { on: [[inPod('thief', 5)]] }).pass(60, {});
    expect(node.users(0)).toEqual([]);
    expect(node.seconds(0, ({ endedAtMs }) => endedAtMs)).toMatchObject({ [uid('thief')]: expect.any(Number) });
    expect(node.device(0)?.unallocatedSeconds).toBeGreaterThan(55);
  });

  it('a new one while the kubelet does not answer; those that are known stay', () => {
    const problem = { reason: 'timeout', message: 'no answer' } as const;
    const node = new SharedGpus().pass(10, { held: [KAI], on: [[inPod('frac-a', 5)]] });
    node.pass(10, { held: [KAI], on: [[inPod('frac-a', 5), inPod('frac-b', 6)]], kubelet: { problem } });
    expect(node.users(0)).toEqual([uid('frac-a')]);
  });
});

describe('one id in two pods', () => {
  const held = ['notebook-1', 'notebook-2'].map((pod) => given(pod, uuid(0)));
  const on = [[inPod('notebook-1', 20_000), inPod('notebook-2', 9_000)]];
  const checkpoint = held.map(({ pod }) => ({ podUid: uid(pod), container: 'main', resource: 'nvidia.com/gpu', deviceIds: [uuid(0)] }));
  const told = (node: SharedGpus): readonly string[] =>
    node.of(0).verdict.conditions.flatMap(({ type, severity, message }) => (type === 'SameIdInPods' ? [`${severity}: ${message}`] : []));

  it('is told of the device, with both pods, and each has the memory of its processes by the Pods API', () => {
    const node = new SharedGpus().pass(70, { held, on, checkpoint, pods: [facts('notebook-1'), facts('notebook-2')] });
    expect(node.memory(0)).toEqual({ 'notebook-1': 20_000, 'notebook-2': 9_000 });
    expect(told(node)).toEqual(['info: the kubelet names one id of the device for team/notebook-1, team/notebook-2']);
    expect(node.of(0).verdict.state).toBe('healthy');
    expect(told(node.pass(10, { held: held.slice(1), on, checkpoint, pods: [facts('notebook-2')] }))).toEqual([]);
  });

  it('gives the memory to none where nothing tells the pods apart', () => {
    const node = new SharedGpus().pass(70, { held, on, checkpoint });
    expect(node.memory(0)).toEqual({});
    expect(told(node)).toHaveLength(1);
    expect(new SharedGpus().pass(10, { held: held.slice(1), on, checkpoint }).memory(0), 'one of both is listed').toEqual({});
    expect(new SharedGpus().pass(10, { held: held.slice(1), on: [[inPod('notebook-2', 9_000)]], checkpoint }).memory(0)).toEqual({
      'notebook-2': 9_000,
    });
  });

  it('gives an ended pod that is still listed nothing of the living one, and is no double allocation then', () => {
    const node = new SharedGpus().pass(70, { held, on: [[inPod('notebook-2', 9_000)]], checkpoint, pods: [facts('notebook-2')] });
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
    expect(told(new SharedGpus().pass(120, { held: all, kubelet }))).toEqual([]);
  });

  it('lasts for a minute before it counts', () => {
    expect(told(new SharedGpus().pass(50, { held, checkpoint }))).toEqual([]);
  });
});
