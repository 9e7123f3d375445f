import { describe, expect, it } from 'vitest';
import { ListPodResourcesResponse } from '../../src/generated/podresources/v1/api.ts';
import { attributionFrom } from '../../src/kubelet/allocations/allocations.ts';
import { byEntry } from '../../src/kubelet/client/entries.ts';
import { type Choose, seeded } from '../support/seeded.ts';

const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const topology = { nodes: [{ ID: 0n }, { ID: 1n }] };
const device = (deviceIds: string[]) => ({ resourceName: 'vendor.com/gpu', deviceIds, topology });
const pod = (name: string, ids: number, choose: Choose = () => 1) => ({
  name,
  namespace: 'default',
  containers: [
    {
      name: 'main',
      devices: many(ids, (at) => device([`${name}-${at}`])),
      cpuIds: many(choose(9), (at) => BigInt(at)),
      memory: many(choose(3), () => ({ memoryType: 'memory', size: 1_024n, topology })),
      dynamicResources: many(choose(3), (at) => ({
        claimName: `claim-${at}`,
        claimNamespace: 'default',
        claimResources: [{ cdiDevices: [{ name: 'a/b=c' }], driverName: 'gpu.vendor.com', poolName: 'node', deviceName: `gpu-${at}` }],
      })),
    },
  ],
});
type Pod = ReturnType<typeof pod>;
const list = (pods: readonly Pod[]): Buffer =>
  Buffer.from(ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources: [...pods] })).finish());
const joined = (answers: readonly ListPodResourcesResponse[]) =>
  attributionFrom({ podResources: answers.flatMap(({ podResources }) => podResources) });

/** Reads answers, and counts the entries that it decodes. */
function reading() {
  let decoded = 0;
  const read = byEntry((bytes) => {
    decoded += 1;
    return ListPodResourcesResponse.decode(bytes);
  }, joined);
  return { read, decoded: () => decoded };
}

/** In another order, also within a pod. */
function shuffled(pods: readonly Pod[], choose: Choose): Pod[] {
  const inAnyOrder = <T>(all: readonly T[]): T[] =>
    all
      .map((one) => [choose(1_000), one] as const)
      .sort(([a], [b]) => a - b)
      .map(([, one]) => one);
  return inAnyOrder(pods).map((one) => ({
    ...one,
    containers: one.containers.map((container) => ({ ...container, devices: inAnyOrder(container.devices) })),
  }));
}

describe('an answer that is read by its entries', () => {
  it.each(many(20, (seed) => seed + 1))('says at each step what the whole answer says (seed %i)', (seed) => {
    const choose = seeded(seed);
    const { read } = reading();
    let pods = many(1 + choose(6), (at) => pod(`p${at}`, choose(4), choose));
    for (let step = 0; step < 12; step += 1) {
      const at = choose(pods.length + 1);
      const changed = [pod(`p${choose(8)}`, choose(4), choose), ...pods.slice(at, at + choose(2))];
      pods = shuffled([...pods.slice(0, at), ...changed.slice(choose(2)), ...pods.slice(at + choose(2))], choose);
      const bytes = list(pods);
      expect(read(bytes)).toEqual(attributionFrom(ListPodResourcesResponse.decode(bytes)));
    }
  });

  it('sees each byte that changes', () => {
    const { read } = reading();
    const pods = [pod('a', 2), pod('b', 1)];
    const bytes = list(pods);
    read(bytes);
    for (const at of bytes.keys()) {
      const other = Buffer.from(bytes);
      other[at] = (other[at] as number) ^ 1;
      const outcome = (of: (bytes: Buffer) => unknown): unknown => {
        try {
          return of(other);
        } catch {
          return 'no message';
        }
      };
      const whole = outcome((all) => byEntry((entry) => ListPodResourcesResponse.decode(entry), joined)(all));
      expect(outcome(read)).toEqual(whole);
      if (whole !== 'no message') expect(whole).toEqual(attributionFrom(ListPodResourcesResponse.decode(other)));
      read(bytes);
    }
  });

  it('is the object of before while no entry came, went or changed, in any order', () => {
    const choose = seeded(1);
    const { read, decoded } = reading();
    const pods = many(5, (at) => pod(`p${at}`, 1));
    const first = read(list(pods));
    for (const _ of many(5, () => 0)) expect(read(list(shuffled(pods, choose)))).toBe(first);
    expect(decoded()).toBe(5);
    expect([read(list(pods.slice(1))), read(list([...pods, pod('p0', 1)]))]).not.toContain(first);
  });

  it('is decoded where it changed', () => {
    const { read, decoded } = reading();
    const pods = many(50, (at) => pod(`p${at}`, 1));
    read(list(pods));
    read(list([...pods.slice(1), pod('other', 1)]));
    expect(decoded()).toBe(51);
  });
});
