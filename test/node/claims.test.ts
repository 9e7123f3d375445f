import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { ClaimReader } from '../../src/kubelet/claims/claims.ts';
import { podResourcesOptions } from '../../src/kubelet/options.ts';
import { createPodResourcesPoller } from '../../src/kubelet/poller.ts';
import { claimDeviceKey } from '../../src/model/claim-hardware.ts';
import { defaultValues } from '../../src/model/options.ts';
import { builtDocumentThread } from '../support/documents.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { MetadataDriver } from './support/metadata-driver.ts';

const missing = whyNoCluster();

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
  pod('share-a', { resourceClaimName: 'shared' }),
  pod('share-b', { resourceClaimName: 'shared' }),
  pod('both', { resourceClaimTemplateName: 'both' }),
];

describe.skipIf(missing !== undefined)(`claims of a real kubelet${missing === undefined ? '' : ` (${missing})`}`, () => {
  const cluster = new Cluster();
  const folder = mkdtempSync(join(tmpdir(), 'dra-'));
  const driver = new MetadataDriver(cluster);

  beforeAll(async () => {
    driver.build();
    await cluster.start(1);
    driver.start('one.example.com', 'm-0=0000:3b:00.2=,m-1=0000:3b:00.3=', '-metadata');
    driver.start('two.example.com', 'n-0==/dev/test/part0,n-1==/dev/test/part1');
    const file = join(folder, 'objects.json');
    writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }));
    await cluster.kubectl('apply', '-f', file);
  }, 300_000);
  afterAll(async () => {
    await cluster.stop();
    driver.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it('lead to the hardware that the drivers name, for shared claims and for several requests', async () => {
    const node = join(cluster.directory, 'node-1');
    mkdirSync(join(folder, 'sys'), { recursive: true });
    const socket = join(node, 'kubelet/pod-resources/kubelet.sock');
    const options = { ...defaultValues(podResourcesOptions), socket, checkpoint: '' };
    const poller = createPodResourcesPoller({ options, clock: systemClock, onChange() {} });
    const reader = new ClaimReader({
      metadataDirectory: join(node, 'kubelet/plugins'),
      cdiDirectories: [join(node, 'cdi')],
      sysfs: join(folder, 'sys'),
      forms: [],
      thread: builtDocumentThread(),
      clock: systemClock,
    });
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
    const address = (device: string): string => `0000:3b:00.${device === 'm-0' ? 2 : 3}`;
    await vi.waitFor(
      async () => {
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
      },
      { timeout: 60_000, interval: 500 },
    );
    poller.close();
  });
});
