import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PublishProcess } from '../cli/publish/publish-process.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { type Manifest, presetFile, render } from '../support/chart.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Audit, type AuditedRequest } from './support/audit.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { MetadataDriver } from './support/metadata-driver.ts';

const missing = whyNoCluster();
const WAIT = { interval: 200 };
/** From the verdict. */
const CONDITION_SOON = { interval: 100 };
const EVENT_SOON = { interval: 100 };
const KILLS = 20;
/** How long the API server is away. Ten minutes were run by OUTAGE_SECONDS=600. */
const OUTAGE_MS = Number(process.env.OUTAGE_SECONDS ?? 25) * 1_000;
/** A rejected token is tried again after 24 to 36 seconds. A node that was deleted is read again within 72 seconds. */
const LATE = { interval: 200 };
const NAMESPACE = 'device-agent';
/** Without it the scheduler does not look at rules, and the controllers evict nobody. */
const GATE = '--feature-gates=DRADeviceTaintRules=true';
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:device-agent-publish`;
const WELL = { DevicesUnhealthy: 'False', DevicesUnknown: 'False', DevicesMissing: 'False' };
const SICK = { ...WELL, DevicesUnhealthy: 'True' };
/** The policy knows the publisher by this name in the managed fields. */
const AS_PUBLISHER = '?fieldManager=device-agent-publish';
const OWN_TAINT = { key: 'device-agent/unhealthy', effect: 'PreferNoSchedule' };
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

interface Taint {
  readonly key: string;
  readonly effect: string;
}
interface NodeObject {
  readonly metadata: { readonly uid: string };
  readonly spec: { readonly taints?: readonly Taint[] };
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string; readonly message: string }[] };
}
interface PodObject {
  readonly status: { readonly conditions?: readonly { readonly type: string; readonly reason?: string }[] };
}
interface EventObject {
  readonly reason: string;
  readonly message: string;
  readonly source: object;
  readonly involvedObject: { readonly kind: string; readonly name: string; readonly uid?: string };
}
interface Applied {
  readonly status: { readonly conditions: readonly { readonly [member: string]: string }[] };
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
    const audit = missing === undefined ? new Audit() : (undefined as never);
    const cluster =
      missing === undefined
        ? new Cluster({
            APISERVER_ARGS: `${GATE} --runtime-config=resource.k8s.io/v1beta2=true ${audit.flags(ACCOUNT)}`,
            SCHEDULER_ARGS: GATE,
            KCM_ARGS: GATE,
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
    const taints = async (node = 'node-1') =>
      ((await cluster.json<NodeObject>('get', 'node', node)).spec.taints ?? [])
        .filter(({ key }) => key === OWN_TAINT.key)
        .map(({ key, effect }) => ({ key, effect }));
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
    const whyNotScheduled = async (name: string): Promise<string | undefined> => {
      const { status } = await cluster.json<PodObject>('get', 'pod', name);
      return status.conditions?.find(({ type }) => type === 'PodScheduled')?.reason;
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
      // The others would keep the pods of these tests away from the only node with devices.
      `--publish.node-taint=${OWN_TAINT.effect}`,
      '--publish.resync=10s',
    ];
    const startPublisher = (): void => {
      publisher = new PublishProcess(flags(), { NODE_NAME: 'node-1' }, cluster.throughNetwork());
    };
    const startAgent = async (): Promise<void> => {
      const node = join(cluster.directory, 'node-1/kubelet');
      agent = await serve([
        ...machine.flags(),
        `--podresources.socket=${node}/pod-resources/kubelet.sock`,
        `--podresources.checkpoint=${node}/device-plugins/kubelet_internal_checkpoint`,
        `--dra.metadata-dir=${node}/plugins`,
        `--cdi.dirs=${join(cluster.directory, 'node-1/cdi')}`,
        `--config.file=${join(folder, 'config.json')}`,
        '--podsapi',
        `--podsapi.socket=${node}/pods-api/pods-api.sock`,
        '--refresh.interval=500ms',
      ]);
    };
    /** Makes the pod of the publisher, as a DaemonSet would, and a token that is bound to it. */
    const giveToken = async (): Promise<void> => {
      const holder = pod('publisher', { nodeName: 'node-1', serviceAccountName: 'device-agent-publish' }) as { metadata: object };
      await apply({ ...holder, metadata: { name: 'publisher', namespace: NAMESPACE } });
      const { metadata } = await cluster.json<{ metadata: { uid: string } }>('get', 'pod', 'publisher', '-n', NAMESPACE);
      const bound = ['--bound-object-kind=Pod', '--bound-object-name=publisher', `--bound-object-uid=${metadata.uid}`];
      token = (await cluster.kubectl('create', 'token', 'device-agent-publish', '-n', NAMESPACE, ...bound)).trim();
      writeFileSync(join(folder, 'token'), token);
    };
    const settled = async (isDown: boolean, card: string, wait = WAIT): Promise<void> => {
      await expect.poll(said, wait).toEqual(isDown ? SICK : WELL);
      // Before an agent that was started again knows the claim, the device has a rule under its usual name.
      await expect.poll(rules, wait).toEqual(isDown ? expect.arrayContaining([[card, 'NoSchedule']]) : []);
      await expect.poll(taints, wait).toEqual(isDown ? [OWN_TAINT] : []);
    };
    const patchesOf = (resource: string, from = 0) =>
      audit.requests(from).filter((one) => one.verb === 'patch' && one.resource === resource && one.code < 300);
    /** How many patches said what the one before them had said. */
    const withoutChange = (patches: readonly AuditedRequest[]): number => {
      const words = patches.map(({ body }) =>
        JSON.stringify((body as Applied).status.conditions.map(({ type, status, reason, message }) => [type, status, reason, message])),
      );
      return words.filter((one, n) => one === words[n - 1]).length;
    };
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
      const manifests = render(
        ...['-f', presetFile('publish'), '--set=publish.deviceTaintRules=NoSchedule', `--set=publish.nodeTaint=${OWN_TAINT.effect}`],
      );
      await apply(...manifests.filter(({ kind }: Manifest) => wanted.includes(kind)), ...OBJECTS);
      await giveToken();
      // A port that flaps so often would stay unhealthy for an hour.
      const quick = { 'infiniband.PortDown': { for: '0s', recovery: '0s' }, 'infiniband.LinkFlapping': { severity: 'info' } };
      writeFileSync(join(folder, 'config.json'), JSON.stringify({ health: { conditions: quick, flapping: { count: 100 } } }));
      await startAgent();
      const devices = [0, 1, 2, 3].map((n) => `card-${n}=${addressOf(`mlx5_${n}`)}=`).join(',');
      driver.start('hca.example.com', devices, '-metadata');
      startPublisher();
    });

    afterAll(async () => {
      await publisher?.stop('SIGKILL');
      await agent?.stop();
      await cluster?.stop();
      machine?.remove();
      driver?.remove();
      audit?.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    it('writes conditions, an event on the pod, a taint of the device alone and one of the node, and clears them', async () => {
      await expect.poll(said, WAIT).toEqual(WELL);
      const card = await start('job');
      machine.pullCable(hcaOf(card));
      await judged(hcaOf(card), 0);
      const verdictMs = Date.now();
      await Promise.all([
        expect.poll(said, CONDITION_SOON).toEqual(SICK),
        expect.poll(rules, CONDITION_SOON).toEqual([[card, 'NoSchedule']]),
        expect.poll(taints, CONDITION_SOON).toEqual([OWN_TAINT]),
        expect.poll(async () => (await eventsOn('job')).length, EVENT_SOON).toBe(1),
      ]);
      process.stderr.write(`condition, taint, rule and event were seen within ${Date.now() - verdictMs} ms of the verdict\n`);
      const [event] = await eventsOn('job');
      expect(event?.message).toBe(
        `A device of this pod is unhealthy: infiniband/${hcaOf(card)} has the condition PortDown/1 (LinkPolling). Check cable, transceiver and the remote port.`,
      );
      expect(event?.source).toEqual({ component: 'device-agent-publish', host: 'node-1' });
      expect(await cluster.kubectl('describe', 'pod', 'job')).toContain('DeviceUnhealthy');
      expect(await cluster.kubectl('describe', 'node', 'node-1')).toContain('DeviceUnhealthy');

      const others = [await start('second'), await start('third'), await start('fourth')];
      expect(new Set([card, ...others]).size).toBe(4);
      await cluster.kubectl('delete', 'pod', 'job', '--wait');
      await apply(claimer('fifth'));
      // Only the sick device is free.
      await expect.poll(() => whyNotScheduled('fifth'), WAIT).toBe('Unschedulable');
      machine.plugCable(hcaOf(card));
      await judged(hcaOf(card), 1);
      await settled(false, card);
      await cluster.kubectl('wait', '--for=jsonpath={.status.phase}=Running', 'pod/fifth', '--timeout=60s');
      expect(await cardOf('fifth')).toBe(card);
      await cluster.kubectl('delete', 'pod', 'second', 'third', 'fourth', 'fifth', '--wait');
    });

    it('tells a pod of the fault of its device, also when the pod is gone before the event can be written', async () => {
      const card = await start('brief');
      const { metadata } = await cluster.json<{ metadata: { uid: string } }>('get', 'pod', 'brief');
      publisher?.child.kill('SIGSTOP');
      machine.pullCable(hcaOf(card));
      await judged(hcaOf(card), 0);
      await cluster.kubectl('delete', 'pod', 'brief', '--wait');
      await agent.until('nobody holds it', (page) => !/^container_device_allocation_info\{.*pod="brief"/m.test(page));
      publisher?.child.kill('SIGCONT');
      await expect
        .poll(async () => (await eventsOn('brief')).map(({ involvedObject }) => involvedObject.uid), EVENT_SOON)
        .toEqual([metadata.uid]);
      machine.plugCable(hcaOf(card));
      await settled(false, card);
    });

    it(`ends in the right state after each of ${KILLS} kills of agent and publisher, without a patch that changes nothing`, async () => {
      const card = await start('survivor');
      const from = audit.requests().length;
      let [faults, agents] = [0, 0];
      for (let kill = 0; kill < KILLS; kill += 1) {
        // The last one is a fault that must be told of.
        const isDown = kill === KILLS - 1 || Math.random() < 0.5;
        if (isDown) machine.pullCable(hcaOf(card));
        else machine.plugCable(hcaOf(card));
        await sleep(Math.random() * 3_000);
        if (Math.random() < 0.5) {
          agents += 1;
          await agent.stop('SIGKILL');
          await startAgent();
        } else {
          await publisher?.stop('SIGKILL');
          startPublisher();
        }
        faults += isDown ? 1 : 0;
        await settled(isDown, card);
      }
      await expect.poll(async () => (await eventsOn('survivor')).length, EVENT_SOON).toBeGreaterThan(0);
      machine.plugCable(hcaOf(card));
      await settled(false, card);
      const patches = patchesOf('nodes/status', from);
      const apart = Math.min(...patches.slice(1).map(({ atMs }, n) => atMs - (patches[n]?.atMs ?? 0)));
      const counts = ['nodes', 'devicetaintrules'].map((resource) => patchesOf(resource, from).length);
      const before = audit.requests().length;
      await expect
        .poll(() => audit.requests(before).filter(({ verb, resource }) => `${verb} ${resource}` === 'get nodes').length, WAIT)
        .toBeGreaterThan(4);
      expect(audit.requests(before).filter(({ verb }) => verb === 'patch' || verb === 'delete')).toEqual([]);
      expect(withoutChange(patches)).toBe(0);
      process.stderr.write(
        `${KILLS} kills (${agents} of the agent), ${faults} faults: ${patches.length} patches of conditions, at least ${apart} ms apart, ` +
          `${counts[0]} of taints, ${counts[1]} of rules, ${withoutChange(patches)} without a change\n`,
      );
    });

    it('keeps every taint of other writers', async () => {
      const others = Array.from({ length: 30 }, (_, n) => `other-${n}`);
      const hca = 'mlx5_0';
      let isDown = false;
      const writing = (async () => {
        for (const key of others) await cluster.kubectl('taint', 'node', 'node-1', `${key}=:PreferNoSchedule`);
      })();
      for (let n = 0; n < 5; n += 1) {
        isDown = !isDown;
        if (isDown) machine.pullCable(hca);
        else machine.plugCable(hca);
        await expect.poll(taints, WAIT).toEqual(isDown ? [OWN_TAINT] : []);
      }
      await writing;
      machine.plugCable(hca);
      await settled(false, '');
      const { spec } = await cluster.json<NodeObject>('get', 'node', 'node-1');
      expect(spec.taints?.map(({ key }) => key).toSorted()).toEqual(others.toSorted());
      await cluster.kubectl('taint', 'node', 'node-1', ...others.map((key) => `${key}-`));
    });

    it(`writes the newest state alone after an API server that was away for ${OUTAGE_MS / 1_000} s`, async () => {
      const card = (await cardOf('survivor')) ?? '';
      const hca = hcaOf(card);
      const rss = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${publisher?.child.pid}/status`, 'utf8'))?.[1]) / 1_024;
      const from = audit.requests().length;
      const [startMib, startTold] = [rss(), publisher?.told('the API server does not take') ?? 0];
      let highest = 0;
      cluster.signalApiServer('SIGSTOP');
      try {
        let isDown = false;
        // A device that fails more than a hundred times counts as flapping, and stays unhealthy.
        for (const endMs = Date.now() + OUTAGE_MS; Date.now() < endMs; await sleep(Math.max(2_500, OUTAGE_MS / 40))) {
          isDown = !isDown;
          if (isDown) machine.pullCable(hca);
          else machine.plugCable(hca);
          highest = Math.max(highest, rss());
        }
        machine.pullCable(hca);
        await judged(hca, 0);
      } finally {
        cluster.signalApiServer('SIGCONT');
      }
      const backMs = Date.now();
      await settled(true, card, LATE);
      const [lateMs, patches] = [Date.now() - backMs, patchesOf('nodes/status', from)];
      expect(patches).toHaveLength(1);
      const lines = (publisher?.told('the API server does not take') ?? 0) - startTold;
      process.stderr.write(
        `${OUTAGE_MS / 1_000} s without API server: ${startMib.toFixed(1)} MiB before, ${highest.toFixed(1)} MiB at most, ${rss().toFixed(1)} MiB ` +
          `after; ${lines} lines of the log; the state was there ${lateMs} ms after its return, by ${patches.length} patch\n`,
      );
      expect(lines).toBeLessThanOrEqual(4);
      machine.plugCable(hca);
      await settled(false, card, LATE);
      await cluster.kubectl('wait', '--for=condition=Ready', 'node/node-1', 'node/node-2', '--timeout=90s');
    });

    it('tells once that its token was revoked, and goes on with the next one', async () => {
      const told = publisher?.told('the API server does not take') ?? 0;
      await cluster.kubectl('delete', 'pod', 'publisher', '-n', NAMESPACE, '--force', '--grace-period=0');
      const card = (await cardOf('survivor')) ?? '';
      machine.pullCable(hcaOf(card));
      await expect.poll(() => publisher?.log().split('401: Unauthorized').length, WAIT).toBeGreaterThan(1);
      expect(await said()).toEqual(WELL);
      await giveToken();
      const givenMs = Date.now();
      await settled(true, card, LATE);
      process.stderr.write(`the state was there ${Date.now() - givenMs} ms after the next token\n`);
      // Conditions, rules, taint and events are refused on their own.
      expect((publisher?.told('the API server does not take') ?? 0) - told).toBeLessThanOrEqual(4);
      machine.plugCable(hcaOf(card));
      await settled(false, card, LATE);
      await cluster.kubectl('delete', 'pod', 'survivor', '--wait');
    });

    it('writes anew when the node was deleted and created again', async () => {
      machine.pullCable('mlx5_1');
      await expect.poll(said, WAIT).toEqual(SICK);
      const { metadata } = await cluster.json<NodeObject>('get', 'node', 'node-1');
      await cluster.kubectl('delete', 'node', 'node-1', '--wait');
      await expect.poll(() => publisher?.log(), LATE).toContain('404: nodes');
      await cluster.restartKubelet('node-1');
      await cluster.kubectl('wait', '--for=create', 'node/node-1', '--timeout=90s');
      await cluster.kubectl('wait', '--for=condition=Ready', 'node/node-1', '--timeout=90s');
      const readyMs = Date.now();
      expect((await cluster.json<NodeObject>('get', 'node', 'node-1')).metadata.uid).not.toBe(metadata.uid);
      // The controllers delete the pods of a node that is gone, and the token ends with its pod.
      await giveToken();
      await expect.poll(said, LATE).toEqual(SICK);
      await expect.poll(taints, LATE).toEqual([OWN_TAINT]);
      process.stderr.write(`the state was there ${Date.now() - readyMs} ms after the new node was ready\n`);
      machine.plugCable('mlx5_1');
      await settled(false, '', LATE);
    });

    it('has a token that can write its own conditions, and nothing else', async () => {
      const can = async (...words: readonly string[]): Promise<string> =>
        (await cluster.kubectl('auth', 'can-i', ...words, `--as=${ACCOUNT}`).catch((error: Error) => error.message)).includes('yes')
          ? 'yes'
          : 'no';
      expect(await can('patch', 'nodes', '--subresource=status')).toBe('yes');
      expect(await can('create', 'events', '-n', 'default')).toBe('yes');
      // With a taint of the node the role allows what the policy limits.
      expect(await can('patch', 'nodes')).toBe('yes');
      for (const words of [
        ['get', 'secrets', '-A'],
        ['list', 'nodes'],
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
      const patch = (node: string, body: object) => trying('PATCH', `/api/v1/nodes/${node}/status${AS_PUBLISHER}`, body);
      const patchNode = (node: string, body: object) =>
        trying('PATCH', `/api/v1/nodes/${node}${AS_PUBLISHER}`, body, 'application/merge-patch+json');
      expect((await patch('node-1', status([own]))).kind).toBe('Node');
      const refused = async (answer: Promise<{ code?: number; message?: string }>, words: string): Promise<void> => {
        const { code, message } = await answer;
        expect([403, 422], message).toContain(code);
        expect(message).toContain(words);
      };
      await refused(patch('node-2', status([own])), 'own node');
      await refused(patch('node-1', status([{ type: 'Ready', status: 'False', reason: 'x', message: 'x' }])), 'own conditions');
      await refused(patch('node-1', status([], { capacity: { 'example.com/gpu': '8' } })), 'only change conditions');
      for (const more of [
        { volumesInUse: ['a'] },
        { phase: 'Terminated' },
        { features: { supplementalGroupsPolicy: false } },
        { runtimeHandlers: [{ name: 'a' }] },
        { declaredFeatures: ['A'] },
      ])
        await refused(patch('node-1', { status: more }), 'only change conditions');
      const edited = status([{ ...own, status: 'True', reason: 'x', message: 'x' }]);
      await refused(trying('PATCH', '/api/v1/nodes/node-1/status?fieldManager=other', edited), 'managed fields');
      await refused(patchNode('node-1', { metadata: { managedFields: [{}] } }), 'managed fields');
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'none', uid: '00000000-0000-4000-8000-000000000000' };
      const metadata = [
        { labels: { a: 'b' } },
        { annotations: { a: 'b' } },
        { finalizers: ['example.com/a'] },
        { ownerReferences: [owner] },
      ];
      const taint = (taints: readonly object[], more: object = {}): object => ({ spec: { taints, ...more } });
      for (const one of metadata) {
        await refused(patch('node-1', { metadata: one }), 'metadata of a node');
        await refused(patchNode('node-1', { metadata: one, ...taint([OWN_TAINT]) }), 'metadata of a node');
      }
      const foreign = { key: 'example.com/drain', effect: 'NoSchedule' };
      expect((await patchNode('node-1', taint([OWN_TAINT]))).kind).toBe('Node');
      // Another manager owns the taints and more in one entry: the entry loses the taints when the publisher writes them.
      const drain = { key: 'example.com/drain', effect: 'PreferNoSchedule' };
      const others = JSON.stringify({ metadata: { annotations: { 'example.com/a': 'b' } }, ...taint([drain]) });
      await cluster.kubectl('patch', 'node', 'node-1', '--type=merge', '--field-manager=other', '-p', others);
      const both = await patchNode('node-1', taint([drain, OWN_TAINT]));
      expect(both.kind, both.message).toBe('Node');
      await cluster.kubectl('taint', 'node', 'node-1', 'example.com/drain-');
      await cluster.kubectl('annotate', 'node', 'node-1', 'example.com/a-');
      await refused(patchNode('node-2', taint([OWN_TAINT])), 'own node');
      await refused(patchNode('node-1', taint([OWN_TAINT, foreign])), 'own taint');
      await refused(patchNode('node-1', taint([{ ...OWN_TAINT, effect: 'NoExecute' }])), 'must have the effect PreferNoSchedule');
      await refused(patchNode('node-1', { spec: { unschedulable: true } }), 'own taint');
      await refused(patchNode('node-1', { spec: { providerID: 'a' } }), 'own taint');
      await cluster.kubectl('taint', 'node', 'node-1', 'example.com/drain=:PreferNoSchedule');
      await refused(patchNode('node-1', taint([])), 'own taint');
      await cluster.kubectl('taint', 'node', 'node-1', 'example.com/drain-');
      await refused(trying('DELETE', '/api/v1/nodes/node-1'), 'forbidden');
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
      for (const more of [{ action: 'Try' }, { reportingComponent: 'kubelet' }, { related: { kind: 'Pod', name: 'a' } }])
        await refused(create({ ...event('node-1', 'node-1'), ...more }), 'only have the fields');
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
      const mine = rule('node-1') as { spec: { deviceSelector: object; taint: object } };
      const evicting = { ...mine.spec, taint: { ...mine.spec.taint, effect: 'NoExecute' } };
      await refused(trying('POST', path, { ...mine, spec: evicting }, 'application/json'), 'concern one device');
      const ofAll = { ...mine.spec, deviceSelector: { driver: 'other.example.com' } };
      await refused(trying('POST', path, { ...mine, spec: ofAll }, 'application/json'), 'concern one device');
      await apply(rule('node-2'));
      await refused(trying('DELETE', `${path}/try-node-2`), 'own node');
      await cluster.kubectl('delete', 'devicetaintrules.v1beta2.resource.k8s.io', 'try-node-2');
    });

    it('says at its end that nobody maintains the conditions, and removes all on demand', async () => {
      const card = await start('last');
      machine.pullCable(hcaOf(card));
      await settled(true, card);
      expect(await publisher?.stop()).toBe(0);
      expect(await said()).toEqual(STOPPED);
      const [program = '', ...words] = cluster.throughNetwork(process.execPath, 'dist/cli/main.js', 'publish', '--withdraw', ...flags());
      const text = execFileSync(program, words, { encoding: 'utf8', env: { PATH: process.env.PATH, NODE_NAME: 'node-1' } });
      expect(text).toMatch(/^removed from the node node-1: 3 conditions, 1 taint rules of devices, 1 taints\n$/);
      expect(await conditions()).toEqual([]);
      expect(await rules()).toEqual([]);
      expect(await taints()).toEqual([]);
      expect(await said('node-2')).toEqual({});
      const { status } = await cluster.json<NodeObject>('get', 'node', 'node-1');
      expect(status.conditions.find(({ type }) => type === 'Ready')?.status).toBe('True');
    });
  },
);
