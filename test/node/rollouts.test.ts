import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { credentials } from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ListPodResourcesResponse, PodResourcesListerClient } from '../../src/generated/podresources/v1/api.ts';
import { decodeSaved } from '../../src/host/fs/saved-state.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { Cluster, whyNoCluster } from './support/cluster.ts';
import { makeImage, whyNoImage } from './support/oci-image.ts';

const missing = whyNoCluster() ?? whyNoImage();
/** Half of them with two agents at a time, half with one. Twenty were run by ROLLOUTS=20. */
const ROLLOUTS = Number(process.env.ROLLOUTS ?? 2);
const HCA = 'example.com/hca';
const NAMESPACE = ['-n', 'device-agent'];
const SURGE = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } };
const NO_SURGE = { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };
/** Of the publisher's word that the agent is away. */
const MOST_AWAY_MS = 10_000;
const STATE = '/var/lib/device-agent';

interface ContainerStatus {
  readonly name: string;
  readonly containerID: string;
  readonly restartCount: number;
  readonly state: { readonly running?: { readonly startedAt: string } };
}
interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly spec: { readonly nodeName: string };
  readonly status: { readonly podIP: string; readonly containerStatuses?: readonly ContainerStatus[] };
}
interface NodeObject {
  readonly metadata: { readonly name: string };
  readonly status: { readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[] };
}
interface List<T> {
  readonly items: readonly T[];
}

