import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stallGroup } from '../../deploy/rules/stall.ts';
import { DeviceUse } from '../../src/sim/device-use.ts';
import type { SimulatedFault } from '../../src/sim/family-simulation.ts';
import type { SimulatedPod } from '../../src/sim/kubelet/pods.ts';
import { run } from '../cli/command-line.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { seriesOf } from '../kubelet/real/support/watched-node.ts';
import { isInstalled } from '../support/installed.ts';
import { plainScrape, type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { Cluster, whyNoControlPlane } from './support/cluster.ts';

const why = whyNoControlPlane() ?? (isInstalled('prometheus') ? undefined : 'there is no prometheus');
if (why !== undefined) process.stderr.write(`skipped: a container that waits on a cluster, ${why}\n`);

const WAIT = { interval: 200 };
/** The simulated load has a step of 126 s. */
const TIMES_FASTER = 10;
const STEP_SECONDS = (2 * Math.PI * 20) / TIMES_FASTER;
const GPU = 'example.com/gpu';
const NIC = 'example.com/nic';
const HOLDER = { namespace: 'ml', pod: 'rank-0', container: 'worker' };
const OF_HOLDER = HOLDER as Readonly<Record<string, string>>;

/** The name by which people know a simulated GPU. */
const nameOf = (uuid: string): string => `GPU ${Number.parseInt(uuid.slice(-12), 16) - 1}`;

/** The simulated character devices are no devices: the container is given one that is, under their names. */
const resource = (name: string, family: string, kind: string, idStrategy: string): object => ({
  resource: name,
  select: { family, kind },
  idStrategy,
  allocation: {
    strategies: ['envvar'],
    env: { [`HELD_${kind.toUpperCase()}`]: '{id}' },
    deviceNodes: [{ path: `/dev/${kind}-{id}`, hostPath: '/dev/null' }],
  },
});
// Simulated traffic is known by the address of the function.
const CONFIG = { plugin: { resources: [resource(GPU, 'nvidia', 'gpu', 'uuid'), resource(NIC, 'infiniband', 'pf', 'bdf')] } };

const OBJECTS = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: HOLDER.namespace } },
  {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: HOLDER.pod, namespace: HOLDER.namespace },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: HOLDER.container,
          image: 'localhost/pause:1',
          imagePullPolicy: 'Never',
          args: ['show'],
          resources: { limits: { [GPU]: 2, [NIC]: 1 } },
        },
      ],
    },
  },
];

