import { execFile } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { MetadataDriver } from './support/metadata-driver.ts';

const run = promisify(execFile);
const missing = whyNoCluster();
const SCRIPTS = resolve('../shared/cluster');
const CACHE = process.env.K8S_CACHE ?? '';
const VF = 'example.com/vf';

const requests = (...names: readonly string[]): object => ({
  devices: { requests: names.map((name) => ({ name, exactly: { deviceClassName: 'hca' } })) },
});
const pod = (name: string, claim: object, resources: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    terminationGracePeriodSeconds: 0,
    resourceClaims: [{ name: 'c', ...claim }],
    containers: [
      { name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never', resources: { claims: [{ name: 'c' }], ...resources } },
    ],
  },
});
const OBJECTS: readonly object[] = [
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: 'hca' },
    spec: { selectors: [{ cel: { expression: "device.driver == 'hca.example.com'" } }] },
  },
  { apiVersion: 'resource.k8s.io/v1', kind: 'ResourceClaim', metadata: { name: 'shared', namespace: 'default' }, spec: requests('a') },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'two', namespace: 'default' },
    spec: { spec: requests('a', 'b') },
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'one', namespace: 'default' },
    spec: { spec: requests('a') },
  },
  pod('share-a', { resourceClaimName: 'shared' }),
  pod('share-b', { resourceClaimName: 'shared' }),
  pod('two-requests', { resourceClaimTemplateName: 'two' }),
  pod('mixed', { resourceClaimTemplateName: 'one' }, { limits: { [VF]: 1 } }),
];

