import { afterEach, describe, expect, it } from 'vitest';
import type { ListedIncident } from '../../../src/incidents/record.ts';
import type { AllocationState, Snapshot } from '../../../src/model/snapshot.ts';
import { snapshot as sample, state, TAKEN_AT_MS } from '../../metrics/sample.ts';
import { allocation, device, familyState, podResources } from '../../support/snapshots.ts';
import { type Started, start } from '../start.ts';

let started: Started | undefined;
afterEach(() => started?.server.close());

const own = allocation({ deviceId: 'a' });
const found: AllocationState = { allocation: own, devices: ['toy/a'], held: false };
const unfound = (deviceId: string, pod = 'train-0'): AllocationState => ({
  allocation: allocation({ deviceId, pod }),
  devices: [],
  unresolved: 'no-device',
  held: false,
});
const plain: Snapshot = {
  ...sample,
  devices: [state(device({ id: 'a', kind: 'gpu' }), { holders: [own] })],
  allocations: [found],
  families: [familyState('toy')],
  podResources: podResources([own], { answeredAtMs: TAKEN_AT_MS }),
  localities: [],
  waiting: [],
  usage: { containers: [], devices: [] },
};

/** What the page of the pod answers to each question. */
async function answers(part: Partial<Snapshot>, incidents: readonly ListedIncident[] = []): Promise<Record<string, string>> {
  const source = { list: () => incidents, read: () => Promise.resolve(undefined) };
  started = await start({ snapshot: () => ({ ...plain, ...part }), parts: { incidents: source } });
  const text = await (await fetch(`${started.url}/pods/ml/train-0`)).text();
  const cards = text.matchAll(/class="card answer \w*"><h2>(.*?)<\/h2><strong>(.*?)<\/strong>(?:<p class="soft">(.*?)<\/p>)?/g);
  return Object.fromEntries(
    [...cards].map(([, question, words, proof]) => [
      question,
      [words, proof]
        .filter(Boolean)
        .join(': ')
        .replace(/<\/?time.*?>/g, ''),
    ]),
  );
}

describe('whether a pod uses its devices', () => {
  it('is not known where no read tells how busy they are', async () => {
    const { namespace, pod, container, resource } = own;
    const one = {
      ...{ namespace, pod, container, resource, family: 'toy', device: 'toy/a' },
      allocatedSeconds: 7_200,
      unobservedSeconds: 0,
    };
    const usage = (busySeconds: Readonly<Record<string, number>>) =>
      ({ containers: [{ ...one, idleSeconds: 0, busySeconds }], devices: [] }) as unknown as NonNullable<Snapshot['usage']>;
    expect((await answers({ usage: usage({}) }))['Is it used?']).toBe('Not known: No read tells how busy its devices are.');
    await started?.server.close();
    expect((await answers({ usage: usage({ gpu: 0 }) }))['Is it used?']).toMatch(/^0 % busy: /);
  });
});

describe('whether the devices of a pod are well', () => {
  it('is not known while one of them was not found, however many ids of other pods come before it', async () => {
    expect((await answers({}))['Are its devices well?']).toMatch(/^Yes: /);
    await started?.server.close();
    const others = Array.from({ length: 120 }, (_, at) => unfound(`other-${at}`, 'other'));
    const told = await answers({ allocations: [found, ...others, unfound('z')] });
    expect(told['Are its devices well?']).toBe('Not known: 1 of 2 devices was not found; the rest is healthy');
    expect(told['Is its GPU near its NIC?']).toBe('Not known: A device of it was not found.');
  });

  it('is no where another one is sick', async () => {
    const sick = state(device({ id: 'a' }), { holders: [own], verdict: { state: 'unhealthy', sinceMs: 1, conditions: [] } });
    expect((await answers({ devices: [sick], allocations: [found, unfound('z')] }))['Are its devices well?']).toMatch(
      /^No: a is unhealthy/,
    );
  });
});

describe('a pod that has ended', () => {
  const { namespace, pod, container, resource } = own;
  const ended = {
    ...{ namespace, pod, container, resource, device: 'toy/a', sinceMs: 1, endedAtMs: TAKEN_AT_MS - 26_000 },
    ...{ allocatedSeconds: 60, shareSeconds: 60, busySeconds: { gpu: 30 }, idleSeconds: 30, unobservedSeconds: 0 },
  };
  const gone: Partial<Snapshot> = {
    devices: [state(device({ id: 'a', kind: 'gpu' }))],
    allocations: [],
    podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }),
    usage: { containers: [ended], devices: [] },
  };
  const record = (pods: string): ListedIncident => ({
    ...{ id: 'lost', time: '2026-03-01T11:59:32Z', device: 'toy/a', states: ['healthy', 'unhealthy'] },
    ...{ conditions: ['Xid/79', 'GpuLost'], holders: [`${pods}/main`] },
  });

  it('is told what hit it, with the record', async () => {
    expect((await answers(gone, [record('ml/train-0')]))['Are its devices well?']).toBe(
      'Ended 03-01 11:59:34, hit by:: <a href="/incidents/lost">a is lost</a>',
    );
  });

  it('is told that nothing is known to have hit it', async () => {
    expect((await answers(gone, [record('ml/train-1')]))['Are its devices well?']).toBe(
      'Ended 03-01 11:59:34: No record tells of a fault that hit it.',
    );
  });

  it('has a page for as long as a record names it', async () => {
    const forgotten = { ...gone, usage: { containers: [], devices: [] } };
    expect((await answers(forgotten, [record('ml/train-0')]))['Are its devices well?']).toContain('a is lost');
  });
});
