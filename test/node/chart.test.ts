import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AllocatableResourcesResponse, PodResourcesListerClient } from '../../src/generated/podresources/v1/api.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { presetFile, presets, renderText } from '../support/chart.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();

interface Pod {
  readonly metadata: { readonly name: string; readonly uid: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName: string };
  readonly status: {
    readonly phase: string;
    readonly podIP: string;
    readonly containerStatuses?: readonly { readonly restartCount: number }[];
  };
}
interface List<T> {
  readonly items: readonly T[];
}

const HCA = 'example.com/hca';
const VF = 'example.com/vf';
const resource = (name: string, kind: string): object => ({
  resource: name,
  select: { family: 'infiniband', kind },
  // Simulated character devices are no devices.
  allocation: { strategies: ['envvar'], deviceNodes: [{ path: '/dev/widget-{id}', hostPath: '/dev/null' }] },
});

const values = (sysfs: string, resources: readonly object[]): object => ({
  image: { pullPolicy: 'Never' },
  plugin: { enabled: true },
  families: { nvidia: { enabled: false } },
  hostPaths: [{ name: 'simulation', hostPath: sysfs, mountPath: '/simulation' }],
  extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
  config: { plugin: { resources } },
});

const OVERLAYS = readdirSync('deploy/kustomize/overlays');

/** The published definitions of the operator's resources, from the Go module proxy; none where it cannot be reached. */
function customResources(): readonly string[] {
  const module = 'github.com/prometheus-operator/prometheus-operator@v0.85.0';
  const { status, stdout } = spawnSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8', cwd: tmpdir() });
  if (status !== 0) return [];
  const { Dir } = JSON.parse(stdout) as { Dir: string };
  const folder = join(Dir, 'example/prometheus-operator-crd');
  return ['podmonitors', 'servicemonitors', 'prometheusrules'].map((name) => join(folder, `monitoring.coreos.com_${name}.yaml`));
}

/** The same manifests under another name: those of the running release exist. */
function renamed(file: string): string {
  const text = readFileSync(file, 'utf8').replaceAll(/^( {2}name: device-agent)/gm, '$1-other');
  writeFileSync(file, text);
  return file;
}

