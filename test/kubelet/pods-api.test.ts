import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { afterEach, describe, expect, it } from 'vitest';
import { LabeledMeta, ListPodsResponse, ObjectMeta } from '../../src/generated/pods/v1alpha1/api.ts';
import { podsApiOptions } from '../../src/kubelet/options.ts';
import { PodsReader, podFactsFrom } from '../../src/kubelet/pods/reader.ts';
import { defaultValues } from '../../src/model/options.ts';
import { ManualClock } from './support/manual-clock.ts';
import { temporaryDirectory } from './support/node.ts';
import { encodedPod, listOf, NOT_READY, SECRET, TestPodsApi } from './support/pods-api.ts';

const endings: (() => unknown)[] = [];

afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

function setUp(options: { readonly 'max-message-bytes'?: number } = {}, labels: readonly string[] = []) {
  const api = new TestPodsApi(temporaryDirectory());
  const clock = new ManualClock();
  const seen = { changes: 0, problems: [] as (string | undefined)[], ready: 0 };
  const reader = new PodsReader({
    options: { ...defaultValues(podsApiOptions), socket: api.socket, ...options },
    labels,
    clock,
    onChange: () => {
      seen.changes += 1;
    },
    onReady: () => {
      seen.ready += 1;
    },
    onProblem: (message) => seen.problems.push(message?.replace(api.socket, 'socket')),
  });
  endings.push(
    () => api.close(),
    () => reader.close(),
  );
  const uids = (): string[] => [...reader.current().values()].map(({ uid }) => uid).sort();
  return { api, clock, reader, seen, uids };
}

describe('facts of pods in an answer of the Pods API', () => {
  const facts = (...pods: readonly Uint8Array[]) => [...podFactsFrom(ListPodsResponse.decode(listOf(...pods))).values()];

  it('are UID, phase, and created containers', () => {
    const pod = encodedPod('train', 'uid-1', {
      containerStatuses: [{ name: 'main', containerId: `containerd://${'a'.repeat(64)}` }, { name: 'waits' }],
      initContainerStatuses: [{ name: 'proxy', containerId: `cri-o://${'b'.repeat(64)}` }],
    });
    expect(facts(pod)).toEqual([
      {
        namespace: 'ml',
        pod: 'train',
        uid: 'uid-1',
        phase: 'Running',
        containers: [
          { name: 'proxy', id: 'b'.repeat(64) },
          { name: 'main', id: 'a'.repeat(64) },
        ],
      },
    ]);
  });

  it('are the extended resource of each container that has exactly one', () => {
    const container = (name: string, limits: Readonly<Record<string, string>>) => ({
      name,
      resources: { limits: Object.fromEntries(Object.entries(limits).map(([resource, text]) => [resource, { text }])) },
    });
    const initContainers = [container('proxy', { 'deviceclass.resource.kubernetes.io/nic': '2' })];
    const containers = [
      container('one', { cpu: '1', 'hugepages-2Mi': '2Mi', 'kubernetes.io/x': '1', 'requests.example.com/x': '1', 'example.com/gpu': '1' }),
      container('two', { 'example.com/gpu': '1', 'example.com/nic': '1' }),
      container('zero', { 'example.com/gpu': '1', 'example.com/nic': '0' }),
      container('none', { cpu: '1', 'example.com/gpu': '0' }),
    ];
    const extended = (resourceClaims: readonly { name: string; resourceClaimName?: string }[], name = 'train') =>
      facts(encodedPod(name, 'uid-1', {}, { initContainers, containers, resourceClaims: [...resourceClaims] }))[0]?.extended;
    const all = [
      { container: 'proxy', resource: 'deviceclass.resource.kubernetes.io/nic' },
      { container: 'one', resource: 'example.com/gpu' },
      { container: 'zero', resource: 'example.com/gpu' },
    ];
    expect(extended([])).toEqual(all);
    expect(extended([{ name: 'data' }, { name: 'own', resourceClaimName: 'train-extended-resources' }])).toEqual(all);
    // The pod's own claim has a name of the same form, so it cannot be told from the scheduler's.
    expect(extended([{ name: 'extended-resources' }])).toBeUndefined();
    expect(extended([{ name: 'own', resourceClaimName: 'train-extended-resources-abcde' }])).toBeUndefined();
    expect(extended([{ name: 'data' }], 'x'.repeat(60))).toBeUndefined();
  });

  it('have nothing of the specification', () => {
    const answer = listOf(encodedPod('train', 'uid-1'));
    expect(answer.toString('latin1')).toContain(SECRET);
    expect(JSON.stringify(ListPodsResponse.decode(answer))).not.toContain(SECRET);
  });

  it('are those of the live pod of a name, and of none while two live pods have the name', () => {
    const ended = ['Succeeded', 'Failed'].map((phase) => encodedPod('train', `uid-${phase}`, { phase }));
    expect(facts(...ended, encodedPod('train', 'uid-2')).map(({ uid }) => uid)).toEqual(['uid-2']);
    expect(facts(encodedPod('train', 'uid-2'), encodedPod('train', 'uid-3'), encodedPod('other', 'uid-4')).map(({ uid }) => uid)).toEqual([
      'uid-4',
    ]);
  });
});

