import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { ClaimReader } from '../../src/kubelet/claims/claims.ts';
import { podResourcesOptions } from '../../src/kubelet/options.ts';
import { createPodResourcesPoller } from '../../src/kubelet/poller.ts';
import { claimDeviceKey } from '../../src/model/claim-hardware.ts';
import { defaultValues } from '../../src/model/options.ts';
import { builtDocumentThread } from '../support/documents.ts';
import { eventually } from '../support/until.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { MetadataDriver } from './support/metadata-driver.ts';

const missing = whyNoCluster();
const CACHE = process.env.K8S_CACHE ?? join(homedir(), 'k8s-cache');
/** The kubelet knows the claim and none of its devices. */
const PREPARING = { pod_resources: { containers: [{ dynamic_resources: [{ claim_name: 'late', claim_namespace: 'default' }] }] } };

const deviceClass = (name: string): object => ({
  apiVersion: 'resource.k8s.io/v1',
  kind: 'DeviceClass',
  metadata: { name },
  spec: { selectors: [{ cel: { expression: `device.driver == '${name}.example.com'` } }] },
});
const request = (name: string, deviceClassName: string, count = 1): object => ({ name, exactly: { deviceClassName, count } });
const pod = (name: string, source: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default' },
  spec: {
    resourceClaims: [{ name: 'g', ...source }],
    containers: [{ name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never', resources: { claims: [{ name: 'g' }] } }],
  },
});
const OBJECTS: readonly object[] = [
  deviceClass('one'),
  deviceClass('two'),
  deviceClass('late'),
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: 'shared', namespace: 'default' },
    spec: { devices: { requests: [request('g', 'one')] } },
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaimTemplate',
    metadata: { name: 'both', namespace: 'default' },
    spec: { spec: { devices: { requests: [request('a', 'one'), request('b', 'two', 2)] } } },
  },
  {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name: 'late', namespace: 'default' },
    spec: { devices: { requests: [request('g', 'late')] } },
  },
  pod('share-a', { resourceClaimName: 'shared' }),
  pod('share-b', { resourceClaimName: 'shared' }),
  pod('both', { resourceClaimTemplateName: 'both' }),
];

describe.skipIf(missing !== undefined)(`claims of a real kubelet${missing === undefined ? '' : ` (${missing})`}`, () => {
  const cluster = new Cluster();
  const folder = mkdtempSync(join(tmpdir(), 'dra-'));
  const driver = new MetadataDriver(cluster);

  const node = join(cluster.directory, 'node-1');
  const socket = join(node, 'kubelet/pod-resources/kubelet.sock');
  let poller: ReturnType<typeof createPodResourcesPoller>;
  let reader: ClaimReader;
  const found = async (): Promise<readonly string[]> => {
    await poller.refresh();
    const { allocations } = poller.current();
    await reader.read(allocations);
    return allocations.flatMap(({ pod: name, claim }) => {
      const [hardware] = claim === undefined ? [] : (reader.current().get(claimDeviceKey(claim)) ?? []);
      const at = hardware?.pciAddress ?? hardware?.deviceNodes?.join();
      return claim === undefined ? [] : [`${name} ${claim.device} ${hardware?.by} ${at}`];
    });
  };

  beforeAll(async () => {
    mkdirSync(join(folder, 'sys'), { recursive: true });
    driver.build();
    poller = createPodResourcesPoller({
      options: { ...defaultValues(podResourcesOptions), socket, checkpoint: '' },
      clock: systemClock,
      onChange() {},
    });
    reader = new ClaimReader({
      metadataDirectory: join(node, 'kubelet/plugins'),
      cdiDirectories: [join(node, 'cdi')],
      sysfs: join(folder, 'sys'),
      forms: [],
      thread: builtDocumentThread(),
      clock: systemClock,
    });
    await cluster.start(1);
    driver.start('one.example.com', 'm-0=0000:3b:00.2=,m-1=0000:3b:00.3=', '-metadata');
    driver.start('two.example.com', 'n-0==/dev/test/part0,n-1==/dev/test/part1');
    driver.start('late.example.com', 'l-0==/dev/test/part2', '-attached');
    const file = join(folder, 'objects.json');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }));
    await cluster.kubectl('apply', '-f', file);
  });
  afterAll(async () => {
    poller.close();
    await cluster.stop();
    driver.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it('lead to the hardware that the drivers name, for shared claims and for several requests', async () => {
    const address = (device: string): string => `0000:3b:00.${device === 'm-0' ? 2 : 3}`;
    await eventually(async () => {
      const lines = await found();
      expect(lines).toHaveLength(5);
      const shared = lines.find((line) => line.startsWith('share-a'))?.split(' ')[1] ?? '';
      const other = shared === 'm-0' ? 'm-1' : 'm-0';
      expect(lines).toEqual([
        `both ${other} metadata ${address(other)}`,
        'both n-0 cdi /dev/test/part0',
        'both n-1 cdi /dev/test/part1',
        `share-a ${shared} metadata ${address(shared)}`,
        `share-b ${shared} metadata ${address(shared)}`,
      ]);
    });
  });

  it('are no allocation while the device is not attached yet, nor while its driver prepares it', async () => {
    const file = join(folder, 'late.json');
    writeFileSync(file, JSON.stringify(pod('late', { resourceClaimName: 'late' })));
    await cluster.kubectl('apply', '-f', file);
    const claim = () =>
      cluster.json<{ status?: { allocation?: { devices: { results: readonly object[] } } } }>('get', 'resourceclaim', 'late');
    await eventually(async () => expect((await claim()).status?.allocation?.devices.results).toHaveLength(1));
    const ofPod = async () => (await found()).filter((line) => line.startsWith('late'));
    const listed = () =>
      execFileSync(join(CACHE, 'bin/podres'), ['-socket', socket, '-c', 'get', 'default', 'late'], { encoding: 'utf8', stdio: 'pipe' });
    // The scheduler looks at the condition each five seconds.
    for (let second = 0; second < 8; second += 1) {
      expect((await cluster.json<{ spec: { nodeName?: string } }>('get', 'pod', 'late')).spec.nodeName).toBeUndefined();
      expect(await ofPod()).toEqual([]);
      expect(listed).toThrow('not found');
      await sleep(1_000);
    }
    const conditions = [
      { type: 'attached', status: 'True', reason: 'Attached', message: '', lastTransitionTime: new Date().toISOString() },
    ];
    const status = { devices: [{ driver: 'late.example.com', pool: 'node-1', device: 'l-0', conditions }] };
    await cluster.kubectl('patch', 'resourceclaim', 'late', '--subresource=status', '--type=merge', '-p', JSON.stringify({ status }));
    const isPreparing = (): void => {
      const text = listed();
      expect(JSON.parse(text)).toMatchObject(PREPARING);
      expect(text).not.toContain('device_name');
    };
    await eventually(isPreparing);
    expect(await ofPod()).toEqual([]);
    isPreparing();
    await eventually(async () => expect(await ofPod()).toEqual(['late l-0 cdi /dev/test/part2']));
  });
});