describe.skipIf(missing !== undefined)(
  `the chart on a cluster of two nodes${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 4, 'infiniband.vf': 4 }) : (undefined as never);
    let directory: string;
    const inNamespace = ['-n', 'device-agent'];
    const clients = new Map<string, PodResourcesListerClient>();

    /** How many ids of a resource the kubelet of a node can allocate. */
    const allocatable = (node: string, name: string): Promise<number> => {
      const socket = join(cluster.directory, node, 'kubelet/pod-resources/kubelet.sock');
      const client = clients.get(node) ?? new PodResourcesListerClient(`unix:${socket}`, credentials.createInsecure());
      clients.set(node, client);
      return new Promise((resolve, reject) =>
        client.getAllocatableResources({}, (error, answer?: AllocatableResourcesResponse) => {
          if (error !== null) return reject(error);
          const ids = answer?.devices.filter(({ resourceName }) => resourceName === name).flatMap(({ deviceIds }) => deviceIds) ?? [];
          resolve(new Set(ids).size);
        }),
      );
    };
    const onNodes = (name: string): Promise<readonly number[]> => Promise.all(cluster.nodes().map((node) => allocatable(node, name)));
    const agents = async (): Promise<readonly Pod[]> =>
      (await cluster.json<List<Pod>>('get', 'pods', ...inNamespace, '-l', 'app.kubernetes.io/name=device-agent')).items;
    const hashes = async (): Promise<readonly (string | undefined)[]> =>
      Promise.all(
        (await agents()).map(async ({ status }) => {
          const page = await cluster.get(`http://${status.podIP}:9835/metrics`);
          return /^device_agent_config_hash (\S+)$/m.exec(page)?.[1];
        }),
      );
    const upgrade = (resources: readonly object[], ...words: readonly string[]): Promise<string> => {
      const file = join(directory, 'values.yaml');
      writeFileSync(file, JSON.stringify(values(join(machine.root, 'sys'), resources)));
      return cluster.helm('upgrade', '--install', 'device-agent', 'deploy/chart', ...inNamespace, '-f', file, ...words);
    };

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'device-agent-chart-'));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(2);
      await cluster.importImage(join(directory, 'image'));
      await cluster.kubectl('create', 'namespace', 'device-agent');
      await cluster.kubectl('label', 'namespace', 'device-agent', 'pod-security.kubernetes.io/enforce=privileged');
    });

    afterAll(async () => {
      for (const client of clients.values()) client.close();
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
    });

    it('is installed by the commands of the documentation, and both nodes show the resource', async () => {
      await upgrade([resource(HCA, 'pf')], '--wait', '--timeout=120s');
      await expect.poll(() => onNodes(HCA), { interval: 250 }).toEqual([4, 4]);
      const [first] = await agents();
      const listed = await cluster.kubectl('exec', ...inNamespace, first?.metadata.name ?? '', '--', 'device-agent', 'list');
      expect(listed).toContain('mlx5_0');
    });

    it('writes conditions of both nodes by the publisher, and removes them before it is uninstalled', async () => {
      const said = async (): Promise<readonly string[]> => {
        const { items } = await cluster.json<
          List<{ readonly status: { readonly conditions: readonly { type: string; status: string }[] } }>
        >('get', 'nodes');
        return items.map(({ status }) =>
          status.conditions
            .filter(({ type }) => type.startsWith('Devices'))
            .map(({ type, status: is }) => `${type}=${is}`)
            .toSorted()
            .join(' '),
        );
      };
      const well = 'DevicesMissing=False DevicesUnhealthy=False DevicesUnknown=False';
      await upgrade([resource(HCA, 'pf')], '--set=publish.enabled=true', '--wait', '--timeout=120s');
      await expect.poll(said, { interval: 500 }).toEqual([well, well]);
      const label = ['-l', 'app.kubernetes.io/name=device-agent-publish'];
      const { items } = await cluster.json<List<Pod>>('get', 'pods', ...inNamespace, ...label);
      for (const { metadata, spec } of items) {
        const text = await cluster.kubectl('exec', ...inNamespace, metadata.name, '--', 'device-agent', 'publish', '--withdraw');
        expect(text).toBe(`removed from the node ${spec.nodeName}: 3 conditions, 0 taint rules of devices, 0 taints\n`);
      }
      await cluster.kubectl('delete', 'daemonset', 'device-agent-publish', ...inNamespace, '--wait', '--cascade=foreground');
      expect(await said()).toEqual(['', '']);
      await upgrade([resource(HCA, 'pf')], '--wait', '--timeout=120s');
    });

    it('shows the node in a terminal of its pod, at each size, and ends on q', async () => {
      const [first] = await agents();
      const words = ['exec', '-it', ...inNamespace, first?.metadata.name ?? '', '--', 'device-agent', 'top'];
      const terminal = cluster.kubectlTerminal({ columns: 120, rows: 30 }, ...words);
      const node = `${first?.spec.nodeName} · `;
      // The last line of the screen has the keys. Its text is as wide as the screen allows.
      expect(await terminal.until(/ mlx5_3 .*\n[\s\S]*Enter device .* n placement\n$/)).toContain(node);
      expect(terminal.isAlternate).toBe(true);
      terminal.resize(70, 14);
      expect(await terminal.until(/Enter device (?!.* n placement).*\n$/)).toContain(node);
      terminal.resize(160, 40);
      await terminal.until(/ n placement\n$/);
      terminal.type('q');
      expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
      expect(terminal.isAlternate).toBe(false);
    });

    it('gives a pod a device and the variables that name it', async () => {
      const pod = {
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'job' } },
        spec: {
          automountServiceAccountToken: false,
          containers: [
            {
              ...{ name: 'main', image: 'device-agent:0.1.0', imagePullPolicy: 'Never' },
              command: ['/nodejs/bin/node', '-e', 'console.log(JSON.stringify(process.env)); setInterval(() => {}, 60000)'],
              resources: { limits: { [HCA]: 2 } },
            },
          ],
        },
      };
      const file = join(directory, 'pod.json');
      writeFileSync(file, JSON.stringify(pod));
      await cluster.kubectl('apply', '-f', file);
      await cluster.kubectl('wait', '--for=condition=Ready', 'pod/job', '--timeout=60s');
      const variables = JSON.parse(await cluster.kubectl('logs', 'job')) as Readonly<Record<string, string>>;
      const devices = variables.DEVICE_AGENT_DEVICES_EXAMPLE_COM_HCA?.split(',') ?? [];
      expect(devices).toHaveLength(2);
      for (const device of devices) expect(device).toMatch(/^mlx5_[0-3]$/);
      expect(variables.PCIDEVICE_EXAMPLE_COM_HCA?.split(',')).toHaveLength(2);
      const { spec } = await cluster.json<Pod>('get', 'pod', 'job');
      const agent = (await agents()).find((one) => one.spec.nodeName === spec.nodeName);
      const page = (): Promise<string> => cluster.get(`http://${agent?.status.podIP}:9835/metrics`);
      await expect.poll(page, { interval: 250 }).toContain(`pod="job",container="main",resource="${HCA}",device="${devices[0]}"`);
    });

    it('follows a changed configuration on both nodes without a restart', async () => {
      const before = await agents();
      const [old] = await hashes();
      const startMs = Date.now();
      await upgrade([resource(HCA, 'pf'), resource(VF, 'vf')]);
      await expect.poll(() => onNodes(VF), { interval: 500 }).toEqual([4, 4]);
      process.stderr.write(`both nodes followed after ${Math.round((Date.now() - startMs) / 1_000)} s\n`);
      const after = await hashes();
      expect(new Set(after).size).toBe(1);
      expect(after[0]).not.toBe(old);
      const now = await agents();
      expect(now.map(({ metadata }) => metadata.uid).toSorted()).toEqual(before.map(({ metadata }) => metadata.uid).toSorted());
      expect(now.flatMap(({ status }) => status.containerStatuses?.map(({ restartCount }) => restartCount))).toEqual([0, 0]);
    });

    it('keeps the resources on offer during a rolling update, and disturbs no pod', async () => {
      const job = await cluster.json<Pod>('get', 'pod', 'job');
      let isWatching = true;
      const emptyMs = new Map<string, number>();
      const watching = cluster.nodes().map(async (node) => {
        let atMs = Date.now();
        while (isWatching) {
          const count = await allocatable(node, HCA).catch(() => 0);
          const nowMs = Date.now();
          if (count === 0) emptyMs.set(node, (emptyMs.get(node) ?? 0) + nowMs - atMs);
          atMs = nowMs;
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      });
      const before = new Set((await agents()).map(({ metadata }) => metadata.uid));
      await upgrade([resource(HCA, 'pf'), resource(VF, 'vf')], '--set=podAnnotations.again=yes', '--wait', '--timeout=120s');
      await expect.poll(async () => (await agents()).filter(({ metadata }) => before.has(metadata.uid)).length, { interval: 250 }).toBe(0);
      isWatching = false;
      await Promise.all(watching);
      process.stderr.write(`empty for milliseconds, by node: ${JSON.stringify(Object.fromEntries(emptyMs))}\n`);
      for (const ms of emptyMs.values()) expect(ms).toBeLessThan(1_000);
      const { metadata, status } = await cluster.json<Pod>('get', 'pod', 'job');
      expect([metadata.uid, status.phase, status.containerStatuses?.[0]?.restartCount]).toEqual([job.metadata.uid, 'Running', 0]);
    });

    it('has manifests that the API server accepts, strictly, with each preset', async () => {
      const definitions = customResources();
      for (const file of definitions) await cluster.kubectl('create', '-f', file);
      await cluster.kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
      for (const preset of presets) {
        const file = join(directory, `${preset}.yaml`);
        writeFileSync(
          file,
          renderText('-f', presetFile(preset), ...(definitions.length === 0 ? ['--set=podMonitor.enabled=false,rules.enabled=false'] : [])),
        );
        const created = await cluster.kubectl('create', '--dry-run=server', '--validate=strict', '-f', renamed(file));
        expect(created, preset).toContain('daemonset.apps/');
        if (preset === 'prometheus-operator' && definitions.length > 0) {
          expect(created).toContain('podmonitor.monitoring.coreos.com/');
          expect(created).toContain('prometheusrule.monitoring.coreos.com/');
        }
      }
      for (const overlay of ['base', ...OVERLAYS.map((name) => `overlays/${name}`)]) {
        const file = join(directory, 'overlay.yaml');
        writeFileSync(file, await cluster.kubectl('kustomize', resolve('deploy/kustomize', overlay)));
        expect(await cluster.kubectl('create', '--dry-run=server', '--validate=strict', '-f', renamed(file)), overlay).toContain(
          'daemonset.apps/',
        );
      }
    });

    it('sees the open files of every process of its node with the value for that, and not without', async () => {
      const look = `const fs = require('node:fs');
        let hidden = 0;
        for (const pid of fs.readdirSync('/host/proc').filter((name) => /^[1-9]/.test(name)))
          try {
            const fd = fs.readdirSync('/host/proc/' + pid + '/fd')[0];
            if (fd !== undefined) fs.readFileSync('/host/proc/' + pid + '/fdinfo/' + fd);
          } catch (error) { if (error.code === 'EACCES') hidden += 1; }
        console.log(hidden);`;
      const hidden = async (): Promise<number> => {
        const pods = (await agents()).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
        const exec = ['exec', ...inNamespace, pods[0]?.metadata.name ?? '', '--', '/nodejs/bin/node', '-e', look];
        return Number(await cluster.kubectl(...exec));
      };
      expect(await hidden()).toBeGreaterThan(0);
      await upgrade([resource(HCA, 'pf')], '--set=processes.enabled=true', '--wait', '--timeout=120s');
      await expect.poll(hidden, { interval: 500 }).toBe(0);
    });

    it('leaves nothing behind when it is uninstalled', async () => {
      await cluster.kubectl('delete', 'pod', 'job', '--grace-period=1');
      await cluster.helm('uninstall', 'device-agent', ...inNamespace, '--wait', '--timeout=60s');
      const kinds = 'daemonsets,pods,services,serviceaccounts,configmaps,resourcequotas,networkpolicies,secrets';
      const left = async (): Promise<readonly unknown[]> =>
        (await cluster.json<List<unknown>>('get', kinds, ...inNamespace, '-l', 'app.kubernetes.io/instance=device-agent')).items;
      await expect.poll(left).toEqual([]);
      await expect.poll(() => onNodes(HCA)).toEqual([0, 0]);
      expect(cluster.nodes().flatMap((node) => cluster.pluginSockets(node))).toEqual([]);
    });
  },
);
