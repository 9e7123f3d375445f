import { describe, expect, it } from 'vitest';
import { type DeepPartial, ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { attributionFrom } from '../../src/kubelet/allocations.ts';
import { ListReader } from '../../src/kubelet/list-reader.ts';

type Pod = NonNullable<DeepPartial<ListPodResourcesResponse>['podResources']>[number];

const encoded = (...podResources: Pod[]): Uint8Array =>
  ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources })).finish();
const device = (id: string, node = 0) => ({ resourceName: 'vendor.com/gpu', deviceIds: [id], topology: { nodes: [{ ID: node }] } });
const pod = (name: string, ...ids: string[]): Pod => ({
  namespace: 'ml',
  name,
  containers: [{ name: 'main', devices: ids.map((id) => device(id)), cpuIds: [1, 2], memory: [{ memoryType: 'memory', size: 1n << 40n }] }],
});
/** What the reader must give, whatever it was told before. */
const fresh = (bytes: Uint8Array) => attributionFrom(ListPodResourcesResponse.decode(bytes));

/** Every pair of answers in both orders, each compared with a reading that knows nothing. */
const answers: readonly (readonly [string, Uint8Array])[] = [
  ['no pods', encoded()],
  ['two pods', encoded(pod('a', 'gpu-0'), pod('b', 'gpu-1'))],
  ['the two in the other order', encoded(pod('b', 'gpu-1'), pod('a', 'gpu-0'))],
  ['their devices exchanged, in as many bytes', encoded(pod('a', 'gpu-1'), pod('b', 'gpu-0'))],
  ['one device gone over to the other', encoded(pod('a', 'gpu-0', 'gpu-1'), pod('b'))],
  ['one pod twice', encoded(pod('a', 'gpu-0'), pod('a', 'gpu-0'))],
  ['one pod twice, with other devices', encoded(pod('a', 'gpu-0'), pod('a', 'gpu-1'))],
  ['one pod twice and another', encoded(pod('a', 'gpu-0'), pod('a', 'gpu-0'), pod('b', 'gpu-1'))],
  ['that other twice and the one once', encoded(pod('b', 'gpu-1'), pod('a', 'gpu-0'), pod('b', 'gpu-1'))],
  ['two devices', encoded(pod('a', 'gpu-0', 'gpu-1'))],
  ['two devices in the other order', encoded(pod('a', 'gpu-1', 'gpu-0'))],
  ['another NUMA node', encoded({ namespace: 'ml', name: 'a', containers: [{ name: 'main', devices: [device('gpu-0', 1)] }] })],
  ['a field of a later version', Buffer.concat([encoded(pod('a', 'gpu-0')), Buffer.from([0x12, 0x01, 0x41])])],
];

describe('answers read one after the other', () => {
  it.each(answers)('say of "%s" what it says, whatever was said before', (_, bytes) => {
    for (const [before, other] of answers) {
      const reader = new ListReader();
      for (const answer of [other, bytes, other, bytes, bytes]) expect(reader.read(answer), `after ${before}`).toEqual(fresh(answer));
    }
  });

  it('are the same object while they say the same in any order', () => {
    const reader = new ListReader();
    const names = Array.from({ length: 50 }, (_, n) => `pod-${n}`);
    const inOrder = (order: readonly string[], turn: number) =>
      encoded(...order.map((name) => (turn % 2 === 0 ? pod(name, `${name}-0`, `${name}-1`) : pod(name, `${name}-1`, `${name}-0`))));
    const first = reader.read(inOrder(names, 0));
    for (let turn = 1; turn < 20; turn += 1) {
      const shuffled = names.toSorted((a, b) => ((a.length * 31 + a.charCodeAt(4) * turn) % 17) - ((b.charCodeAt(4) * turn) % 17));
      expect(reader.read(inOrder(shuffled, turn))).toBe(first);
    }
    expect(reader.read(inOrder(names.slice(1), 0))).not.toBe(first);
  });

  it('follow a device from pod to pod', () => {
    const reader = new ListReader();
    for (let turn = 0; turn < 30; turn += 1) {
      const pods = Array.from({ length: 7 }, (_, n) => (n === turn % 7 ? pod(`p${n}`, 'gpu-0') : pod(`p${n}`, `own-${n}`)));
      const holders = reader.read(encoded(...pods)).allocations.filter(({ deviceId }) => deviceId === 'gpu-0');
      expect(holders.map((allocation) => allocation.pod)).toEqual([`p${turn % 7}`]);
    }
  });

  it.each([
    ['cut off', encoded(pod('a', 'gpu-0')).subarray(0, 20)],
    ['broken within a pod', Buffer.concat([encoded(pod('a', 'gpu-0')), Buffer.from([0x0a, 0x02, 0x0a, 0x05])])],
    ['without an end of a length', Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
  ])('are refused when they are %s, and nothing old is given for them', (_, broken) => {
    const reader = new ListReader();
    const good = encoded(pod('a', 'gpu-0'));
    reader.read(good);
    expect(() => reader.read(broken)).toThrow();
    expect(reader.read(good)).toEqual(fresh(good));
  });
});
