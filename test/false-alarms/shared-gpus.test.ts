import { describe, expect, it } from 'vitest';
import { facts, given, inPod, SharedGpus, uid, uuid } from '../agent/shared-gpus.ts';

const RESERVATION = given('gpu-reservation-node1-abcde', uuid(0), {
  namespace: 'kai-resource-reservation',
  container: 'resource-reservation',
});
const FRACTIONS = [[inPod('frac-a', 20_000), inPod('frac-b', 9_000)]];

describe('KAI-Scheduler 1528 and 423', () => {
  it('two pods on a GPU that a reservation pod holds', () => {
    const node = new SharedGpus();
    for (let minute = 0; minute < 10; minute += 1) {
      node.pass(60, { held: [RESERVATION], on: FRACTIONS });
      expect([node.of(0).verdict.state, ...node.conditions(0)]).toEqual(['healthy']);
    }
    expect(node.memory(0)).toEqual({ [uid('frac-a')]: 20_000, [uid('frac-b')]: 9_000 });
    const shares = node.seconds(0, ({ shareSeconds }) => Math.round(shareSeconds));
    expect(shares).toEqual({ [RESERVATION.pod]: 1, [uid('frac-a')]: 299, [uid('frac-b')]: 299 });
  });
});

describe('HAMi and Volcano', () => {
  it('two pods on the GPU that their scheduler chose, which their ids do not name', () => {
    for (const part of [{}, { resource: 'volcano.sh/vgpu-number' }]) {
      const held = ['a', 'b'].map((pod, n) => given(pod, `${uuid(0)}-${n}`, part));
      const node = new SharedGpus().pass(300, { held, on: [[], [inPod('a', 10), inPod('b', 20)]] });
      expect([0, 1].map((gpu) => [node.of(gpu).verdict.state, ...node.conditions(gpu)])).toEqual([['healthy'], ['healthy']]);
      expect(node.snapshot?.allocations.filter(({ unresolved }) => unresolved !== undefined)).toEqual([]);
    }
  });
});

describe('kubernetes 137534 and 75880', () => {
  it('one id of a GPU in two running pods', () => {
    const held = ['notebook-1', 'notebook-2'].map((pod) => given(pod, uuid(0)));
    const on = [[inPod('notebook-1', 20_000), inPod('notebook-2', 9_000)]];
    const checkpoint = held.map(({ pod }) => ({ podUid: uid(pod), container: 'main', resource: 'nvidia.com/gpu', deviceIds: [uuid(0)] }));
    expect(new SharedGpus().pass(10, { held, on, checkpoint }).memory(0)).toEqual({});
    const node = new SharedGpus().pass(70, { held, on, checkpoint, pods: [facts('notebook-1'), facts('notebook-2')] });
    expect(node.memory(0)).toEqual({ 'notebook-1': 20_000, 'notebook-2': 9_000 });
    expect(node.of(0).verdict).toMatchObject({ state: 'healthy', conditions: [{ type: 'SameIdInPods', severity: 'info' }] });
  });
});

describe('kubernetes 138446', () => {
  it('a device of an init and an app container, whose pod the kubelet refuses after a restart', () => {
    const held = ['init-device-check', 'app'].map((container) => given('job', uuid(0), { container }));
    const on = [[inPod('job', 500)]];
    const node = new SharedGpus().pass(120, { held, on });
    expect([node.of(0).verdict.state, ...node.conditions(0)]).toEqual(['healthy']);
    // The kubelet forgets the pod, and its process runs on.
    node.pass(120, { on });
    expect(node.conditions(0)).toContain('DirtyAfterUse');
    expect(node.users(0)).toEqual([uid('job')]);
    expect(node.device(0)?.unallocatedSeconds).toBeLessThan(3);
    node.pass(120, {});
    expect([node.of(0).verdict.state, ...node.conditions(0)]).toEqual(['healthy']);
    expect(node.device(0)?.unallocatedSeconds).toBeGreaterThan(115);
  });
});
