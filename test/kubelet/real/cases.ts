import { existsSync, watch } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { PodResourcesListerClient as OldClient } from '../../../src/generated/podresources/v1alpha1/api.ts';
import type { AnyKubelet, Case, Stage } from './support/any-kubelet.ts';
import type { Admission, WantedContainer, WantedPod } from './support/real-kubelet.ts';
import type { VendorDevice } from './support/vendor-plugin.ts';

const TOY = 'example.com/toy';
const pod = (name: string, ...containers: WantedContainer[]): WantedPod => ({ namespace: 'ml', name, uid: `uid-${name}`, containers });
const one = (name: string, count: number, resource = TOY): WantedPod => pod(name, { name: 'main', wants: { [resource]: count } });
const four: readonly VendorDevice[] = ['a', 'b', 'c', 'd'].map((id) => ({ id }));
/** Two on each NUMA node. */
const onNodes: readonly VendorDevice[] = four.map(({ id }, at) => ({ id, nodes: [at >> 1] }));
const healthy = (...states: boolean[]): VendorDevice[] => states.map((state, at) => ({ id: four[at]?.id as string, healthy: state }));

async function amounts(kubelet: AnyKubelet, resource = TOY): Promise<string> {
  const { capacity, allocatable } = await kubelet.capacity();
  return `${capacity[resource]}/${allocatable[resource]}`;
}

async function started({ plugin, until, kubelet }: Stage, devices: readonly VendorDevice[], more: object = {}) {
  const vendor = await plugin({ resource: TOY, devices, ...more }).start();
  const all = `${devices.length}/${devices.filter((device) => device.healthy !== false).length}`;
  await until('it is known', async () => (await amounts(kubelet)) === all);
  return vendor;
}

/** Devices by container, or why not. */
function outcome({ refused, given }: Admission): unknown {
  if (refused !== undefined) return `${refused.reason}: ${refused.message}`;
  return Object.fromEntries(Object.entries(given ?? {}).map(([name, { devices }]) => [name, devices[TOY]?.join('') ?? '']));
}

/** `pod/container device@nodes`, sorted. */
async function listed(kubelet: AnyKubelet): Promise<string[]> {
  return (await kubelet.list())
    .flatMap(({ name, containers = [] }) =>
      containers.flatMap((container) => [
        `${name}/${container.name}`,
        ...(container.devices ?? []).map(
          ({ device_ids, topology }) =>
            `${name}/${container.name} ${device_ids.join()}@${topology === undefined ? '' : (topology.nodes ?? []).map(({ ID = '0' }) => ID).join()}`,
        ),
      ]),
    )
    .sort();
}

async function listedByOldest(kubelet: AnyKubelet): Promise<string[]> {
  const client = new OldClient(`unix:${kubelet.podResourcesSocket}`, credentials.createInsecure());
  const answer = await new Promise<{
    podResources: { name: string; containers: { name: string; devices: { deviceIds: string[] }[] }[] }[];
  }>((resolve, reject) => client.list({}, (error, told) => (error === null ? resolve(told) : reject(error)))).finally(() => client.close());
  return answer.podResources
    .flatMap(({ name, containers }) =>
      containers.map(
        (container) =>
          `${name}/${container.name} ${container.devices
            .flatMap(({ deviceIds }) => deviceIds)
            .sort()
            .join('')}`,
      ),
    )
    .sort();
}

interface Checkpoint {
  readonly Data: {
    readonly PodDeviceEntries:
      | readonly {
          readonly PodUID: string;
          readonly ContainerName: string;
          readonly ResourceName: string;
          readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
          readonly AllocResp: string;
        }[]
      | null;
    readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>>;
  };
}

/** The checkpoint without its checksum and with all lists in order. */
function checkpoint(kubelet: AnyKubelet): unknown {
  const { Data } = JSON.parse(kubelet.checkpointText()) as Checkpoint;
  const entries = Data.PodDeviceEntries?.map((entry) => ({
    ...entry,
    DeviceIDs: Object.fromEntries(Object.entries(entry.DeviceIDs).map(([node, ids]) => [node, [...ids].sort().join('')])),
  })).sort((a, b) => (a.PodUID + a.ContainerName < b.PodUID + b.ContainerName ? -1 : 1));
  const registered = Object.fromEntries(
    Object.entries(Data.RegisteredDevices).map(([name, ids]) => [name, [...(ids ?? [])].sort().join('')]),
  );
  return { entries: entries ?? null, registered };
}