describe('labels of pods', () => {
  const pod = (name: string, uid: string, labels: Readonly<Record<string, string>>): Uint8Array => {
    const known = ObjectMeta.encode({ name, namespace: 'ml', uid }).finish();
    const metadata = Buffer.concat([known, LabeledMeta.encode(LabeledMeta.fromPartial({ labels })).finish()]);
    return new BinaryWriter().uint32(10).bytes(metadata).finish();
  };
  const ALL = { team: 'vision', secret: 'label-that-nobody-asked-for', long: 'x'.repeat(100) };

  it('are read only where the configuration names them, and are cut', async () => {
    const { api, reader } = setUp({}, ['team', 'long', 'toString']);
    api.says(pod('train', 'uid-1', ALL), pod('other', 'uid-2', { secret: 'x' }));
    await api.start();
    await reader.refresh();
    expect([...reader.current().values()].map(({ uid, labels }) => [uid, labels])).toEqual([
      ['uid-1', { team: 'vision', long: 'x'.repeat(63) }],
      ['uid-2', undefined],
    ]);
  });

  it('are not read by default', async () => {
    const { api, reader } = setUp();
    api.says(pod('train', 'uid-1', ALL));
    await api.start();
    await reader.refresh();
    expect([...reader.current().values()]).toEqual([{ namespace: 'ml', pod: 'train', uid: 'uid-1', phase: '', containers: [] }]);
  });
});

