import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Machine } from '../kubelet/real/support/machine.ts';
import { seriesOf } from '../kubelet/real/support/watched-node.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Cluster, whyNoControlPlane } from './support/cluster.ts';

const why = whyNoControlPlane();
if (why !== undefined) process.stderr.write(`skipped: users of a GPU on a cluster, ${why}\n`);

const WAIT = { interval: 200 };
const GPU = 'nvidia.com/gpu';
const MIB = 1_048_576;
/** Each second the processes use other amounts of memory. */
const SECONDS = 30;

const HOLDER = { namespace: 'kai-resource-reservation', pod: 'gpu-reservation-node-1-abcde' } as const;
const PODS = {
  [HOLDER.pod]: { namespace: HOLDER.namespace, gpus: 1 },
  job: { namespace: 'team-c', gpus: 1 },
  'frac-a': { namespace: 'team-a', gpus: 0 },
  'frac-b': { namespace: 'team-b', gpus: 0 },
  thief: { namespace: 'team-d', gpus: 0 },
} as const;
type Pod = keyof typeof PODS & string;

const CONFIG = {
  plugin: {
    resources: [
      {
        resource: GPU,
        select: { family: 'nvidia', kind: 'gpu' },
        idStrategy: 'uuid',
        // The simulated character devices are no devices: the container is given one that is, under their names.
        allocation: { strategies: ['envvar'], env: { HELD: '{id}' }, deviceNodes: [{ path: '/dev/gpu-{id}', hostPath: '/dev/null' }] },
      },
    ],
  },
  health: { conditions: { 'nvidia.HeldByStranger': { for: '3s' } } },
};

interface PodObject {
  readonly metadata: { readonly uid: string };
  readonly status: { readonly phase: string; readonly containerStatuses?: readonly { readonly containerID?: string }[] };
}

const objects = (names: readonly Pod[]): object[] =>
  names.flatMap((name) => {
    const { namespace, gpus } = PODS[name];
    const container = { name: 'main', image: 'localhost/pause:1', imagePullPolicy: 'Never', args: ['show'] };
    const resources = gpus === 0 ? {} : { resources: { limits: { [GPU]: gpus } } };
    return [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace },
        spec: { terminationGracePeriodSeconds: 0, containers: [{ ...container, ...resources }] },
      },
    ];
  });

/** Memory in MiB of each pod's process on a GPU. */
type Truth = Readonly<Partial<Record<Pod, number>>>;

const amounts = (page: string, device: string, name = 'container_device_memory_used_bytes'): Truth =>
  Object.fromEntries(
    seriesOf(page, name)
      .filter((labels) => labels.device === device)
      .map((labels) => [labels.pod, (seriesValue(page, name, labels as Record<string, string>) ?? 0) / MIB]),
  );