interface NodeObject {
  readonly status: { readonly allocatable: Readonly<Record<string, string>> };
}
interface PodObject {
  readonly metadata: { readonly uid: string };
  readonly status: {
    readonly phase: string;
    readonly containerStatuses?: readonly {
      readonly allocatedResourcesStatus?: readonly {
        readonly resources: readonly { readonly resourceID: string; readonly health: string }[];
      }[];
    }[];
  };
}
interface Alert {
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

describe.skipIf(why !== undefined)('a pod with two GPUs and a network adapter on a stock cluster', () => {
  let cluster: Cluster;
  let machine: Machine;
  let agent: ServedAgent;
  let prometheus: RunningPrometheus;
  let directory: string;
  let moving: NodeJS.Timeout;
  /** What the hardware works for: empty until the kubelet has given it away. */
  let pods: readonly SimulatedPod[] = [];
  let faults: readonly SimulatedFault[] = [];
  let elapsedMs = 0;
  let gpus: readonly string[] = [];
  let nic = { id: '', name: '' };

  const begin = (name: string, device: string): void => {
    faults = [...faults, { name, device, fromMs: elapsedMs }];
  };
  const endAll = (): void => {
    faults = faults.map((fault) => ({ ...fault, untilMs: elapsedMs }));
  };
  const waiting = (page: string) => seriesValue(page, 'container_device_waiting', OF_HOLDER);
  const seriesOfHolder = (page: string, name: string) =>
    seriesOf(page, name).filter((labels) => Object.entries(OF_HOLDER).every(([label, value]) => labels[label] === value));
  const allocatable = async (): Promise<readonly (string | undefined)[]> => {
    const { status } = await cluster.json<NodeObject>('get', 'node', 'node-1');
    return [status.allocatable[GPU], status.allocatable[NIC]];
  };
  const podNow = () => cluster.json<PodObject>('get', 'pod', HOLDER.pod, '-n', HOLDER.namespace);
  const alerts = async (): Promise<readonly Alert[]> =>
    ((await prometheus.ask('/alerts')) as { data?: { alerts: readonly Alert[] } }).data?.alerts ?? [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'waiting-'));
    machine = new Machine({ nvidia: 3, infiniband: 2 });
    const use = new DeviceUse();
    const startedMs = performance.now();
    moving = setInterval(() => {
      elapsedMs = (performance.now() - startedMs) * TIMES_FASTER;
      machine.moveOn({ elapsedMs, faults, use: use.at(elapsedMs, pods, new Set()) });
    }, 200);
    cluster = new Cluster();
    await cluster.start(1);
    const config = join(directory, 'config.json');
    writeFileSync(config, JSON.stringify(CONFIG));
    const kubelet = join(cluster.directory, 'node-1/kubelet');
    agent = await serve([
      ...machine.flags(),
      `--config.file=${config}`,
      '--refresh.interval=1s',
      '--stall.after=30s',
      '--stall.learn=30s',
      `--podresources.socket=${kubelet}/pod-resources/kubelet.sock`,
      `--podresources.checkpoint=${kubelet}/device-plugins/kubelet_internal_checkpoint`,
      `--plugin.dir=${kubelet}/device-plugins`,
      `--plugin.registry-dir=${kubelet}/plugins_registry`,
    ]);
    // The text of the published file; only the rules are evaluated more often.
    const rules = readFileSync('deploy/rules-stall.yaml', 'utf8').replace('interval: 1m', 'interval: 1s');
    const [{ static_configs: targets, ...scrape }] = (
      plainScrape(new URL(agent.url).host) as { scrape_configs: [{ static_configs: object[] }] }
    ).scrape_configs;
    const labelled = { ...scrape, static_configs: targets.map((target) => ({ ...target, labels: { node: 'node-1' } })) };
    prometheus = await startPrometheus({ rule_files: ['rules.yaml'], scrape_configs: [labelled] }, { 'rules.yaml': rules });
  });

  afterAll(async () => {
    await prometheus?.stop();
    await agent?.stop();
    await cluster?.stop();
    clearInterval(moving);
    machine?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  it('gets them from the plugin of the agent, and works', async () => {
    await expect.poll(allocatable, WAIT).toEqual(['3', '2']);
    const manifest = join(directory, 'objects.json');
    writeFileSync(manifest, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: OBJECTS }));
    await cluster.kubectl('apply', '-f', manifest);
    await expect.poll(async () => (await podNow()).status.phase, WAIT).toBe('Running');
    const output = () => cluster.kubectl('logs', HOLDER.pod, '-n', HOLDER.namespace);
    await expect.poll(output, WAIT).toContain('HELD_GPU=');
    gpus = (/HELD_GPU=(\S+)/.exec(await output())?.[1] ?? '').split(',').sort();
    const address = /HELD_PF=(\S+)/.exec(await output())?.[1] ?? '';
    const { devices } = (await (await fetch(`${agent.url}/api/v1/devices`)).json()) as { devices: { id: string; pciAddress: string }[] };
    nic = { id: address, name: devices.find(({ pciAddress }) => pciAddress === address)?.id ?? '' };
    expect(gpus).toHaveLength(2);
    expect(nic.name).toMatch(/^mlx5_/);

    const held = [...gpus.map((id) => ({ resource: GPU, id })), { resource: NIC, id: nic.id }];
    pods = [{ ...HOLDER, name: HOLDER.pod, uid: (await podNow()).metadata.uid, containers: [{ name: HOLDER.container, devices: held }] }];
    await agent.until('a container that works', (page) => waiting(page) === 0);
    const page = await agent.until('its steps', (text) => seriesValue(text, 'container_device_step_seconds', OF_HOLDER) !== undefined);
    expect(Math.abs((seriesValue(page, 'container_device_step_seconds', OF_HOLDER) ?? 0) - STEP_SECONDS)).toBeLessThan(2);

    const [one, other] = gpus as [string, string];
    const ways = seriesOfHolder(page, 'container_device_path').map(({ from, to, path }) => [[from, to].sort().join(' '), path]);
    const nodes = new Map(seriesOf(page, 'device_info').map(({ device = '', numa_node: node }) => [device, node]));
    const toNic = (gpu: string): string => (nodes.get(gpu) === nodes.get(nic.name) ? 'NODE' : 'SYS');
    expect(Object.fromEntries(ways)).toEqual({
      [`${one} ${other}`]: 'NV18',
      [`${one} ${nic.name}`]: toNic(one),
      [`${other} ${nic.name}`]: toNic(other),
    });
    const localities = seriesOfHolder(page, 'container_device_locality').map(({ between, path }) => [between, path]);
    const farthest = gpus.map(toNic).includes('SYS') ? 'SYS' : 'NODE';
    expect(Object.fromEntries(localities)).toEqual({ gpus: 'NV18', 'gpu-nic': farthest });
    expect(await alerts()).toEqual([]);
  });

  it('stalls: metric, page, explanation, incident and alert tell it, and nothing is withheld', async () => {
    for (const gpu of gpus) begin('spin', gpu);
    begin('silent', nic.name);
    const page = await agent.until('a container that waits', (text) => waiting(text) === 1);
    expect(seriesOfHolder(page, 'container_device_waiting')).toEqual([HOLDER]);
    expect(seriesOf(page, 'container_device_waiting')).toHaveLength(1);
    expect(seriesValue(page, 'container_device_last_progress_timestamp_seconds', OF_HOLDER)).toBeLessThan(Date.now() / 1_000 - 25);
    for (const device of gpus) expect(seriesValue(page, 'device_health_condition', { device, condition: 'Stalled' })).toBe(1);

    const shown = await (await fetch(`${agent.url}/pods/${HOLDER.namespace}/${HOLDER.pod}`)).text();
    expect(shown).toMatch(/stalled: busy, but its steps have ended, last progress \d+ (?:s|min) ago/);
    for (const device of [...gpus, nic.name]) expect(shown).toContain(device);

    const words = ['explain', `--pod=${HOLDER.namespace}/${HOLDER.pod}`, `--web.listen-address=${new URL(agent.url).host}`];
    const { stdout, status } = await run(words);
    expect(status).toBe(0);
    const lines = stdout.trimEnd().split('\n');
    expect(lines.length).toBeGreaterThanOrEqual(8);
    expect(lines.length).toBeLessThanOrEqual(14);
    expect(lines.at(-1)).toMatch(
      /^Container worker stalled: busy, but its steps have ended, last progress \d+ (?:s|min) ago, steps of about \d/,
    );
    expect(lines[0]).toBe(`ml/rank-0, container worker, holds 2 GPUs, 1 network device: ${[...gpus.map(nameOf), nic.name].join(', ')}.`);

    const { incidents } = (await (await fetch(`${agent.url}/api/incidents`)).json()) as {
      incidents: { device: string }[];
    };
    // One for the container, whichever of its GPUs was judged first.
    const ofPod = { conditions: ['Stalled'], holders: [Object.values(HOLDER).join('/')], states: ['healthy'] };
    expect(incidents).toEqual([expect.objectContaining(ofPod)]);
    expect(gpus.map((gpu) => `nvidia/${gpu}`)).toContain(incidents[0]?.device);

    for (const device of [...gpus, nic.name]) expect(seriesValue(page, 'device_healthy', { device })).toBe(1);
    expect(await allocatable()).toEqual(['3', '2']);
    const told = (await podNow()).status.containerStatuses?.[0]?.allocatedResourcesStatus?.flatMap(({ resources }) => resources) ?? [];
    expect(told.map(({ resourceID }) => resourceID).sort()).toEqual([...gpus, nic.id].sort());
    expect(new Set(told.map(({ health }) => health))).toEqual(new Set(['Healthy']));

    // The alert waits for a minute.
    const firing = async () => (await alerts()).filter(({ state }) => state === 'firing');
    await expect.poll(firing, { interval: 500 }).toHaveLength(1);
    const rule = stallGroup.rules.find((one) => 'alert' in one);
    const [alert] = await firing();
    expect(alert?.labels).toEqual({
      alertname: 'DeviceStalled',
      severity: 'info',
      node: 'node-1',
      holder_namespace: HOLDER.namespace,
      holder_pod: HOLDER.pod,
      holder_container: HOLDER.container,
    });
    expect(alert?.annotations.summary).toMatch(/^ml\/rank-0 on node node-1 has made no step for \d+m \d+s\.$/);
    expect(alert?.annotations.description).toMatch(/^The GPUs of the container worker are busy, but their engines do no work/);
    expect(alert?.annotations.remedy).toBe(rule && 'alert' in rule ? rule.annotations.remedy : '');
  });

  it('goes on', async () => {
    endAll();
    await agent.until('a container that works', (text) => waiting(text) === 0);
    await expect.poll(alerts, WAIT).toEqual([]);
  });
});
