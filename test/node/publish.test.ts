import { execFileSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PublishProcess } from '../cli/publish/publish-process.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { type Manifest, presetFile, render } from '../support/chart.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { MetadataDriver } from './support/metadata-driver.ts';

const missing = whyNoCluster();
const WAIT = { timeout: 60_000, interval: 200 };
/** From the verdict. */
const CONDITION_SOON = { timeout: 5_000, interval: 100 };
const EVENT_SOON = { timeout: 10_000, interval: 100 };
const NAMESPACE = 'device-agent';
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:device-agent-publish`;
const WELL = { DevicesUnhealthy: 'False', DevicesUnknown: 'False', DevicesMissing: 'False' };
const SICK = { ...WELL, DevicesUnhealthy: 'True' };
const STOPPED = { DevicesUnhealthy: 'Unknown', DevicesUnknown: 'Unknown', DevicesMissing: 'Unknown' };

const pod = (name: string, part: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never' }], ...part },
});
const claimer = (name: string): object =>
  pod(name, {
    resourceClaims: [{ name: 'c', resourceClaimTemplateName: 'one' }],
    containers: [{ name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never', resources: { claims: [{ name: 'c' }] } }],
  });
const OBJECTS: readonly object[] = [
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: 'hca' },
    spec: { selectors: [{ cel: { expression: "device.driver == 'hca.example.com'" } }] },
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'one', namespace: 'default' },
    spec: { spec: { devices: { requests: [{ name: 'a', exactly: { deviceClassName: 'hca' } }] } } },
  },
];

interface NodeObject {
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[] };
}
interface EventObject {
  readonly reason: string;
  readonly message: string;
  readonly source: object;
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid?: string };
}
interface List<T> {
  readonly items: readonly T[];
}
interface Claim {
  readonly status?: {
    readonly allocation?: { readonly devices: { readonly results: readonly { readonly device: string }[] } };
    readonly reservedFor?: readonly { readonly name: string }[];
  };
}
interface Rule {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly deviceSelector: { readonly device: string }; readonly taint: { readonly effect: string } };
}

describe.skipIf(missing !== undefined)(
  `the publisher on a cluster of two nodes${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster =
      missing === undefined
        ? new Cluster({
            APISERVER_ARGS: '--feature-gates=DRADeviceTaintRules=true --runtime-config=resource.k8s.io/v1beta2=true',
            // Without this API the UIDs of pods with claims are not known, and `kubectl describe` shows no event without a UID.
            KUBELET_CONFIG_EXTRA: 'featureGates: {PodsAPI: true}',
          })
        : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 4 }) : (undefined as never);
    const driver = missing === undefined ? new MetadataDriver(cluster) : (undefined as never);
    const folder = mkdtempSync(join(tmpdir(), 'publish-'));
    let agent: ServedAgent;
    let publisher: PublishProcess | undefined;
    let server: string;
    let token: string;

    const apply = async (...objects: readonly object[]): Promise<void> => {
      const file = join(folder, 'objects.json');
      writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
      await cluster.kubectl('apply', '-f', file);
    };
    const conditions = async (node = 'node-1') =>
      (await cluster.json<NodeObject>('get', 'node', node)).status.conditions.filter(({ type }) => type.startsWith('Devices'));
    const said = async (node = 'node-1') => Object.fromEntries((await conditions(node)).map(({ type, status }) => [type, status]));
    const eventsOn = async (name: string) =>
      (await cluster.json<List<EventObject>>('get', 'events', '--field-selector', `involvedObject.name=${name}`)).items.filter(
        ({ reason }) => reason.startsWith('Device'),
      );
    const rules = async () =>
      (await cluster.json<List<Rule>>('get', 'devicetaintrules.v1beta2.resource.k8s.io')).items.map(({ spec }) => [
        spec.deviceSelector.device,
        spec.taint.effect,
      ]);
    /** `card-2` of a pod whose claim has it. */
    const cardOf = async (name: string): Promise<string | undefined> => {
      const { items } = await cluster.json<List<Claim>>('get', 'resourceclaims');
      const claim = items.find(({ status }) => status?.reservedFor?.some((one) => one.name === name));
      return claim?.status?.allocation?.devices.results[0]?.device;
    };
    const hcaOf = (card = ''): string => `mlx5_${card.slice('card-'.length)}`;
    const addressOf = (hca: string): string =>
      /([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\/infiniband/.exec(realpathSync(join(machine.root, 'sys/class/infiniband', hca)))?.[1] ??
      '';
    const judged = (hca: string, healthy: 0 | 1): Promise<string> =>
      agent.until(`${hca} is ${healthy}`, (page) => seriesValue(page, 'device_healthy', { device: hca }) === healthy);
    const start = async (name: string): Promise<string> => {
      await apply(claimer(name));
      await cluster.kubectl('wait', '--for=jsonpath={.status.phase}=Running', `pod/${name}`, '--timeout=60s');
      const card = (await cardOf(name)) ?? '';
      await agent.until(`${name} holds ${card}`, (page) =>
        new RegExp(`^container_device_allocation_info\\{.*pod="${name}".*device="${hcaOf(card)}"`, 'm').test(page),
      );
      return card;
    };
    const flags = (): string[] => [
      `--state.file=${machine.root}/state/health.json`,
      `--publish.api-server=${server}`,
      `--publish.token-file=${join(folder, 'token')}`,
      `--publish.ca-file=${join(cluster.directory, 'cp/ca.crt')}`,
      '--publish.device-taint-rules=NoSchedule',
    ];
    /** One request with the publisher's own token. */
    const trying = async (method: string, path: string, body?: object, type = 'application/strategic-merge-patch+json') => {
      const words = ['-s', '-X', method, '--cacert', join(cluster.directory, 'cp/ca.crt'), '-H', `Authorization: Bearer ${token}`];
      const sent = body === undefined ? [] : ['-H', `Content-Type: ${type}`, '-d', JSON.stringify(body)];
      const text = await cluster.inNetwork('curl', ...words, ...sent, `${server}${path}`);
      return JSON.parse(text) as { readonly kind: string; readonly code?: number; readonly message?: string };
    };

    beforeAll(async () => {
      driver.build();
      await cluster.start(2);
      server = /server: "?(https:[^"\s]+)/.exec(await cluster.kubectl('config', 'view', '--raw'))?.[1] ?? '';
      await cluster.kubectl('create', 'namespace', NAMESPACE);
      const wanted = [
        'ClusterRole',
        'ClusterRoleBinding',
        'ServiceAccount',
        'ValidatingAdmissionPolicy',
        'ValidatingAdmissionPolicyBinding',
      ];
      const manifests = render('-f', presetFile('publish'), '--set=publish.deviceTaintRules=NoSchedule');
      await apply(...manifests.filter(({ kind }: Manifest) => wanted.includes(kind)), ...OBJECTS);
      const holder = pod('publisher', { nodeName: 'node-1', serviceAccountName: 'device-agent-publish' }) as { metadata: object };
      await apply({ ...holder, metadata: { name: 'publisher', namespace: NAMESPACE } });
      const { metadata } = await cluster.json<{ metadata: { uid: string } }>('get', 'pod', 'publisher', '-n', NAMESPACE);
      const bound = ['--bound-object-kind=Pod', '--bound-object-name=publisher', `--bound-object-uid=${metadata.uid}`];
      token = (await cluster.kubectl('create', 'token', 'device-agent-publish', '-n', NAMESPACE, ...bound)).trim();
      writeFileSync(join(folder, 'token'), token);
      const node = join(cluster.directory, 'node-1/kubelet');
      const config = join(folder, 'config.json');
      const policy = { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } }, flapping: { count: 100 } };
      writeFileSync(config, JSON.stringify({ health: policy }));
      agent = await serve([
        ...machine.flags(),
        `--podresources.socket=${node}/pod-resources/kubelet.sock`,
        `--podresources.checkpoint=${node}/device-plugins/kubelet_internal_checkpoint`,
        `--dra.metadata-dir=${node}/plugins`,
        `--cdi.dirs=${join(cluster.directory, 'node-1/cdi')}`,
        `--config.file=${config}`,
        '--podsapi',
        `--podsapi.socket=${node}/pods-api/pods-api.sock`,
        '--refresh.interval=500ms',
      ]);
      const devices = [0, 1, 2, 3].map((n) => `card-${n}=${addressOf(`mlx5_${n}`)}=`).join(',');
      driver.start('hca.example.com', devices, '-metadata');
      publisher = new PublishProcess(flags(), { NODE_NAME: 'node-1' }, cluster.throughNetwork());
    }, 300_000);

    afterAll(async () => {
      await publisher?.stop('SIGKILL');
      await agent?.stop();
      await cluster?.stop();
      machine?.remove();
      driver?.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    it('writes conditions, an event on the pod and a taint of the device alone, and clears them', async () => {
      await expect.poll(said, WAIT).toEqual(WELL);
      const card = await start('job');
      machine.pullCable(hcaOf(card));
      await judged(hcaOf(card), 0);
      const verdictMs = Date.now();
      await Promise.all([
        expect.poll(said, CONDITION_SOON).toEqual(SICK),
        expect.poll(rules, CONDITION_SOON).toEqual([[card, 'NoSchedule']]),
        expect.poll(async () => (await eventsOn('job')).length, EVENT_SOON).toBe(1),
      ]);
      process.stderr.write(`condition, rule and event were seen within ${Date.now() - verdictMs} ms of the verdict\n`);
      const [event] = await eventsOn('job');
      expect(event?.message).toBe(
        `A device of this pod is unhealthy: infiniband/${hcaOf(card)} has the condition PortDown/1 (LinkPolling). Check cable, transceiver and the remote port.`,
      );
      expect(event?.source).toEqual({ component: 'device-agent-publish', host: 'node-1' });
      expect(await cluster.kubectl('describe', 'pod', 'job')).toContain('DeviceUnhealthy');
      expect(await cluster.kubectl('describe', 'node', 'node-1')).toContain('DeviceUnhealthy');

      const others = [await start('second'), await start('third'), await start('fourth')];
      expect(others).not.toContain(card);
      await cluster.kubectl('delete', 'pod', 'job', 'second', 'third', 'fourth', '--wait');
      machine.plugCable(hcaOf(card));
      await judged(hcaOf(card), 1);
      await expect.poll(said, WAIT).toEqual(WELL);
      await expect.poll(rules, WAIT).toEqual([]);
    });

    it('tells a pod that is gone when its device fails', async () => {
      const card = await start('brief');
      const { metadata } = await cluster.json<{ metadata: { uid: string } }>('get', 'pod', 'brief');
      await cluster.kubectl('delete', 'pod', 'brief', '--wait');
      await agent.until('nobody holds it', (page) => !/^container_device_allocation_info\{.*pod="brief"/m.test(page));
      machine.pullCable(hcaOf(card));
      await judged(hcaOf(card), 0);
      await expect
        .poll(async () => (await eventsOn('brief')).map(({ involvedObject }) => involvedObject.uid), EVENT_SOON)
        .toEqual([metadata.uid]);
      machine.plugCable(hcaOf(card));
      await expect.poll(said, WAIT).toEqual(WELL);
    });

    it('has a token that can write its own conditions, and nothing else', async () => {
      const can = async (...words: readonly string[]): Promise<string> =>
        (await cluster.kubectl('auth', 'can-i', ...words, `--as=${ACCOUNT}`).catch((error: Error) => error.message)).includes('yes')
          ? 'yes'
          : 'no';
      expect(await can('patch', 'nodes', '--subresource=status')).toBe('yes');
      expect(await can('create', 'events', '-n', 'default')).toBe('yes');
      for (const words of [
        ['get', 'secrets', '-A'],
        ['list', 'nodes'],
        ['patch', 'nodes'],
        ['update', 'nodes', '--subresource=status'],
        ['get', 'pods', '-A'],
        ['patch', 'pods', '--subresource=status', '-A'],
        ['delete', 'pods', '-A'],
        ['create', 'pods', '--subresource=eviction', '-A'],
        ['get', 'events', '-A'],
      ])
        expect(await can(...words), words.join(' ')).toBe('no');

      const status = (conditions: readonly object[], more: object = {}): object => ({ status: { conditions, ...more } });
      const own = { type: 'DevicesUnhealthy', status: 'False', reason: 'NoFatalCondition', message: 'no device has a fatal condition' };
      const patch = (node: string, body: object) => trying('PATCH', `/api/v1/nodes/${node}/status`, body);
      expect((await patch('node-1', status([own]))).kind).toBe('Node');
      const refused = async (answer: Promise<{ code?: number; message?: string }>, words: string): Promise<void> => {
        const { code, message } = await answer;
        expect([403, 422], message).toContain(code);
        expect(message).toContain(words);
      };
      await refused(patch('node-2', status([own])), 'own node');
      await refused(patch('node-1', status([{ type: 'Ready', status: 'False', reason: 'x', message: 'x' }])), 'own conditions');
      await refused(patch('node-1', status([], { capacity: { 'example.com/gpu': '8' } })), 'only change conditions');
      await refused(patch('node-1', { status: { volumesInUse: ['a'] } }), 'only change conditions');
      await refused(patch('node-1', { metadata: { labels: { a: 'b' } } }), 'only change conditions');
      await refused(trying('PATCH', '/api/v1/nodes/node-1', { spec: { unschedulable: true } }), 'forbidden');
      await refused(trying('PATCH', `/api/v1/namespaces/${NAMESPACE}/pods/publisher/status`, { status: { phase: 'Failed' } }), 'forbidden');
      await refused(trying('GET', '/api/v1/secrets'), 'forbidden');
      const event = (host: string, node: string): object => ({
        metadata: { name: `try.${host}.${node}`, namespace: 'default' },
        involvedObject: { apiVersion: 'v1', kind: 'Node', name: node, uid: node },
        ...{ reason: 'Try', message: 'try', type: 'Normal', source: { component: 'device-agent-publish', host } },
      });
      const create = (body: object) => trying('POST', '/api/v1/namespaces/default/events', body, 'application/json');
      await refused(create(event('node-2', 'node-1')), 'own node');
      await refused(create(event('node-1', 'node-2')), 'own node');
      expect((await create(event('node-1', 'node-1'))).kind).toBe('Event');
      const rule = (node: string): object => ({
        apiVersion: 'resource.k8s.io/v1beta2',
        kind: 'DeviceTaintRule',
        metadata: { name: `try-${node}`, labels: { 'device-agent/node': node } },
        spec: {
          deviceSelector: { driver: 'other.example.com', pool: node, device: 'a' },
          taint: { key: 'device-agent/unhealthy', value: 'Try', effect: 'NoSchedule' },
        },
      });
      const path = '/apis/resource.k8s.io/v1beta2/devicetaintrules';
      await refused(trying('POST', path, rule('node-2'), 'application/json'), 'own node');
      await apply(rule('node-2'));
      await refused(trying('DELETE', `${path}/try-node-2`), 'own node');
      await cluster.kubectl('delete', 'devicetaintrules.v1beta2.resource.k8s.io', 'try-node-2');
    });

    it('says at its end that nobody maintains the conditions, and removes all on demand', async () => {
      const card = await start('last');
      machine.pullCable(hcaOf(card));
      await expect.poll(said, WAIT).toEqual(SICK);
      await expect.poll(rules, WAIT).toEqual([[card, 'NoSchedule']]);
      expect(await publisher?.stop()).toBe(0);
      expect(await said()).toEqual(STOPPED);
      const [program = '', ...words] = cluster.throughNetwork(process.execPath, 'dist/cli/main.js', 'publish', '--withdraw', ...flags());
      const text = execFileSync(program, words, { encoding: 'utf8', env: { PATH: process.env.PATH, NODE_NAME: 'node-1' } });
      expect(text).toMatch(/^removed from the node node-1: 3 conditions, 1 taint rules of devices\n$/);
      expect(await conditions()).toEqual([]);
      expect(await rules()).toEqual([]);
      expect(await said('node-2')).toEqual({});
      const { status } = await cluster.json<NodeObject>('get', 'node', 'node-1');
      expect(status.conditions.find(({ type }) => type === 'Ready')?.status).toBe('True');
    });
  },
);