describe.skipIf(why !== undefined)('a reservation pod and the pods that use its GPU, on a stock cluster', () => {
  let cluster: Cluster;
  let machine: Machine;
  let agent: ServedAgent;
  let directory: string;
  let document = '';
  const pids = new Map<Pod, number>();
  const uids = new Map<Pod, string>();
  const gpuOf = new Map<Pod, string>();

  /** The driver tells these processes from now on, by the UUID of the GPU. */
  const run = (on: Readonly<Record<string, Truth>>): void => {
    const text = document.replaceAll(/<gpu id=[\s\S]*?<\/gpu>/g, (gpu) => {
      const uuid = /<uuid>([^<]+)<\/uuid>/.exec(gpu)?.[1] ?? '';
      // As the program prints it: an element in a line.
      const rows = Object.entries(on[uuid] ?? {}).flatMap(([pod, mib]) => [
        '<process_info>',
        '<gpu_instance_id>N/A</gpu_instance_id>',
        '<compute_instance_id>N/A</compute_instance_id>',
        `<pid>${pids.get(pod as Pod)}</pid>`,
        '<type>C</type>',
        '<process_name>pause</process_name>',
        `<used_memory>${mib} MiB</used_memory>`,
        '</process_info>',
      ]);
      return gpu.replace(/<processes>[\s\S]*?<\/processes>|<processes\s*\/>/, ['<processes>', ...rows, '</processes>'].join('\n'));
    });
    const path = join(machine.root, 'bin/nvidia-smi.xml');
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };

  const podNow = (name: Pod) => cluster.json<PodObject>('get', 'pod', name, '-n', PODS[name].namespace);

  /** Makes the pods, and finds the process of each on the machine. */
  async function add(names: readonly Pod[]): Promise<void> {
    const manifest = join(directory, 'objects.json');
    writeFileSync(manifest, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects(names) }));
    await cluster.kubectl('apply', '-f', manifest);
    for (const name of names) {
      await expect.poll(async () => (await podNow(name)).status.phase, WAIT).toBe('Running');
      const { metadata, status } = await podNow(name);
      const id = (status.containerStatuses?.[0]?.containerID ?? '').replace('containerd://', '');
      const pid = readdirSync('/proc').find((one) => /^\d+$/.test(one) && cgroupOf(one).includes(id));
      if (pid === undefined) throw new Error(`no process of ${name}`);
      uids.set(name, metadata.uid);
      pids.set(name, Number(pid));
      // The agent reads the real cgroup of the real process.
      symlinkSync(`/proc/${pid}`, join(machine.root, 'proc', pid));
      if (PODS[name].gpus > 0) {
        const output = () => cluster.kubectl('logs', name, '-n', PODS[name].namespace);
        await expect.poll(output, WAIT).toContain('HELD=');
        gpuOf.set(name, /HELD=(\S+)/.exec(await output())?.[1] ?? '');
      }
    }
  }

  const cgroupOf = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cgroup`, 'utf8');
    } catch {
      return '';
    }
  };
  const flags = (): string[] => {
    const kubelet = join(cluster.directory, 'node-1/kubelet');
    return [
      '--refresh.interval=1s',
      `--podresources.socket=${kubelet}/pod-resources/kubelet.sock`,
      `--podresources.checkpoint=${kubelet}/device-plugins/kubelet_internal_checkpoint`,
      `--podsapi.socket=${kubelet}/pods-api/pods-api.sock`,
    ];
  };
  const usageByPod = async (): Promise<Readonly<Record<string, { shareSeconds: number; delegatedSeconds?: number }>>> => {
    const answer = await (await fetch(`${agent.url}/api/usage?by=pod&since=1h`)).json();
    const { rows } = answer as { rows: { name: string; shareSeconds: number; delegatedSeconds?: number }[] };
    return Object.fromEntries(rows.map((row) => [row.name, row]));
  };
  const conditionsOf = (page: string, device: string): readonly (string | undefined)[] =>
    seriesOf(page, 'device_health_condition')
      .filter((labels) => labels.device === device && seriesValue(page, 'device_health_condition', labels as Record<string, string>) === 1)
      .map(({ condition }) => condition);

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'users-'));
    machine = new Machine({ nvidia: 2 });
    document = readFileSync(join(machine.root, 'bin/nvidia-smi.xml'), 'utf8');
    cluster = new Cluster();
    await cluster.start(1);
    const config = join(directory, 'config.json');
    writeFileSync(config, JSON.stringify(CONFIG));
    const kubelet = join(cluster.directory, 'node-1/kubelet');
    agent = await serve([
      ...machine.flags(),
      ...flags(),
      `--config.file=${config}`,
      '--podsapi',
      `--plugin.dir=${kubelet}/device-plugins`,
      `--plugin.registry-dir=${kubelet}/plugins_registry`,
    ]);
  });

  afterAll(async () => {
    await agent?.stop();
    await cluster?.stop();
    machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  it('names the users, and their memory is that of their processes, each second', async () => {
    await expect
      .poll(async () => (await cluster.json<{ status: { allocatable: object } }>('get', 'node', 'node-1')).status.allocatable, WAIT)
      .toMatchObject({ [GPU]: '2' });
    await add([HOLDER.pod, 'job', 'frac-a', 'frac-b']);
    const [shared, own] = [gpuOf.get(HOLDER.pod) ?? '', gpuOf.get('job') ?? ''];
    const truths: Truth[] = Array.from({ length: SECONDS }, (_, n) => ({ 'frac-a': 1_000 + n, 'frac-b': 3_000 + 7 * n }));
    const show = (truth: Truth | undefined): void => run({ [shared]: truth ?? {}, [own]: { job: 500 } });
    show(truths[0]);
    const page = await agent.until('the users', (text) => Object.keys(amounts(text, shared)).length === 2);
    const users = seriesOf(page, 'container_device_user_info');
    const userOf = (pod: Pod) => ({ namespace: PODS[pod].namespace, pod, pod_uid: uids.get(pod), device: shared });
    expect(users).toEqual([userOf('frac-a'), userOf('frac-b')]);

    for (const truth of truths) {
      show(truth);
      const next = await agent.until('the next state', (text) => amounts(text, shared)['frac-a'] === truth['frac-a']);
      expect(amounts(next, shared)).toEqual(truth);
      expect(conditionsOf(next, shared)).toEqual([]);
    }
    const usage = await usageByPod();
    const held = usage[`${HOLDER.namespace}/${HOLDER.pod}`];
    const [a, b] = [usage['team-a/frac-a']?.shareSeconds ?? 0, usage['team-b/frac-b']?.shareSeconds ?? 0];
    expect(a).toBeCloseTo(b, 6);
    expect(a + b).toBeCloseTo(held?.delegatedSeconds ?? 0, 3);
    expect(a + b).toBeGreaterThan(SECONDS / 2);
    process.stderr.write(
      `${SECONDS} states, ${users.length} users, shares ${a.toFixed(1)} s and ${b.toFixed(1)} s, holder ${held?.shareSeconds.toFixed(1)} s and ${held?.delegatedSeconds?.toFixed(1)} s delegated\n`,
    );
  });

  it('has strangers as ever: on the GPU of a job, and on the shared one outside of pods', async () => {
    await add(['thief']);
    const [shared, own] = [gpuOf.get(HOLDER.pod) ?? '', gpuOf.get('job') ?? ''];
    run({ [shared]: { 'frac-a': 1_000, thief: 70 }, [own]: { job: 500, thief: 50 } });
    const page = await agent.until('a stranger', (text) => conditionsOf(text, own).includes('HeldByStranger'));
    expect(conditionsOf(page, shared)).toEqual([]);
    expect(amounts(page, own)).toEqual({ job: 500, thief: 50 });
    expect(amounts(page, shared)).toEqual({ 'frac-a': 1_000, thief: 70 });
    // This process is in no pod.
    pids.set('thief', process.pid);
    symlinkSync(`/proc/${process.pid}`, join(machine.root, 'proc', String(process.pid)));
    run({ [shared]: { 'frac-a': 1_000, thief: 70 }, [own]: { job: 500 } });
    await agent.until('a stranger outside of pods', (text) => conditionsOf(text, shared).includes('HeldByStranger'));
    await agent.until('a job alone', (text) => !conditionsOf(text, own).includes('HeldByStranger'));
  });

  it('tells the UIDs where the Pods API is not asked', async () => {
    const shared = gpuOf.get(HOLDER.pod) ?? '';
    run({ [shared]: { 'frac-a': 1_000, 'frac-b': 2_000 } });
    const other = await serve([...machine.flags(), ...flags(), '--state.file=']);
    try {
      const page = await other.until('the users', (text) => Object.keys(amounts(text, shared)).length === 2);
      expect(amounts(page, shared)).toEqual({ [uids.get('frac-a') as string]: 1_000, [uids.get('frac-b') as string]: 2_000 });
    } finally {
      await other.stop();
    }
  });
});
