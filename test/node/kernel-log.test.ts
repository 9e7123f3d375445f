import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { presetFile } from '../support/chart.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();
const WAIT = { interval: 500 };

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly status: {
      readonly podIP: string;
      readonly containerStatuses: readonly { readonly name: string; readonly ready: boolean; readonly restartCount: number }[];
    };
  }[];
}

describe.skipIf(missing !== undefined)(
  `the preset of the kernel log on a real node${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 2 }) : (undefined as never);
    let directory: string;

    const pod = async () =>
      (await cluster.json<Pods>('get', 'pods', '-n', 'device-agent', '-l', 'app.kubernetes.io/name=device-agent')).items[0];
    const page = async (): Promise<string> => cluster.get(`http://${(await pod())?.status.podIP}:9835/metrics`).catch(() => '');
    /** Runs a program of Node in a container of the pod. */
    const inContainer = async (container: string, program: string): Promise<string> => {
      const name = (await pod())?.metadata.name ?? '';
      return (await cluster.kubectl('exec', '-n', 'device-agent', name, '-c', container, '--', '/nodejs/bin/node', '-e', program)).trim();
    };

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'device-agent-kernel-log-'));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(1);
      await cluster.importImage(join(directory, 'image'));
      await cluster.kubectl('create', 'namespace', 'device-agent');
      await cluster.kubectl('label', 'namespace', 'device-agent', 'pod-security.kubernetes.io/enforce=privileged');
      const file = join(directory, 'values.yaml');
      const simulated = {
        image: { pullPolicy: 'Never' },
        hostPaths: [{ name: 'simulation', hostPath: join(machine.root, 'sys'), mountPath: '/simulation' }],
        extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
      };
      writeFileSync(file, JSON.stringify(simulated));
      const files = ['-f', presetFile('kernel-log'), '-f', file];
      await cluster.helm('install', 'device-agent', 'deploy/chart', '-n', 'device-agent', ...files, '--wait', '--timeout=120s');
    });

    afterAll(async () => {
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
    });

    it('runs the agent and the reader, and disables no check of the log', async () => {
      expect((await pod())?.status.containerStatuses.map(({ name, ready }) => [name, ready])).toEqual([
        ['device-agent', true],
        ['kernel-log', true],
      ]);
      await expect.poll(page, WAIT).toContain('device_healthy{');
      await expect.poll(page, WAIT).not.toContain('check="kernel-log"');
    });

    it('gives the agent no right, no device and no way to write to the directory of the socket', async () => {
      const look = `const code = (run) => { try { run(); return 'done'; } catch (error) { return error.code; } };
        const [, capabilities] = /CapEff:\\s*(\\w+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'));
        console.log(JSON.stringify([capabilities, code(() => fs.openSync('/dev/kmsg', 'r')), code(() => fs.writeFileSync('/run/kernel-log/x', ''))]));`;
      expect(JSON.parse(await inContainer('device-agent', look))).toEqual(['0000000000000000', 'ENOENT', 'EROFS']);
    });

    it('gives the reader nothing of the node but the device', async () => {
      const look = `console.log(fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\\n').map((line) => line.split(' ')[4]).join('\\n'))`;
      const mounts = (await inContainer('kernel-log', look)).split('\n');
      const own = mounts.filter(
        (path) => path !== '' && !/^\/(?:$|proc|sys|dev$|dev\/(?:pts|mqueue|shm|termination-log)|etc\/)/.test(path),
      );
      expect(own.toSorted()).toEqual(['/dev/kmsg', '/run/kernel-log']);
    });

    it('passes the records of this machine on to the container of the agent', async () => {
      const ask = `const client = net.connect('/run/kernel-log/socket', () => client.write('?'));
        client.once('data', (bytes) => { console.log(bytes.toString('latin1').slice(0, 200)); process.exit(); });`;
      expect(await inContainer('device-agent', `const net = require('net'); ${ask}`)).toMatch(/^r..\d+,\d+,\d+,[^;]*;/s);
    });

    it('reads on when the kubelet has started the reader again, and the agent stays as it was', async () => {
      await inContainer('kernel-log', `process.kill(1, 'SIGTERM')`).catch(() => undefined);
      const restarts = async () => (await pod())?.status.containerStatuses.find(({ name }) => name === 'kernel-log')?.restartCount;
      await expect.poll(restarts, WAIT).toBe(1);
      await expect.poll(page, WAIT).not.toContain('check="kernel-log"');
      expect((await pod())?.status.containerStatuses[0]?.restartCount).toBe(0);
    });
  },
);
