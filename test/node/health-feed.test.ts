import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Cluster, whyNoControlPlane } from './support/cluster.ts';
import { DraDriver, LIBRARY_VERSIONS, whyNoDriver } from './support/dra-driver.ts';

const why = whyNoControlPlane() ?? whyNoDriver();
if (why !== undefined) process.stderr.write(`skipped: health of claims on a cluster, ${why}\n`);

const WAIT = { interval: 100 };
/** From the verdict to the status of the pod. */
const SOON = { interval: 50 };

const MANIFEST = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gizmo}
spec:
  selectors: [{cel: {expression: "device.driver == 'gizmo.example.com'"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gizmo, namespace: default}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gizmo}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: claimer, namespace: default}
spec:
  resourceClaims: [{name: g, resourceClaimTemplateName: gizmo}]
  containers:
  - name: main
    image: localhost/pause:1
    imagePullPolicy: Never
    args: [show]
    resources: {claims: [{name: g}]}
`;

const EXTENDED = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: extended}
spec:
  extendedResourceName: example.com/gizmo
  selectors: [{cel: {expression: "device.driver == 'gizmo.example.com'"}}]
---
apiVersion: v1
kind: Pod
metadata: {name: extended, namespace: default}
spec:
  containers:
  - name: main
    image: localhost/pause:1
    imagePullPolicy: Never
    args: [show]
    resources: {limits: {example.com/gizmo: 1}}
`;

interface PodObject {
  readonly status: {
    readonly phase: string;
    readonly extendedResourceClaimStatus?: { readonly resourceClaimName: string };
    readonly containerStatuses?: readonly {
      readonly allocatedResourcesStatus?: readonly {
        readonly resources: readonly { readonly health: string; readonly message?: string }[];
      }[];
    }[];
  };
}