/** The list counts a moment before it is written. */
function readsCheckpoint(kubelet: AnyKubelet): boolean {
  try {
    return checkpoint(kubelet) !== undefined;
  } catch {
    return false;
  }
}

const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'ok',
    (error: Error) => error.message,
  );

/** What is asked of both, grouped by what it is about. */
export const CASES: readonly Case[] = [
  {
    name: 'registers a plugin and counts its devices',
    async observe(stage) {
      const vendor = await started(stage, healthy(true, true, false, true));
      return { amounts: await amounts(stage.kubelet), allocatable: await stage.kubelet.allocatable(TOY), watchers: vendor.watchers };
    },
    expected: { amounts: '4/3', allocatable: ['a', 'b', 'd'], watchers: 1 },
  },
  {
    name: 'refuses a version that it does not know',
    observe: async ({ plugin }) => {
      const vendor = plugin({ resource: TOY, devices: four, version: 'v1alpha9' });
      await vendor.serve();
      return failure(vendor.register());
    },
    expected: 'requested API version "v1alpha9" is not supported by kubelet. Supported version is ["v1beta1"]',
  },
  {
    name: 'refuses a name that is none',
    observe: async ({ plugin }) => {
      const said: string[] = [];
      for (const resource of ['toy', 'kubernetes.io/toy', 'requests.example.com/toy', 'example.com/-toy']) {
        const vendor = plugin({ resource, devices: four });
        await vendor.serve();
        said.push(await failure(vendor.register()));
      }
      return said;
    },
    expected: ['toy', 'kubernetes.io/toy', 'requests.example.com/toy', 'example.com/-toy'].map(
      (name) => `the ResourceName "${name}" is invalid`,
    ),
  },
  {
    name: 'gives up to dial a plugin that does not serve after ten seconds',
    observe: async ({ plugin }) => {
      const beganMs = performance.now();
      const said = await failure(plugin({ resource: TOY, devices: four }).register());
      return { said: said.replace(/: .*/, ''), seconds: Math.round((performance.now() - beganMs) / 1_000) };
    },
    expected: { said: 'failed to dial device plugin', seconds: 10 },
  },
  {
    name: 'takes an empty list for what it is',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      vendor.tell([]);
      await stage.until('none is left', async () => (await amounts(stage.kubelet)) === '0/0');
      return outcome(await stage.kubelet.admit(one('p', 1)));
    },
    expected: `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
  },
  {
    name: 'keeps the devices of a plugin that went away as capacity, and its pods their devices',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      await stage.kubelet.admit(one('p', 4));
      vendor.close();
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) === '4/0');
      return {
        list: await listed(stage.kubelet),
        late: outcome(await stage.kubelet.admit(one('q', 1))),
        allocatable: await stage.kubelet.allocatable(TOY),
      };
    },
    expected: {
      list: ['p/main', 'p/main a@', 'p/main b@', 'p/main c@', 'p/main d@'],
      late: `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
      allocatable: [],
    },
  },
  {
    name: 'loses the newer of two plugins of one resource when the older ends',
    observe: async (stage) => {
      const older = await started(stage, four);
      const newer = stage.plugin({ resource: TOY, devices: onNodes, socket: 'newer.sock' });
      await newer.start();
      await stage.until('both are followed', () => newer.watchers === 1);
      older.close();
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) === '4/0');
      await stage.until('the newer was cut off', () => newer.watchers === 0);
      return amounts(stage.kubelet);
    },
    expected: '4/0',
  },
  {
    name: 'admits a pod without devices where nobody has registered the resource',
    observe: async ({ kubelet }) => ({ pod: outcome(await kubelet.admit(one('p', 2))), list: await listed(kubelet) }),
    expected: { pod: { main: '' }, list: ['p/main'] },
  },
  {
    name: 'refuses what it does not have',
    observe: async (stage) => {
      await started(stage, four);
      await stage.kubelet.admit(one('p', 3));
      const refused = outcome(await stage.kubelet.admit(one('q', 2)));
      await stage.kubelet.remove(one('p', 3));
      return { refused, list: await listed(stage.kubelet), afterwards: outcome(await stage.kubelet.admit(one('r', 4))) };
    },
    expected: {
      refused: `UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for ${TOY}. Requested: 2, Available: 1, which is unexpected`,
      list: [],
      afterwards: { main: 'abcd' },
    },
  },
  {
    name: 'refuses a pod in the words of its plugin',
    observe: async (stage) => {
      const allocate = (): never => {
        throw new Error('not on a sunday');
      };
      await started(stage, four, { allocate });
      const refused = outcome(await stage.kubelet.admit(one('p', 1)));
      return { refused, list: await listed(stage.kubelet), allocatable: await stage.kubelet.allocatable(TOY) };
    },
    expected: {
      refused: 'UnexpectedAdmissionError: Allocate failed due to rpc error: code = Unknown desc = not on a sunday, which is unexpected',
      list: [],
      allocatable: ['a', 'b', 'c', 'd'],
    },
  },
  {
    name: 'refuses a pod whose plugin gives an answer without content',
    observe: async (stage) => {
      await started(stage, four, { allocate: () => undefined });
      return String(outcome(await stage.kubelet.admit(one('p', 1)))).replace(/response .*,/, 'response …,');
    },
    expected: 'UnexpectedAdmissionError: Allocate failed due to no containers return in allocation response …, which is unexpected',
  },
  {
    name: 'follows a proposal as far as it can, and fills it up',
    observe: async (stage) => {
      const answers = [['d', 'c'], ['zz', 'b'], []];
      const vendor = await started(stage, four, { prefer: () => answers.shift() ?? [] });
      const first = outcome(await stage.kubelet.admit(one('p', 2)));
      const second = outcome(await stage.kubelet.admit(one('q', 1)));
      return { first, second, asked: vendor.asked };
    },
    expected: {
      first: { main: 'cd' },
      second: { main: 'b' },
      asked: [
        { method: 'prefer', ids: ['a', 'b', 'c', 'd'], mustInclude: [] },
        { method: 'allocate', ids: ['c', 'd'] },
        { method: 'prefer', ids: ['a', 'b'], mustInclude: [] },
        { method: 'allocate', ids: ['b'] },
      ],
    },
  },
  {
    name: 'asks for a proposal even when all are needed, where there is no topology to go by',
    observe: async (stage) => {
      const vendor = await started(stage, four, { prefer: (available: readonly string[]) => available });
      await stage.kubelet.admit(one('p', 4));
      return vendor.asked.map(({ method }) => method);
    },
    expected: ['prefer', 'allocate'],
  },
  {
    name: 'does not ask when the devices of the chosen node are as many as needed',
    policy: 'single-numa-node',
    observe: async (stage) => {
      const vendor = await started(stage, onNodes, { prefer: (available: readonly string[]) => available });
      await stage.kubelet.admit(one('p', 2));
      return vendor.asked;
    },
    expected: [{ method: 'allocate', ids: ['a', 'b'] }],
  },
  {
    name: 'refuses a pod whose plugin fails to propose',
    observe: async (stage) => {
      const prefer = (): never => {
        throw new Error('no idea');
      };
      await started(stage, four, { prefer });
      return outcome(await stage.kubelet.admit(one('p', 2)));
    },
    expected:
      'UnexpectedAdmissionError: Allocate failed due to device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = no idea, which is unexpected',
  },
  {
    name: 'hands the devices of init containers on, those of sidecars not',
    observe: async (stage) => {
      const prefer = (available: readonly string[], must: readonly string[], size: number): readonly string[] =>
        [...must, ...[...available].sort().filter((id) => !must.includes(id))].slice(0, size);
      const vendor = await started(stage, four, { prefer });
      const containers: WantedContainer[] = [
        { name: 'first', kind: 'init', wants: { [TOY]: 2 } },
        { name: 'side', kind: 'sidecar', wants: { [TOY]: 1 } },
        { name: 'second', kind: 'init', wants: { [TOY]: 1 } },
        { name: 'main', wants: { [TOY]: 2 } },
      ];
      const given = outcome(await stage.kubelet.admit(pod('p', ...containers))) as Record<string, string>;
      const first = given.first ?? '';
      return {
        first,
        sideHasOneOfFirst: first.includes(given.side ?? '-'),
        secondHasTheOther: first.includes(given.second ?? '-') && given.second !== given.side,
        mainHasSecond: given.main?.includes(given.second ?? '-'),
        mainHasNotSide: given.main?.includes(given.side ?? '-') === false,
        proposals: vendor.asked
          .filter(({ method }) => method === 'prefer')
          .map(({ ids, mustInclude }) => [ids.length, mustInclude?.length]),
        list: (await listed(stage.kubelet)).map((line) => line.replace(/ .*/, ' …')),
      };
    },
    expected: {
      first: 'ab',
      sideHasOneOfFirst: true,
      secondHasTheOther: true,
      mainHasSecond: true,
      mainHasNotSide: true,
      proposals: [
        [4, 0],
        [3, 1],
      ],
      list: ['p/main', 'p/main …', 'p/main …', 'p/side', 'p/side …'],
    },
  },
  {
    name: 'chooses the lower of two nodes that would do',
    policy: 'single-numa-node',
    observe: async (stage) => {
      const devices = [...four, { id: 'e' }, { id: 'f' }].map(({ id }, at) => ({ id, nodes: [at < 4 ? 0 : 1] }));
      await started(stage, devices, {
        prefer: (available: readonly string[], _: unknown, size: number) => [...available].sort().slice(0, size),
      });
      return outcome(await stage.kubelet.admit(one('p', 2)));
    },
    expected: { main: 'ab' },
  },
  {
    name: 'refuses what no single node has',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, onNodes);
      return outcome(await stage.kubelet.admit(one('p', 3)));
    },
    expected: 'TopologyAffinityError: Resources cannot be allocated with Topology locality',
  },
  {
    name: 'refuses more than there is for the topology, before it counts',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, onNodes);
      return outcome(await stage.kubelet.admit(one('p', 5)));
    },
    expected: 'TopologyAffinityError: Resources cannot be allocated with Topology locality',
  },
  {
    name: 'refuses two nodes where one would have done, under the restricted policy, and allows them where none would',
    policy: 'restricted',
    observe: async (stage) => {
      await started(stage, onNodes);
      const whole = outcome(await stage.kubelet.admit(one('p', 3)));
      await stage.kubelet.remove(one('p', 3));
      await stage.kubelet.admit(pod('x', { name: 'main', wants: { [TOY]: 1 } }));
      await stage.kubelet.admit(pod('y', { name: 'main', wants: { [TOY]: 2 } }));
      return {
        whole: Object.values(whole as object).map((ids: string) => ids.length),
        torn: outcome(await stage.kubelet.admit(one('z', 2))),
      };
    },
    expected: { whole: [3], torn: 'TopologyAffinityError: Resources cannot be allocated with Topology locality' },
  },
  {
    name: 'goes on without alignment under the best-effort policy',
    policy: 'best-effort',
    observe: async (stage) => {
      await started(stage, onNodes);
      const given = outcome(await stage.kubelet.admit(one('p', 3))) as Record<string, string>;
      return given.main?.length;
    },
    expected: 3,
  },
  {
    name: 'puts the devices of two resources on one node',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, onNodes);
      const other = 'example.com/other';
      await stage.plugin({ resource: other, devices: [{ id: 'x', nodes: [1] }] }).start();
      await stage.until('both are known', async () => (await amounts(stage.kubelet, other)) === '1/1');
      return outcome(await stage.kubelet.admit(pod('p', { name: 'main', wants: { [TOY]: 2, [other]: 1 } })));
    },
    expected: { main: 'cd' },
  },
  {
    name: 'does not mind a topology policy where devices have no topology',
    policy: 'single-numa-node',
    observe: async (stage) => {
      await started(stage, four);
      return outcome(await stage.kubelet.admit(one('p', 4)));
    },
    expected: { main: 'abcd' },
  },
  {
    name: 'tells devices with no, one, two and empty topology apart',
    observe: async (stage) => {
      const devices = [{ id: 'a' }, { id: 'b', nodes: [0] }, { id: 'c', nodes: [0, 1] }, { id: 'd', nodes: [] }];
      await started(stage, devices);
      await stage.kubelet.admit(one('p', 4));
      return {
        list: await listed(stage.kubelet),
        allocatable: await stage.kubelet.allocatable(TOY),
        checkpoint: checkpoint(stage.kubelet),
      };
    },
    expected: {
      list: ['p/main', 'p/main a@', 'p/main b@0', 'p/main c@0', 'p/main c@1', 'p/main d@'],
      allocatable: ['a', 'b', 'c'],
      checkpoint: {
        entries: [
          { PodUID: 'uid-p', ContainerName: 'main', ResourceName: TOY, DeviceIDs: { '-1': 'ad', '0': 'bc', '1': 'c' }, AllocResp: '' },
        ],
        registered: { [TOY]: 'abcd' },
      },
    },
  },
  {
    name: 'writes what a container was given into the checkpoint, for init containers too, and keeps what has ended until it writes again',
    observe: async (stage) => {
      const vendor = await started(stage, four, { allocate: () => ({ envs: { A: 'b' } }) });
      await stage.until('it is written', () => readsCheckpoint(stage.kubelet));
      const before = checkpoint(stage.kubelet);
      await stage.kubelet.admit(pod('p', { name: 'prepare', kind: 'init', wants: { [TOY]: 4 } }, { name: 'main', wants: { [TOY]: 4 } }));
      const during = checkpoint(stage.kubelet);
      await stage.kubelet.remove(pod('p'));
      await listed(stage.kubelet);
      const stale = JSON.stringify(checkpoint(stage.kubelet)) === JSON.stringify(during);
      vendor.tell(healthy(true, true, true, false));
      await stage.until('it is told', async () => (await amounts(stage.kubelet)) === '4/3');
      await stage.until('it is written', () => JSON.stringify(checkpoint(stage.kubelet)) !== JSON.stringify(during));
      return { before, during, stale, after: checkpoint(stage.kubelet) };
    },
    expected: {
      before: { entries: null, registered: { [TOY]: 'abcd' } },
      during: {
        entries: ['main', 'prepare'].map((ContainerName) => ({
          PodUID: 'uid-p',
          ContainerName,
          ResourceName: TOY,
          DeviceIDs: { '-1': 'abcd' },
          AllocResp: 'CgYKAUESAWI=',
        })),
        registered: { [TOY]: 'abcd' },
      },
      stale: true,
      after: { entries: null, registered: { [TOY]: 'abc' } },
    },
  },
  {
    name: 'leaves ended and refused pods out of List, and has them in that of v1alpha1 without devices',
    observe: async (stage) => {
      await started(stage, four);
      await stage.kubelet.admit(one('ended', 1));
      await stage.kubelet.admit(one('running', 1));
      await stage.kubelet.admit(one('refused', 4));
      await stage.kubelet.finish(one('ended', 1));
      return {
        v1: (await listed(stage.kubelet)).map((line) => line.replace(/ .@$/, ' …')),
        oldest: (await listedByOldest(stage.kubelet)).map((line) => line.replace(/ .$/, ' …')),
      };
    },
    expected: { v1: ['running/main', 'running/main …'], oldest: ['ended/main ', 'refused/main ', 'running/main …'] },
  },
  {
    name: 'checks before the start of a container, and tells why it cannot start',
    observe: async (stage) => {
      const preStart = (): never => {
        throw new Error('it is cold');
      };
      await started(stage, four, { preStart });
      const { given, refused } = await stage.kubelet.admit(one('p', 4));
      return { refused, error: given?.main?.error, list: (await listed(stage.kubelet)).length };
    },
    expected: {
      refused: undefined,
      error: 'device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = it is cold',
      list: 5,
    },
  },
  {
    name: 'tells the health of devices in the status of pods: as last sent, even by a plugin that is gone; healthy when it was dropped',
    observe: async (stage) => {
      const vendor = await started(stage, four);
      await stage.kubelet.admit(one('p', 4));
      vendor.tell([{ id: 'a', healthy: false }, { id: 'b' }, { id: 'c' }]);
      await stage.until('it is told', async () => (await amounts(stage.kubelet)) === '3/2');
      const told = await stage.kubelet.status(one('p', 4));
      vendor.close();
      await stage.until('it is noticed', async () => (await amounts(stage.kubelet)) === '3/0');
      return { told, gone: await stage.kubelet.status(one('p', 4)) };
    },
    expected: {
      told: { main: { [TOY]: { a: 'Unhealthy', b: 'Healthy', c: 'Healthy', d: 'Healthy' } } },
      gone: { main: { [TOY]: { a: 'Unhealthy', b: 'Healthy', c: 'Healthy', d: 'Healthy' } } },
    },
  },
  {
    name: 'comes back from a restart with its allocations, without capacity until the plugin is back, and with no pods until they are delivered',
    observe: async (stage) => {
      const vendor = await started(stage, onNodes);
      await stage.kubelet.admit(one('p', 4));
      const before = await listed(stage.kubelet);
      await stage.kubelet.end();
      const left = [stage.kubelet.podResourcesSocket, join(stage.kubelet.pluginDirectory, 'kubelet.sock')].map(existsSync);
      await stage.kubelet.start({ podsAfterMs: Number.POSITIVE_INFINITY });
      const early = await listed(stage.kubelet);
      const cleared = existsSync(vendor.socket);
      const capacity = await amounts(stage.kubelet);
      await stage.kubelet.deliver();
      const late = outcome(await stage.kubelet.admit(one('q', 1)));
      return { left, early, cleared, capacity, same: (await listed(stage.kubelet)).join() === before.join(), late };
    },
    expected: {
      left: [true, true],
      early: [],
      cleared: false,
      capacity: '0/0',
      same: true,
      late: `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${TOY}, which is unexpected`,
    },
  },
  {
    name: 'makes its socket for plugins in its place, and that of PodResources under another name first',
    observe: async ({ kubelet, until }) => {
      await kubelet.end();
      const names = new Set<string | null>();
      const folders = [kubelet.pluginDirectory, join(kubelet.podResourcesSocket, '..')];
      const seen = folders.map(() => new Set<string | null>());
      const watches = folders.map((folder, at) => watch(folder, (_, name) => seen[at]?.add(name)));
      await kubelet.start();
      await until('both are seen', () => seen.every((each) => each.has('kubelet.sock')));
      for (const each of watches) each.close();
      return { names: names.size, plugins: [...(seen[0] ?? [])], others: (seen[1]?.size ?? 0) > 1 };
    },
    expected: { names: 0, plugins: ['kubelet.sock'], others: true },
  },
  {
    name: 'finds plugins in its registry, below folders too and not those with a dot, and forgets them with their socket',
    observe: async (stage) => {
      const deep = stage.watched({ resource: TOY, devices: four }, 'deep/down');
      await deep.serve();
      const hidden = stage.watched({ resource: 'example.com/hidden', devices: four, socket: '.hidden.sock' });
      await hidden.serve();
      await stage.until('it is known', async () => (await amounts(stage.kubelet)) === '4/4');
      const told = deep.notified;
      deep.close();
      await stage.until('it is forgotten', async () => (await amounts(stage.kubelet)) === '4/0');
      return { told, hidden: hidden.notified };
    },
    expected: { told: ['registered'], hidden: [] },
  },
  {
    name: 'tells plugins in its registry what is wrong with them',
    observe: async (stage) => {
      const wrong = [
        stage.watched({ resource: TOY, devices: four, type: 'OtherPlugin', socket: 'type.sock' }),
        stage.watched({ resource: TOY, devices: four, version: 'v7', socket: 'version.sock' }),
        stage.watched({ resource: 'kubernetes.io/toy', devices: four, socket: 'name.sock' }),
      ];
      for (const plugin of wrong) await plugin.serve();
      await stage.until('all are told', () => wrong.every(({ notified }) => notified.length > 0));
      return wrong.map(({ notified, socket }) => notified[0]?.replace(socket, '<socket>'));
    },
    expected: [
      'RegisterPlugin error -- no handler registered for plugin type: OtherPlugin at socket <socket>',
      'RegisterPlugin error -- plugin validation failed with err: manager version, v1beta1, is not among plugin supported versions [v7]',
      'RegisterPlugin error -- plugin validation failed with err: invalid name of device plugin socket: the ResourceName "kubernetes.io/toy" is invalid',
    ],
  },
];
