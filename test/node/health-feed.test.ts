import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Cluster, whyNoControlPlane } from './support/cluster.ts';
import { DraDriver, whyNoDriver } from './support/dra-driver.ts';

const why = whyNoControlPlane() ?? whyNoDriver();
if (why !== undefined) process.stderr.write(`skipped: health of claims on a cluster, ${why}\n`);

const WAIT = { timeout: 60_000, interval: 100 };
/** From the verdict to the status of the pod. */
const SOON = { timeout: 2_000, interval: 50 };

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

interface PodObject {
  readonly status: {
    readonly phase: string;
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
  let driver: DraDriver;
  let agent: ServedAgent;
  let directory: string;

  const health = async (): Promise<{ health: string; message?: string } | undefined> => {
    const { status } = await cluster.json<PodObject>('get', 'pod', 'claimer');
    return status.containerStatuses?.[0]?.allocatedResourcesStatus?.[0]?.resources[0];
  };

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'health-feed-'));
    machine = new Machine({ infiniband: 2 });
    driver = new DraDriver();
    driver.build();
    cluster = new Cluster({
      APISERVER_ARGS: '--feature-gates=DRADeviceTaintRules=true --runtime-config=resource.k8s.io/v1beta2=true',
    });
    await cluster.start(1);
  }, 240_000);

  afterAll(async () => {
    await agent?.stop();
    driver?.close();
    await cluster?.stop();
    machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  it('reaches the status of the pod with our message, and healthy again after the end of the fault', async () => {
    const config = join(directory, 'config.json');
    // Either of the driver's devices is the same port, so it does not matter which one the scheduler takes.
    const conditions = { 'infiniband.PortDown': { for: '0s', recovery: '0s' } };
    writeFileSync(config, JSON.stringify({ health: { conditions, flapping: { count: 100 } } }));
    const feed = join(directory, 'feed.sock');
    const kubelet = join(cluster.directory, 'node-1/kubelet/pod-resources/kubelet.sock');
    agent = await serve([
      ...machine.flags(),
      `--config.file=${config}`,
      '--refresh.interval=500ms',
      `--podresources.socket=${kubelet}`,
      '--podresources.checkpoint=',
      `--health-feed.socket=${feed}`,
    ]);
    await agent.until('devices', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 1);
    const { devices } = (await (await fetch(`${agent.url}/api/v1/devices`)).json()) as { devices: { id: string; pciAddress: string }[] };
    const address = devices.find(({ id }) => id === 'mlx5_0')?.pciAddress ?? '';
    driver.start(cluster.directory, 'node-1', feed, { 'g-0': address, 'g-1': address });
    await expect.poll(() => driver.output(), WAIT).toContain('published');
    const manifest = join(directory, 'claimer.yaml');
    writeFileSync(manifest, MANIFEST);
    await cluster.kubectl('apply', '-f', manifest);
    await expect.poll(async () => (await cluster.json<PodObject>('get', 'pod', 'claimer')).status.phase, WAIT).toBe('Running');
    await expect.poll(async () => (await health())?.health, WAIT).toBe('Healthy');

    for (let round = 0; round < 3; round += 1) {
      machine.pullCable('mlx5_0');
      await agent.until('judged', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 0);
      await expect.poll(async () => (await health())?.health, SOON).toBe('Unhealthy');
      expect((await health())?.message).toMatch(/^PortDown\/1 \(.*check-cable/);
      if (round === 0) await tellsTaintRule();
      machine.plugCable('mlx5_0');
      await agent.until('recovered', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_0' }) === 1);
      await expect.poll(async () => (await health())?.health, SOON).toBe('Healthy');
    }
  });

  /** The API server takes the rule. */
  async function tellsTaintRule(): Promise<void> {
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
    writeFileSync(rule, stdout.replaceAll('resource.k8s.io/v1\n', 'resource.k8s.io/v1beta2\n'));
    expect(await cluster.kubectl('apply', '-f', rule)).toMatch(/device-agent-publish\.dra\.net\.node-1\.pci-[-0-9a-f]+ created/);
  }
});
