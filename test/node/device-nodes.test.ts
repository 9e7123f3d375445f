import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { presetFile } from '../support/chart.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();
const IN_NAMESPACE = ['-n', 'device-agent'];

interface Pods {
  readonly items: readonly { readonly metadata: { readonly name: string }; readonly status: { readonly podIP: string } }[];
}

describe.skipIf(missing !== undefined)(
  `the preset of the device plugin and the device nodes of a real node${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 2 }) : (undefined as never);
    let directory: string;
    let aliases: readonly object[] = [];

    /** The chart with the unchanged preset. Only sysfs is simulated: the nodes of the hardware are in the `/dev` of the node. */
    const install = (...words: readonly string[]): Promise<string> => {
      const file = join(directory, 'values.yaml');
      const simulated = {
        image: { pullPolicy: 'Never' },
        hostPaths: [{ name: 'simulation', hostPath: join(machine.root, 'sys'), mountPath: '/simulation' }],
        extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
        test: { hostAliases: aliases },
      };
      writeFileSync(file, JSON.stringify(simulated));
      const files = ['-f', presetFile('device-plugin'), '-f', file];
      return cluster.helm('upgrade', '--install', 'device-agent', 'deploy/chart', ...IN_NAMESPACE, ...files, ...words);
    };
    const agent = async () =>
      (await cluster.json<Pods>('get', 'pods', ...IN_NAMESPACE, '-l', 'app.kubernetes.io/name=device-agent')).items[0];
    const page = async (): Promise<string> => cluster.get(`http://${(await agent())?.status.podIP}:9835/metrics`).catch(() => '');
    const allocatable = async (): Promise<string | undefined> =>
      (await cluster.json<{ status: { allocatable: Record<string, string> } }>('get', 'node', 'node-1')).status.allocatable['rdma/hca'];

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'device-agent-nodes-'));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(1);
      const names = readdirSync(join(machine.root, 'dev/infiniband'));
      // The node gets a /dev of its own, with character devices that do nothing in the place of those of the HCAs.
      await cluster.inNode(
        'node-1',
        `set -e; mkdir /run/dev; mount -t tmpfs -o mode=755 dev /run/dev; mkdir /run/dev/infiniband
         for name in null zero full random urandom tty kmsg; do cp -a /dev/$name /run/dev/ || true; done
         for name in pts shm; do mkdir /run/dev/$name; mount --rbind /dev/$name /run/dev/$name || true; done
         mkdir /run/dev/mqueue; ln -s pts/ptmx /run/dev/ptmx; ln -s /proc/self/fd /run/dev/fd
         for name in ${names.join(' ')}; do mknod /run/dev/infiniband/$name c 1 3; done
         mknod /run/dev/other c 240 7
         mount --rbind /run/dev /dev`,
      );
      await cluster.importImage(join(directory, 'image'));
      await cluster.kubectl('create', 'namespace', 'device-agent');
      await cluster.kubectl('label', 'namespace', 'device-agent', 'pod-security.kubernetes.io/enforce=privileged');
      await install('--wait', '--timeout=120s');
    });

    afterAll(async () => {
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
    });

    it('offers the adapters, and disables no check but that of the kernel log, which the preset does not read', async () => {
      await expect.poll(allocatable, { interval: 500 }).toBe('2');
      const disabled = [...(await page()).matchAll(/device_agent_checks_disabled\{[^}]*check="([\w-]+)"/g)].map(([, check]) => check);
      expect(disabled).toEqual(['kernel-log']);
    });

    it('passes its own test, by the addresses of the agents where no name is known', async () => {
      const ip = (await agent())?.status.podIP;
      aliases = [{ ip, hostnames: ['device-agent.device-agent.svc'] }];
      await install('--wait', '--timeout=120s');
      expect(await cluster.helm('test', 'device-agent', ...IN_NAMESPACE, '--timeout=120s')).toContain('Succeeded');
      expect((await agent())?.status.podIP).toBe(ip);
    });

    it('gives a pod every character device of its adapter, and rdma_cm', async () => {
      const container = {
        ...{ name: 'main', image: 'device-agent:0.1.0', imagePullPolicy: 'Never' },
        command: ['/nodejs/bin/node', '-e', 'console.log(fs.readdirSync("/dev/infiniband").join(" ")); setInterval(() => {}, 60000)'],
        resources: { limits: { 'rdma/hca': 1 } },
      };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'job' }, spec: { containers: [container] } };
      const file = join(directory, 'pod.json');
      writeFileSync(file, JSON.stringify(pod));
      await cluster.kubectl('apply', '-f', file);
      await cluster.kubectl('wait', '--for=condition=Ready', 'pod/job', '--timeout=60s');
      const names = (await cluster.kubectl('logs', 'job')).trim().split(' ');
      expect(names).toContain('rdma_cm');
      expect(names.filter((name) => name.startsWith('uverbs'))).toHaveLength(1);
    });

    it('lets the agent list the device nodes of the host, and open none of the hardware', async () => {
      const look = `const open = (name) => { try { fs.closeSync(fs.openSync('/host/dev/' + name, 'r')); return 'opened'; } catch (error) { return error.code; } };
        console.log(JSON.stringify([fs.existsSync('/host/dev/other'), open('other'), open('kmsg')]));`;
      const name = (await agent())?.metadata.name ?? '';
      const told = await cluster.kubectl('exec', ...IN_NAMESPACE, name, '--', '/nodejs/bin/node', '-e', look);
      expect(JSON.parse(told)).toEqual([true, 'EPERM', 'EPERM']);
    });

    it('finds an adapter unhealthy whose character device was removed on the node, and offers it no more', async () => {
      await cluster.inNode('node-1', 'rm /dev/infiniband/uverbs1');
      await expect.poll(page, { interval: 500 }).toMatch(/device_health_condition\{.*condition="CharDeviceMissing".* 1/);
      await expect.poll(allocatable, { interval: 500 }).toBe('1');
    });

    it('says what it cannot check without the device nodes of the host', async () => {
      await install('--wait', '--timeout=120s', '--set=plugin.enabled=false,config.plugin=null');
      await expect
        .poll(page, { interval: 500 })
        .toContain('device_agent_checks_disabled{family="infiniband",check="character-devices",reason="nodes-hidden"} 1');
    });
  },
);
