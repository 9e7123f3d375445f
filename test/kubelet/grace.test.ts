import { describe, expect, it } from 'vitest';
import { keepThroughRestart, withoutForgotten } from '../../src/kubelet/allocations/allocations.ts';
import type { Allocation } from '../../src/model/allocation.ts';

/** `pod/container resource id`, with `claim` behind it for one of a ResourceClaim. */
function allocation(text: string): Allocation {
  const [where = '', resource = '', deviceId = '', claimed] = text.split(' ');
  const [pod = '', container = ''] = where.split('/');
  const allocation = { namespace: 'ml', pod, container, resource, deviceId, numaNodes: [] };
  if (claimed === undefined) return allocation;
  return { ...allocation, claim: { name: 'c', namespace: 'ml', driver: resource, pool: 'p', device: deviceId } };
}

const attribution = (...texts: readonly string[]) => ({ allocations: texts.map(allocation), exclusive: [], podExclusive: [] });

describe('an answer soon after a restart of the kubelet', () => {
  it.each([
    ['keeps what an empty answer does not have', ['p/c gpu 0'], [], ['p/c gpu 0 held']],
    ['keeps no second copy of what came back', ['p/c gpu 0'], ['p/c gpu 0'], ['p/c gpu 0']],
    ['takes in what is new', ['p/c gpu 0'], ['q/c gpu 1'], ['p/c gpu 0 held', 'q/c gpu 1']],
    ['believes a container that now has another device of the resource', ['p/c gpu 0'], ['p/c gpu 1'], ['p/c gpu 1']],
    [
      'keeps the other resources of a container that is back with one of them',
      ['p/c gpu 0', 'p/c nic 0'],
      ['p/c gpu 0'],
      ['p/c gpu 0', 'p/c nic 0 held'],
    ],
    ['gives no device two holders', ['p/c gpu 0'], ['q/c gpu 0'], ['q/c gpu 0']],
    ['lets a claimed device be shared by several', ['p/c d p/0 claim'], ['q/c d p/0 claim'], ['p/c d p/0 held', 'q/c d p/0']],
  ])('%s', (_, before, answer, expected) => {
    const { allocations, held } = keepThroughRestart(attribution(...before), attribution(...answer));
    const told = allocations.map(({ namespace, pod, container, resource, deviceId }) => {
      const isHeld = held.has([namespace, pod, container, resource, deviceId, ''].join('\u0000'));
      return `${pod}/${container} ${resource} ${deviceId}${isHeld ? ' held' : ''}`;
    });
    expect(told).toEqual(expected);
  });

  it('keeps exclusive CPUs too, and believes the answer where it has any', () => {
    const cpus = (pod: string, ...cpus: number[]) => ({ namespace: 'ml', pod, container: 'c', cpus, memory: [] });
    const before = { ...attribution(), exclusive: [cpus('p', 1), cpus('q', 2)] };
    const { exclusive } = keepThroughRestart(before, { ...attribution(), exclusive: [cpus('q', 3)] });
    expect(exclusive).toEqual([cpus('p', 1), cpus('q', 3)]);
  });

  it('keeps those of pods, until the answer names one of their CPUs on either level', () => {
    const cpus = (pod: string, ...ids: number[]) => ({ namespace: 'ml', pod, cpus: ids, memory: [] });
    const before = { ...attribution(), podExclusive: [cpus('p', 1, 2), cpus('q', 3, 4), cpus('r', 5)] };
    const answer = { ...attribution(), exclusive: [{ ...cpus('new', 2), container: 'main' }], podExclusive: [cpus('other', 4)] };
    expect(keepThroughRestart(before, answer).podExclusive).toEqual([cpus('other', 4), cpus('r', 5)]);
  });

  it('gives no exclusive CPU two owners', () => {
    const cpus = (pod: string, ...cpus: number[]) => ({ namespace: 'ml', pod, container: 'c', cpus, memory: [] });
    const before = { ...attribution(), exclusive: [cpus('ended', 1, 2), cpus('p', 3)] };
    const { exclusive } = keepThroughRestart(before, { ...attribution(), exclusive: [cpus('new', 2, 4)] });
    expect(exclusive).toEqual([cpus('new', 2, 4), cpus('p', 3)]);
  });
});

describe('a held pod of which the kubelet has forgotten a device', () => {
  const after = (before: readonly string[], answer: readonly string[], ...forgotten: readonly string[]): string[] => {
    const kept = keepThroughRestart(attribution(...before), attribution(...answer));
    const { allocations, held } = withoutForgotten(kept, ({ deviceId }) => !forgotten.includes(deviceId));
    expect(held.size).toBeLessThanOrEqual(allocations.length);
    return allocations.map(({ pod, container, resource, deviceId }) => `${pod}/${container} ${resource} ${deviceId}`);
  };

  it.each([
    ['has ended, with all it had', ['p/c gpu 0', 'p/d nic 0', 'p/c d p/0 claim'], [], ['0'], []],
    ['leaves the others', ['p/c gpu 0', 'q/c gpu 1'], [], ['0'], ['q/c gpu 1']],
    ['leaves a successor of its name', ['p/c gpu 0'], ['p/d gpu 1'], ['0'], ['p/d gpu 1']],
    ['is not one that only has a claim', ['p/c d p/0 claim'], [], ['p/0'], ['p/c d p/0']],
    ['is not one that is listed', ['p/c gpu 0'], ['p/c gpu 0'], ['0'], ['p/c gpu 0']],
  ])('%s', (_, before, answer, forgotten, expected) => {
    expect(after(before, answer, ...forgotten)).toEqual(expected);
  });

  it('gives its exclusive CPUs back, unless a successor of its name is listed', () => {
    const cpus = (pod: string, ...ids: number[]) => ({ namespace: 'ml', pod, container: 'c', cpus: ids, memory: [] });
    const before = { ...attribution('p/c gpu 0', 'q/c gpu 1'), exclusive: [cpus('p', 1), cpus('q', 2)], podExclusive: [cpus('p', 1)] };
    const left = (...answer: readonly string[]) =>
      withoutForgotten(keepThroughRestart(before, attribution(...answer)), ({ deviceId }) => deviceId !== '0');
    expect(left()).toMatchObject({ exclusive: [cpus('q', 2)], podExclusive: [] });
    expect(left('p/d gpu 2')).toMatchObject({ exclusive: [cpus('p', 1), cpus('q', 2)], podExclusive: [cpus('p', 1)] });
  });
});
