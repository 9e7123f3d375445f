import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import {
  GetPodResourcesRequest,
  ListPodResourcesRequest,
  PodResourcesListerService as v1,
} from '../../src/generated/podresources/v1/api.ts';
import { PodResourcesListerService as v1alpha1 } from '../../src/generated/podresources/v1alpha1/api.ts';
import { connectErrno, socketAt } from '../../src/host/fs/socket-file.ts';
import type { Method } from '../../src/host/grpc-connection.ts';
import { podV1 } from '../../src/sim/kubelet/encode.ts';
import type { SimulatedPod } from '../../src/sim/kubelet/pods.ts';
import type { TestKubelet } from '../support/kubelet/kubelet.ts';
import { KUBELET_RATE } from '../support/kubelet/rate-limit.ts';
import { ManualClock } from './support/manual-clock.ts';
import { gpuPod, makeNode } from './support/node.ts';

const clients: Client[] = [];
afterEach(() => clients.splice(0).forEach((client) => void client.close()));

/** The answer, or the status where it failed. */
async function ask<Request, Response>(kubelet: TestKubelet, method: Method<Request, Response>, request: Request) {
  const client = new Client(`unix:${kubelet.podResourcesSocket}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  clients.push(client);
  return new Promise<{ answer?: Response; error?: Pick<ServiceError, 'code' | 'details'> }>((resolve) => {
    client.makeUnaryRequest(method.path, method.requestSerialize, method.responseDeserialize, request, (error, answer) =>
      resolve(error === null ? (answer === undefined ? {} : { answer }) : { error: { code: error.code, details: error.details } }),
    );
  });
}

const LIST = ListPodResourcesRequest.create();
const gpu = (id: string, numaNodes?: number[]) => ({ resource: 'vendor.com/gpu', id, ...(numaNodes === undefined ? {} : { numaNodes }) });
const oneContainer = (...devices: ReturnType<typeof gpu>[]): SimulatedPod => ({
  namespace: 'n',
  name: 'p',
  uid: 'u',
  containers: [{ name: 'c', devices }],
});

describe('the simulated kubelet, like the real one', () => {
  it('writes NUMA node 0 as a message without content', () => {
    const answer = { podResources: [podV1(oneContainer(gpu('a', [0])), Math.random)] };
    // Field 3 (topology) of two bytes: field 1 (a node) of none.
    expect(v1.list.responseSerialize(answer).includes(Buffer.from([0x1a, 0x02, 0x0a, 0x00]))).toBe(true);
  });

  it('answers in another order each time', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    for (let pod = 0; pod < 20; pod += 1) kubelet.admitPod(gpuPod(`p${pod}`));
    const orders = new Set<string>();
    for (let round = 0; round < 5; round += 1) {
      const { answer } = await ask(kubelet, v1.list, LIST);
      orders.add(answer?.podResources.map(({ name }) => name).join() ?? '');
    }
    expect(orders.size).toBeGreaterThan(1);
  });

  it('lists sidecars first, and no init containers', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    const containers = [{ name: 'main' }, { name: 'setup', kind: 'init' as const }, { name: 'proxy', kind: 'sidecar' as const }];
    kubelet.admitPod({ namespace: 'n', name: 'p', uid: '1', containers });
    const { answer } = await ask(kubelet, v1.list, LIST);
    expect(answer?.podResources.map((pod) => pod.containers.map(({ name }) => name))).toEqual([['proxy', 'main']]);
  });

  it('repeats the CDI names of a driver in each of its later devices', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    const devices = ['a', 'b'].map((device) => ({ driver: 'd', pool: 'p', device }));
    kubelet.admitPod({
      namespace: 'n',
      name: 'p',
      uid: 'u',
      containers: [{ name: 'c', claims: [{ name: 'k', namespace: 'n', devices }] }],
    });
    const { answer } = await ask(kubelet, v1.list, LIST);
    const claim = answer?.podResources[0]?.containers[0]?.dynamicResources[0];
    expect(claim?.claimResources.map(({ cdiDevices }) => cdiDevices.map(({ name }) => name))).toEqual([
      ['d/device=a'],
      ['d/device=a', 'd/device=b'],
    ]);
  });

  it('gets a pod by its name, and answers UNKNOWN for one that it does not know', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    const get = (podName: string) => ask(kubelet, v1.get, GetPodResourcesRequest.create({ podName, podNamespace: 'ml' }));
    expect((await get('train')).answer?.podResources?.name).toBe('train');
    expect((await get('other')).error).toEqual({ code: status.UNKNOWN, details: 'pod other in namespace ml not found' });
  });

  it('lets a burst of ten calls through and then a hundred per second, over all versions and methods', async () => {
    const clock = new ManualClock();
    const { kubelet } = makeNode({ rate: KUBELET_RATE, clock });
    await kubelet.start();
    const codes = async (calls: number): Promise<number[]> => {
      const answers = await Promise.all(
        Array.from({ length: calls }, (_, call) => ask<typeof LIST, unknown>(kubelet, call % 2 === 0 ? v1.list : v1alpha1.list, LIST)),
      );
      return answers.map(({ error }) => error?.code ?? status.OK);
    };
    expect((await codes(12)).filter((code) => code === status.RESOURCE_EXHAUSTED)).toHaveLength(2);
    clock.advance(30);
    expect((await codes(5)).filter((code) => code === status.OK)).toHaveLength(3);
  });

  it('leaves its socket behind when it ends, and has a new one at its next start', async () => {
    const { kubelet } = makeNode();
    await kubelet.start();
    const before = socketAt(kubelet.podResourcesSocket);
    await kubelet.stop();
    expect(socketAt(kubelet.podResourcesSocket)).toEqual(before);
    expect(await connectErrno(kubelet.podResourcesSocket)).toBe('ECONNREFUSED');
    await kubelet.start();
    expect(await connectErrno(kubelet.podResourcesSocket)).toBeUndefined();
    expect(socketAt(kubelet.podResourcesSocket)).not.toEqual(before);
  });

  it('lists nothing for a while after a restart, then the same devices', async () => {
    const clock = new ManualClock();
    const { kubelet } = makeNode({ clock });
    await kubelet.start();
    kubelet.admitPod(gpuPod('train', 'gpu-0'));
    await kubelet.restart({ emptyForMs: 900 });
    expect((await ask(kubelet, v1.list, LIST)).answer?.podResources).toEqual([]);
    clock.advance(900);
    expect((await ask(kubelet, v1.list, LIST)).answer?.podResources[0]?.containers[0]?.devices).toHaveLength(1);
  });
});