describe.skipIf(missing !== undefined)(
  `updates of the agent on a cluster of two nodes${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    const cluster = missing === undefined ? new Cluster() : (undefined as never);
    const machine = missing === undefined ? new Machine({ infiniband: 4 }) : (undefined as never);
    const clients = new Map<string, PodResourcesListerClient>();
    let directory: string;
    let isOver = false;
    let churning: Promise<void> | undefined;
    let watching: Promise<void> | undefined;
    /** Longest time without another word, by node. */
    const awayMs = new Map<string, number>();
    /** Words of the conditions that are not about a node without fault. */
    const others = new Set<string>();

    const agents = async (): Promise<readonly Pod[]> => {
      const { items } = await cluster.json<List<Pod>>('get', 'pods', ...NAMESPACE, '-l', 'app.kubernetes.io/name=device-agent');
      return items.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
    };
    const upgrade = (updateStrategy: object, again: string): Promise<string> => {
      const file = join(directory, 'values.yaml');
      const values = {
        image: { pullPolicy: 'Never' },
        plugin: { enabled: true },
        publish: { enabled: true },
        families: { nvidia: { enabled: false } },
        hostPaths: [{ name: 'simulation', hostPath: join(machine.root, 'sys'), mountPath: '/simulation' }],
        extraEnv: [{ name: 'DEVICE_AGENT_PATH_SYSFS', value: '/simulation' }],
        updateStrategy,
        podAnnotations: { again },
        config: {
          plugin: {
            resources: [
              {
                resource: HCA,
                select: { family: 'infiniband', kind: 'pf' },
                // Simulated character devices are no devices.
                allocation: { strategies: ['envvar'], deviceNodes: [{ path: '/dev/widget-{id}', hostPath: '/dev/null' }] },
              },
            ],
          },
        },
      };
      writeFileSync(file, JSON.stringify(values));
      return cluster.helm('upgrade', '--install', 'device-agent', 'deploy/chart', ...NAMESPACE, '-f', file, '--wait', '--timeout=300s');
    };
    const clientOf = (node: string): PodResourcesListerClient => {
      const socket = join(cluster.directory, node, 'kubelet/pod-resources/kubelet.sock');
      const client = clients.get(node) ?? new PodResourcesListerClient(`unix:${socket}`, credentials.createInsecure());
      clients.set(node, client);
      return client;
    };
    const list = (node: string): Promise<ListPodResourcesResponse> =>
      new Promise((resolve, reject) => clientOf(node).list({}, (error, answer) => (error === null ? resolve(answer) : reject(error))));
    /** How many of the devices the kubelet gives away. */
    const allocatable = (node: string): Promise<number> =>
      new Promise((resolve, reject) =>
        clientOf(node).getAllocatableResources({}, (error, answer) => {
          if (error !== null) return reject(error);
          resolve(answer.devices.filter(({ resourceName }) => resourceName === HCA).flatMap(({ deviceIds }) => deviceIds).length);
        }),
      );
    /** `pod device` of each allocation, as the kubelet has them. */
    const allocated = async (node: string): Promise<readonly string[]> =>
      (await list(node)).podResources
        .flatMap(({ name, containers }) =>
          containers.flatMap(({ devices }) =>
            devices.filter(({ resourceName }) => resourceName === HCA).flatMap(({ deviceIds }) => deviceIds.map((id) => `${name} ${id}`)),
          ),
        )
        .toSorted();
    const shown = (page: string): readonly string[] =>
      page
        .split('\n')
        .filter((line) => line.startsWith('container_device_allocation{') && line.includes(`resource="${HCA}"`))
        .map((line) => `${/pod="([^"]*)"/.exec(line)?.[1]} ${/device="([^"]*)"/.exec(line)?.[1]}`)
        .toSorted();
    const pageOf = async (node: string): Promise<string> => {
      const pod = (await agents()).find(({ spec }) => spec.nodeName === node);
      return await cluster.get(`http://${pod?.status.podIP}:9835/metrics`);
    };

    /** Kills the process of a container, which a signal from inside would not do. */
    const kill = (containerId: string): void => {
      const id = containerId.slice(containerId.lastIndexOf('/') + 1);
      const isIn = (pid: string): boolean => {
        try {
          return readFileSync(`/proc/${pid}/cgroup`, 'utf8').includes(id);
        } catch {
          return false;
        }
      };
      for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isIn(name))) process.kill(Number(pid), 'SIGKILL');
    };

    /** Pods come and go on both nodes. */
    async function churn(): Promise<void> {
      const file = join(directory, 'job.json');
      for (let round = 0; !isOver; round += 1) {
        const name = `job-${round}`;
        const container = { name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never', resources: { limits: { [HCA]: 1 } } };
        const spec = { terminationGracePeriodSeconds: 0, nodeName: undefined, containers: [container] };
        writeFileSync(file, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels: { churn: 'yes' } }, spec }));
        await cluster.kubectl('apply', '-f', file).catch(() => '');
        await sleep(1_000);
        if (round >= 4) await cluster.kubectl('delete', 'pod', `job-${round - 4}`, '--wait=false').catch(() => '');
      }
    }

    async function watch(): Promise<void> {
      const sinceMs = new Map<string, number>();
      while (!isOver) {
        const { items } = await cluster.json<List<NodeObject>>('get', 'nodes').catch(() => ({ items: [] as readonly NodeObject[] }));
        for (const { metadata, status } of items) {
          for (const { type, status: is, reason } of status.conditions)
            if (type.startsWith('Devices') && is !== 'False') others.add(`${type} ${is} ${reason}`);
          const isAway = status.conditions.some(({ reason }) => reason === 'AgentAway');
          if (!isAway) sinceMs.delete(metadata.name);
          else if (!sinceMs.has(metadata.name)) sinceMs.set(metadata.name, Date.now());
          const ms = isAway ? Date.now() - (sinceMs.get(metadata.name) ?? Date.now()) : 0;
          awayMs.set(metadata.name, Math.max(awayMs.get(metadata.name) ?? 0, ms));
        }
        await sleep(250);
      }
    }

    beforeAll(async () => {
      directory = mkdtempSync(join(tmpdir(), 'device-agent-rollouts-'));
      expect(makeImage(join(directory, 'image'))).toBeUndefined();
      await cluster.start(2);
      await cluster.importImage(join(directory, 'image'));
      await cluster.kubectl('create', 'namespace', 'device-agent');
      await cluster.kubectl('label', 'namespace', 'device-agent', 'pod-security.kubernetes.io/enforce=privileged');
      await upgrade(SURGE, 'first');
    });

    afterAll(async () => {
      isOver = true;
      await Promise.all([churning, watching]);
      for (const client of clients.values()) client.close();
      await cluster.stop();
      machine.remove();
      rmSync(directory, { recursive: true });
    });

    it(`${ROLLOUTS} of them, with surge and without, under churn`, async () => {
      const conditions = async (): Promise<readonly string[]> =>
        (await cluster.json<List<NodeObject>>('get', 'nodes')).items.map(({ status }) =>
          status.conditions
            .filter(({ type }) => type.startsWith('Devices'))
            .map(({ status: is }) => is)
            .join(' '),
        );
      await expect.poll(conditions, { interval: 500 }).toEqual(['False False False', 'False False False']);
      churning = churn();
      watching = watch();
      for (let round = 1; round <= ROLLOUTS; round += 1) {
        await upgrade(round % 2 === 1 ? SURGE : NO_SURGE, `round ${round}`);
        for (const node of cluster.nodes()) {
          const where = `round ${round}, ${node}`;
          await expect.poll(() => pageOf(node).catch(() => ''), { interval: 250 }).toContain('device_agent_socket_up{socket="control"} 1');
          const pod = (await agents()).find(({ spec }) => spec.nodeName === node);
          const health = await cluster.kubectl('exec', ...NAMESPACE, pod?.metadata.name ?? '', '--', 'device-agent', 'health');
          expect(health, where).toBe('4 of 4 devices healthy\n');
          await expect
            .poll(
              async () => {
                // Pods come and go: both lists are of one state only when the kubelet's is the same before and after.
                const before = await allocated(node);
                const page = shown(await pageOf(node).catch(() => ''));
                const after = await allocated(node);
                return JSON.stringify(before) === JSON.stringify(after) && JSON.stringify(page) === JSON.stringify(after);
              },
              { interval: 100 },
            )
            .toBe(true);
          for (const name of ['health.json', 'usage.json']) {
            const text = await cluster.shell(node, `cat ${STATE}/${name}`, '/');
            const { format, version } = JSON.parse(text.slice(0, text.indexOf('\n'))) as { format: string; version: number };
            expect(decodeSaved({ format, version, name }, text).ignored, `${where}, ${name}`).toBeUndefined();
          }
          expect(await cluster.shell(node, `ls -A ${STATE} | grep -E '^\\.|\\.unused$' || true`, '/'), where).toBe('');
        }
        process.stderr.write(`rollout ${round} of ${ROLLOUTS}: away at most ${JSON.stringify(Object.fromEntries(awayMs))} ms\n`);
      }
      for (const [node, ms] of awayMs) expect(ms, node).toBeLessThan(MOST_AWAY_MS);
      expect(await conditions()).toEqual(['False False False', 'False False False']);
      expect([...others], 'an update changes no condition').toEqual([]);
    });

    it('an agent that was killed three times has its resource again as soon as its container runs', async () => {
      const node = cluster.nodes()[0] ?? '';
      const agent = async (): Promise<ContainerStatus | undefined> =>
        (await agents()).find(({ spec }) => spec.nodeName === node)?.status.containerStatuses?.find(({ name }) => name === 'device-agent');
      const secondsSince = (ms: number): number => Math.round((Date.now() - ms) / 100) / 10;
      for (let round = 1; round <= 3; round += 1) {
        const before = await agent();
        await expect.poll(() => allocatable(node), { interval: 100 }).toBe(4);
        const killedMs = Date.now();
        kill(before?.containerID ?? '');
        await expect.poll(() => allocatable(node), { interval: 50 }).toBe(0);
        const goneAfter = secondsSince(killedMs);
        // The kubelet waits before it starts a container again that ended often: 0, 10 and 20 seconds.
        let now: ContainerStatus | undefined;
        await expect
          .poll(
            async () => {
              now = await agent();
              return now?.containerID !== before?.containerID && now?.state.running !== undefined;
            },
            { interval: 200 },
          )
          .toBe(true);
        await expect.poll(() => allocatable(node), { interval: 50 }).toBe(4);
        const backAfter = secondsSince(killedMs);
        const startedAfter = (Date.parse(now?.state.running?.startedAt ?? '') - killedMs) / 1_000;
        process.stderr.write(
          `kill ${round}: resource gone after ${goneAfter} s, container started after ${startedAfter} s, resource back after ${backAfter} s\n`,
        );
      }
    });
  },
);