describe.skipIf(why !== undefined)('the health of a claimed device on a stock cluster', () => {
  let cluster: Cluster;
  let machine: Machine;
  let driver: DraDriver | undefined;
  let agent: ServedAgent;
  let directory: string;
  let feed: string;
  let address: string;

  const podOf = (name: string): Promise<PodObject> => cluster.json<PodObject>('get', 'pod', name);
  const health = async (): Promise<{ health: string; message?: string } | undefined> => {
    const { status } = await podOf('claimer');
    return status.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]?.resources[0];
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'health-feed-'));
    machine = new Machine({ infiniband: 2 });
    cluster = new Cluster({
      KUBELET_CONFIG_EXTRA: 'featureGates: {PodsAPI: true}',
      APISERVER_ARGS: '--feature-gates=DRADeviceTaintRules=true --runtime-config=resource.k8s.io/v1beta2=true',
    });
    await cluster.start(1);
    const config = join(directory, 'config.json');
    // Either of the driver's devices is the same port, so it does not matter which one the scheduler takes.
    const conditions = { 'infiniband.PortDown': { for: '0s', recovery: '0s' } };
    writeFileSync(config, JSON.stringify({ health: { conditions, flapping: { count: 100 } } }));
    feed = join(directory, 'feed.sock');
    const kubelet = join(cluster.directory, 'node-1/kubelet');
    agent = await serve([
      ...machine.flags(),
      `--config.file=${config}`,
      '--refresh.interval=500ms',
      `--podresources.socket=${kubelet}/pod-resources/kubelet.sock`,
      '--podresources.checkpoint=',
      '--podsapi',
      `--podsapi.socket=${kubelet}/pods-api/pods-api.sock`,
      `--health-feed.socket=${feed}`,
    ]);
    await agent.until('devices', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 1);
    const { devices } = (await (await fetch(`${agent.url}/api/v1/devices`)).json()) as { devices: { id: string; pciAddress: string }[] };
    address = devices.find(({ id }) => id === 'mlx5_0')?.pciAddress ?? '';
    await apply('claimer', MANIFEST);
  });

  const apply = async (name: string, manifest: string): Promise<void> => {
    const file = join(directory, `${name}.yaml`);
    writeFileSync(file, manifest);
    await cluster.kubectl('apply', '-f', file);
  };

  afterEach(() => {
    driver?.close();
  });

  afterAll(async () => {
    await agent?.stop();
    await cluster?.stop();
    machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  it.each(LIBRARY_VERSIONS)(
    'reaches the status of the pod with our message, and ends with the fault, by a driver on kubeletplugin %s',
    async (library) => {
      driver = new DraDriver();
      driver.build(library);
      driver.start(cluster.directory, 'node-1', feed, { 'g-0': address, 'g-1': address });
      await expect.poll(() => driver?.output(), WAIT).toContain('published');
      await expect.poll(async () => (await podOf('claimer')).status.phase, WAIT).toBe('Running');
      await expect.poll(async () => (await health())?.health, WAIT).toBe('Healthy');

      for (let round = 0; round < 3; round += 1) {
        machine.pullCable('mlx5_0');
        await agent.until('judged', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 0);
        await expect.poll(async () => (await health())?.health, SOON).toBe('Unhealthy');
        expect((await health())?.message).toMatch(/^PortDown\/1 \(.*check-cable/);
        if (round === 0) await tellsTaintRule(library === LIBRARY_VERSIONS[0] ? 'created' : 'unchanged');
        machine.plugCable('mlx5_0');
        await agent.until('recovered', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 1);
        await expect.poll(async () => (await health())?.health, SOON).toBe('Healthy');
      }
    },
  );

  it('is not in the status of a pod whose extended resource a driver serves, and the page has the name of that resource', async () => {
    driver = new DraDriver();
    driver.build('0.37.2');
    driver.start(cluster.directory, 'node-1', feed, { 'g-0': address, 'g-1': address });
    await expect.poll(() => driver?.output(), WAIT).toContain('published');
    await apply('extended', EXTENDED);
    await expect.poll(async () => (await podOf('extended')).status.phase, WAIT).toBe('Running');
    const { status } = await podOf('extended');
    const claim = status.extendedResourceClaimStatus?.resourceClaimName ?? '';
    expect(claim).toMatch(/^extended-extended-resources-/);
    expect(status.containerStatuses?.[0]?.allocatedResourcesStatus).toBeUndefined();
    const told = (page: string): number | undefined =>
      seriesValue(page, 'container_device_claim_info', { pod: 'extended', claim, extended_resource: 'example.com/gizmo' });
    await agent.until('the extended resource', (page) => told(page) === 1);
    const { pods } = (await (await fetch(`${agent.url}/api/v1/allocations`)).json()) as { pods: { pod: string; extended?: object[] }[] };
    expect(pods.find(({ pod }) => pod === 'extended')?.extended).toEqual([{ container: 'main', resource: 'example.com/gizmo', claim }]);
    expect(pods.find(({ pod }) => pod === 'claimer')?.extended).toBeUndefined();
  });

  /** The API server takes the rule. */
  async function tellsTaintRule(what: string): Promise<void> {
    const words = [
      'dist/cli/main.js',
      'publish',
      '--dry-run',
      '--publish.device-taint-rules=NoSchedule',
      `--web.listen-address=${new URL(agent.url).host}`,
    ];
    const { stdout, status } = spawnSync(process.execPath, words, { encoding: 'utf8', env: { ...process.env, NODE_NAME: 'node-1' } });
    expect(status).toBe(0);
    const rule = join(directory, 'rule.yaml');
    // The first line says what a cluster before 1.37 needs.
    const isServed = (await cluster.kubectl('get', '--raw', '/apis/resource.k8s.io/v1')).includes('devicetaintrules');
    writeFileSync(rule, isServed ? stdout : stdout.replaceAll('resource.k8s.io/v1\n', 'resource.k8s.io/v1beta2\n'));
    expect(await cluster.kubectl('apply', '-f', rule)).toMatch(
      new RegExp(`device-agent-publish\\.dra\\.net\\.node-1\\.pci-[-0-9a-f]+ ${what}`),
    );
  }
});