describe('the reader of the Pods API', () => {
  it('tells facts, and only once the same ones', async () => {
    const { api, reader, seen, uids } = setUp();
    api.says(encodedPod('train', 'uid-1'));
    await api.start();
    expect(reader.isUp).toBeUndefined();
    for (let round = 0; round < 3; round++) await reader.refresh();
    expect(uids()).toEqual(['uid-1']);
    expect(reader.isUp).toBe(true);
    expect(seen).toMatchObject({ changes: 1, problems: [] });
  });

  it('goes on without them where there is no socket, and says so once', async () => {
    const { api, reader, seen, uids } = setUp();
    for (let round = 0; round < 3; round++) await reader.refresh();
    expect(uids()).toEqual([]);
    expect(reader.isUp).toBe(false);
    expect(seen).toMatchObject({ changes: 0, problems: ['socket: no such socket'] });
    api.says(encodedPod('train', 'uid-1'));
    await api.start();
    await reader.refresh();
    expect(uids()).toEqual(['uid-1']);
    expect(seen).toEqual({ changes: 1, problems: ['socket: no such socket', undefined], ready: 0 });
  });

  it('keeps them while a kubelet starts again, and no longer than 30 s', async () => {
    const { api, clock, reader, seen, uids } = setUp();
    api.says(encodedPod('train', 'uid-1'));
    await api.start();
    await reader.refresh();
    await api.stop();
    await reader.refresh();
    expect(uids()).toEqual(['uid-1']);
    api.refuses(NOT_READY, 'Kubelet is initializing');
    await api.start();
    clock.advance(29_999);
    await reader.refresh();
    expect(uids()).toEqual(['uid-1']);
    clock.advance(1);
    await reader.refresh();
    expect(uids()).toEqual([]);
    api.says(encodedPod('train', 'uid-2'));
    await reader.refresh();
    expect(uids()).toEqual(['uid-2']);
    expect(seen.problems).toEqual([
      'socket: no process listens on the socket (ECONNREFUSED)',
      'socket: the kubelet does not know all its pods yet',
      undefined,
    ]);
  });

  it('keeps those that a kubelet lacks after its start, and believes it where it has any', async () => {
    const { api, clock, reader, uids } = setUp();
    api.says(encodedPod('train', 'uid-1'), encodedPod('other', 'uid-2'));
    await api.start();
    await reader.refresh();
    api.says();
    await api.start();
    await reader.refresh();
    expect(uids()).toEqual(['uid-1', 'uid-2']);
    api.says(encodedPod('other', 'uid-3'));
    await reader.refresh();
    expect(uids()).toEqual(['uid-1', 'uid-3']);
    clock.advance(30_000);
    await reader.refresh();
    expect(uids()).toEqual(['uid-3']);
  });

  it('asks after a change, then more and more rarely, and at each look while it has no answer', async () => {
    const { api, clock, reader } = setUp();
    await api.start();
    const askedAt = async (seconds: number): Promise<number[]> => {
      const asked: number[] = [];
      for (let second = 1; second <= seconds; second += 1) {
        clock.advance(1_000);
        const before = api.calls;
        reader.look(false);
        await reader.idle();
        if (api.calls > before) asked.push(second);
      }
      return asked;
    };
    reader.look(true);
    await reader.idle();
    expect(await askedAt(100)).toEqual([2, 6, 14, 30, 60, 90]);
    reader.look(true);
    await reader.idle();
    expect(await askedAt(5)).toEqual([2]);
    api.refuses(NOT_READY);
    expect(await askedAt(6)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('counts 30 s from the last look at which nothing had changed, and tells when a kubelet that began knows its pods', async () => {
    const { api, clock, reader, seen, uids } = setUp();
    api.says(encodedPod('train', 'uid-1'));
    await api.start();
    for (let second = 0; second < 60; second += 1) {
      reader.look(second === 0);
      await reader.idle();
      clock.advance(1_000);
    }
    api.refuses(NOT_READY);
    clock.advance(28_999);
    reader.look(true);
    await reader.idle();
    expect(uids()).toEqual(['uid-1']);
    clock.advance(1);
    reader.look(false);
    await reader.idle();
    expect(uids()).toEqual([]);
    expect(seen.ready).toBe(0);
    api.says(encodedPod('train', 'uid-2'));
    for (let round = 0; round < 2; round += 1) await reader.refresh();
    expect(uids()).toEqual(['uid-2']);
    expect(seen.ready).toBe(1);
  });

  it.each([
    [12, 'unknown service v1alpha1.Pods', 'socket: the kubelet does not serve the Pods API'],
    [8, 'rejected by rate limit', "socket: ListPods: rejected by the kubelet's rate limit"],
    [2, 'PodsAPI disabled', 'socket: ListPods: UNKNOWN PodsAPI disabled'],
  ])('names status %i "%s"', async (code, details, problem) => {
    const { api, reader, seen } = setUp();
    api.refuses(code, details);
    await api.start();
    await reader.refresh();
    expect(seen.problems).toEqual([problem]);
  });

  it('refuses an answer that is too large', async () => {
    const { api, reader, seen } = setUp({ 'max-message-bytes': 65_536 });
    api.says(encodedPod('x'.repeat(70_000), 'uid-1'));
    await api.start();
    await reader.refresh();
    expect(seen.problems).toEqual(['socket: the answer is larger than 32 MiB']);
  });

  it('asks once more after a run that may have missed a pod, however often it was called meanwhile', async () => {
    const { api, reader, uids } = setUp();
    api.says(encodedPod('train', 'uid-1'));
    await api.start();
    const release = api.hold();
    const first = reader.refresh();
    await expect.poll(() => api.calls).toBe(1);
    api.says(encodedPod('train', 'uid-1'), encodedPod('new', 'uid-2'));
    for (let call = 0; call < 5; call++) void reader.refresh();
    release();
    await first;
    expect(api.calls).toBe(2);
    expect(uids()).toEqual(['uid-1', 'uid-2']);
  });
});