describe.skipIf(missing !== undefined)(
  `the whole agent beside a DRA driver on a stock kubelet${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 4, 'infiniband.vf': 4 }) : (undefined as never);
    const folder = mkdtempSync(join(tmpdir(), 'claims-'));
    const driver = missing === undefined ? new MetadataDriver(cluster) : (undefined as never);
    const script = (name: string, ...words: readonly string[]) =>
      run(join(SCRIPTS, name), [...words], { env: { ...process.env, K8S_CACHE: CACHE, K8S_RUN: cluster.directory } });
    let agent: ServedAgent;

    const addressOf = (hca: string): string =>
      /([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d)\/infiniband/.exec(realpathSync(join(machine.root, 'sys/class/infiniband', hca)))?.[1] ??
      '';

    const startDriver = (): void => {
      const devices = ['mlx5_0', 'mlx5_1', 'mlx5_2', 'mlx5_3'].map((hca, index) => `card-${index}=${addressOf(hca)}=`).join(',');
      driver.start('hca.example.com', devices, '-metadata');
    };

    /** `pod device way` of each claim, and `pod device` of each other allocation. */
    const attributed = async (): Promise<readonly string[]> => {
      const page = await agent.metrics();
      const lines = page.split('\n');
      const label = (line: string, name: string): string => new RegExp(`[{,]${name}="([^"]*)"`).exec(line)?.[1] ?? '-';
      const of = (metric: string) => lines.filter((line) => line.startsWith(`${metric}{`));
      const claims = of('container_device_allocation_info').map((line) =>
        ['pod', 'device', 'by'].map((name) => label(line, name)).join(' '),
      );
      const others = of('container_device_allocation')
        .filter((line) => label(line, 'resource') === VF)
        .map((line) => `${label(line, 'pod')} ${label(line, 'device') === '-' ? '-' : 'a function'}`);
      return [...claims, ...others].toSorted();
    };

    /** What the objects of the cluster say: the device that each claim of a pod got. */
    const expected = async (): Promise<readonly string[]> => {
      interface Claim {
        readonly status?: {
          readonly allocation?: { readonly devices: { readonly results: readonly { readonly device: string }[] } };
          readonly reservedFor?: readonly { readonly name: string }[];
        };
      }
      const { items } = await cluster.json<{ items: readonly Claim[] }>('get', 'resourceclaims');
      const claims = items.flatMap(({ status }) =>
        (status?.reservedFor ?? []).flatMap(({ name }) =>
          (status?.allocation?.devices.results ?? []).map(({ device }) => `${name} mlx5_${device.slice('card-'.length)} metadata`),
        ),
      );
      return [...claims, 'mixed a function'].toSorted();
    };

    /** What the agent sees of a change is on its page after the second refresh at the latest. */
    const twoRefreshes = async (): Promise<void> => {
      const answers = (page: string): number =>
        seriesValue(page, 'device_agent_podresources_requests_total', { method: 'List', code: 'OK' }) ?? 0;
      const before = answers(await agent.metrics());
      await agent.until('two more answers of the kubelet', (page) => answers(page) >= before + 2);
    };

    beforeAll(async () => {
      driver.build();
      await cluster.start(1);
      const node = join(cluster.directory, 'node-1/kubelet');
      const config = join(folder, 'config.json');
      writeFileSync(
        config,
        JSON.stringify({
          plugin: {
            resources: [
              {
                resource: VF,
                select: { family: 'infiniband', kind: 'vf' },
                // Simulated character devices are no devices.
                allocation: { strategies: ['envvar'], deviceNodes: [{ path: '/dev/widget-{id}', hostPath: '/dev/null' }] },
              },
            ],
          },
        }),
      );
      agent = await serve([
        ...machine.flags(),
        `--podresources.socket=${node}/pod-resources/kubelet.sock`,
        `--podresources.checkpoint=${node}/device-plugins/kubelet_internal_checkpoint`,
        `--plugin.dir=${node}/device-plugins`,
        `--dra.metadata-dir=${node}/plugins`,
        `--cdi.dirs=${join(cluster.directory, 'node-1/cdi')}`,
        `--config.file=${config}`,
        '--refresh.interval=1s',
      ]);
      startDriver();
      const file = join(folder, 'objects.json');
      writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }));
      await cluster.kubectl('apply', '-f', file);
    });
    afterAll(async () => {
      await agent?.stop();
      await cluster.stop();
      machine.remove();
      driver.remove();
      rmSync(folder, { recursive: true, force: true });
    });

    it('attributes shared claims, several requests, templates, and a claim beside a device of the plugin', async () => {
      await cluster.kubectl('wait', '--for=condition=Ready', 'pod', '--all', '--timeout=120s');
      const right = await expected();
      expect(right).toHaveLength(6);
      await expect.poll(attributed, { interval: 200 }).toEqual(right);
    });

    it('has the series of a claim about when the pod runs', async () => {
      await cluster.kubectl('delete', 'pod', 'mixed', '--wait');
      const file = join(folder, 'late.json');
      writeFileSync(file, JSON.stringify(pod('late', { resourceClaimTemplateName: 'one' })));
      await cluster.kubectl('apply', '-f', file);
      const runs = async (): Promise<number> => {
        await cluster.kubectl('wait', '--for=jsonpath={.status.phase}=Running', 'pod/late', '--timeout=60s');
        return Date.now();
      };
      const shows = async (): Promise<number> => {
        await agent.until('the claim of the pod', (page) => /^container_device_allocation_info\{.*pod="late"/m.test(page));
        return Date.now();
      };
      const [runningMs, shownMs] = await Promise.all([runs(), shows()]);
      process.stderr.write(`from running to series: ${shownMs - runningMs} ms\n`);
      await cluster.kubectl('delete', 'pod', 'late', '--wait');
      await cluster.kubectl('apply', '-f', join(folder, 'objects.json'));
      await cluster.kubectl('wait', '--for=condition=Ready', 'pod', '--all', '--timeout=60s');
      await expect.poll(attributed, { interval: 200 }).toEqual(await expected());
    });

    it('keeps every attribution through a restart of the kubelet', async () => {
      const before = await expected();
      await script('kubelet.sh', 'stop', 'node-1');
      await agent.until('a kubelet that is gone', (page) => seriesValue(page, 'device_agent_podresources_up') === 0);
      expect(await attributed()).toEqual(before);
      await script('kubelet.sh', 'start', 'node-1');
      await agent.until('a kubelet that is back', (page) => seriesValue(page, 'device_agent_podresources_up') === 1);
      await expect
        .poll(async () => seriesValue(await agent.metrics(), 'device_agent_podresources_held_allocations'), {
          interval: 500,
        })
        .toBe(0);
      expect(await attributed()).toEqual(before);
    });

    it('keeps every attribution through a restart of the driver', async () => {
      const before = await expected();
      driver.kill();
      await twoRefreshes();
      expect(await attributed()).toEqual(before);
      startDriver();
      await twoRefreshes();
      expect(await attributed()).toEqual(before);
    });
  },
);
