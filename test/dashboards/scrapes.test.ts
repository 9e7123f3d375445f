import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from '../cli/command-line.ts';
import { type RunningPrometheus, type Sample, startPrometheus } from '../support/prometheus.ts';
import { PROMETHEUSES } from '../support/promtool.ts';
import { quickRules, scrapeJob, type Target, WAYS } from '../support/scrapes.ts';
import { nodeOf, type ServedAgent, serve } from '../support/serve.ts';
import { type Dashboard, dashboards, filledIn, prefixQuery } from './read.ts';

/** A scrape that takes the agent's pod for the holder, with the labels of the holder renamed. */
const RENAMED = 'renamed';
const ALL = [...WAYS, RENAMED];
/** A scrape of version 3 that stores histograms as native ones. */
const NATIVE = 'native';

const host = (agent: ServedAgent): string => new URL(agent.url).host;
const sizes = [
  '--refresh.interval=1s',
  '--sim.pods=8',
  '--sim.pod-change=0s',
  '--sim.story=off',
  '--sim.devices=nvidia=4,amdgpu=1,intelgpu=1,netdev=1,nvme=1',
];

/** Conditions that count at once on the first node. */
const AT_ONCE = ['infiniband.PortDown', 'netdev.PortDown', 'nvme.OverTemperature', 'intelgpu.OverTemperature'];
/** Faults of the first node, with the alert that they lead to. */
const ALERTED = [
  { family: 'amdgpu', fault: 'ras', alert: 'DeviceUnhealthy' },
  { family: 'intelgpu', fault: 'hot', alert: 'DeviceDegraded' },
  { family: 'netdev', fault: 'port-down', alert: 'DeviceOutOfService' },
  { family: 'nvme', fault: 'hot', alert: 'DeviceDegraded' },
] as const;

/** Id of the first device of a family; empty before the first read. */
const infoOf = (page: string, family: string): string =>
  new RegExp(`^device_info\\{device="([^"]+)".*family="${family}"`, 'm').exec(page)?.[1] ?? '';

/** Id of the first device that the page has a series for. */
const deviceIn = (page: string, series: string): string => new RegExp(`^${series}.*?device="([^"]+)"`, 'm').exec(page)?.[1] ?? '';

/** Two nodes with faults: ports are down, one cannot be read, and the second node reads no FPGA, so that ids of FPGAs have no device. */
describe.skipIf(!PROMETHEUSES.some(({ isThere }) => isThere))('two nodes, scraped in each way', () => {
  let directory: string;
  let agents: readonly ServedAgent[] = [];
  let nodes: readonly Target[];
  let third: ServedAgent;
  /** The metrics of the first node before its faults. */
  let page = '';

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'device-agent-boards-'));
    const file = join(directory, 'health.yaml');
    writeFileSync(
      file,
      JSON.stringify({
        health: {
          conditions: Object.fromEntries(AT_ONCE.map((condition) => [condition, { for: '0s' }])),
          ignore: [{ device: 'mlx5_1', condition: 'PortDown', reason: 'recabling', until: '2999-01-01' }],
        },
      }),
    );
    agents = await Promise.all([
      serve([...sizes, `--config.file=${file}`], 'demo'),
      serve([...sizes, '--no-probe.fpga'], 'demo'),
      serve([...sizes, '--labels.attribution=workload_'], 'demo'),
    ]);
    const [first, second] = agents as [ServedAgent, ServedAgent, ServedAgent];
    for (const agent of agents) {
      // A port that was never up is not missed.
      await agent.until('a port that is up', (page) => /^device_link_up\{device="mlx5_1".*\} 1$/m.test(page));
      // Panels show errors that drivers and registers report.
      for (const fault of [
        ['xid31', 'GPU-5e1f0000-0000-4000-8000-000000000001'],
        ['nonfatal-error', '0010:21:00.0'],
      ]) {
        expect(await run(['demo', 'fault', ...fault, `--demo=${agent.child.pid}`], { TMPDIR: tmpdir() })).toMatchObject({ status: 0 });
      }
      const stateOf = (hca: string): string => join(nodeOf(agent), `sys/class/infiniband/${hca}/ports/1/state`);
      writeFileSync(stateOf('mlx5_2'), 'garbage\n');
      for (const hca of ['mlx5_0', 'mlx5_1']) writeFileSync(stateOf(hca), '1: DOWN\n');
    }
    page = await first.until('all families', (text) => ALERTED.every(({ family }) => infoOf(text, family) !== ''));
    for (const { family, fault } of ALERTED) {
      const device = `${family}/${infoOf(page, family)}`;
      expect(await run(['demo', 'fault', fault, device, `--demo=${first.child.pid}`], { TMPDIR: tmpdir() })).toMatchObject({ status: 0 });
    }
    third = agents[2] as ServedAgent;
    nodes = [
      { address: host(first), node: 'node-1' },
      { address: host(second), node: 'node-2' },
    ];
  });

  afterAll(async () => {
    for (const agent of agents) await agent.stop('SIGINT');
    rmSync(directory, { recursive: true });
  });

  for (const { program, isThere, skipped } of PROMETHEUSES)
    describe.skipIf(!isThere)(`${program}${skipped}`, () => {
      const ways: readonly string[] = program === 'prometheus' ? WAYS : [...WAYS, NATIVE];
      let prometheus: RunningPrometheus;
      beforeAll(async () => {
        const jobs = [
          ...WAYS.map((way) => scrapeJob(way, nodes)),
          scrapeJob('annotations', [{ address: host(third), node: 'node-3' }], RENAMED),
          ...(ways.includes(NATIVE) ? [{ ...scrapeJob('plain', nodes, NATIVE), convert_classic_histograms_to_nhcb: true }] : []),
        ];
        const config = {
          global: { evaluation_interval: '1s' },
          rule_files: ['rules.yaml', 'rules-cost.yaml', 'rules-dcgm.yaml'],
          scrape_configs: jobs,
        };
        const rules = {
          'rules.yaml': quickRules(),
          'rules-cost.yaml': quickRules('deploy/rules-cost.yaml'),
          'rules-dcgm.yaml': quickRules('deploy/rules-dcgm.yaml'),
        };
        prometheus = await startPrometheus(config, rules, program);
      });
      afterAll(() => prometheus?.stop());

      const prefixOf = async (dashboard: Dashboard, cluster: string): Promise<string> =>
        (await prometheus.query(filledIn(prefixQuery(dashboard), { cluster })))[0]?.metric.p ?? '';

      it('has all targets', async () => {
        // A busy machine misses a scrape of one or another at any moment.
        const scraped = async (): Promise<number> => (await prometheus.query('max_over_time(up[1h]) == 1')).length;
        await expect.poll(scraped, { interval: 250 }).toBe(2 * ways.length + 1);
      });

      it('finds the prefix of the labels of holders', async () => {
        const prefixes = { podmonitor: '', servicemonitor: '', plain: '', annotations: 'exported_', [RENAMED]: 'workload_' };
        for (const [cluster, prefix] of Object.entries(prefixes)) {
          const found = (): Promise<string> => prefixOf(dashboards[0]?.dashboard as Dashboard, cluster);
          await expect.poll(found, { interval: 250, message: cluster }).toBe(prefix);
        }
      });

      it.each(ALL)('names the same holders, never the pod of the agent (%s)', async (cluster) => {
        const board = dashboards.find(({ name }) => name === 'workload.json')?.dashboard as Dashboard;
        const prefix = await prefixOf(board, cluster);
        const expr = board.panels.find(({ title }) => title === 'Who holds what')?.targets[0]?.expr ?? '';
        const holders = async (): Promise<readonly string[]> => {
          const rows = await prometheus.query(filledIn(expr, { cluster, prefix }));
          return rows.map(({ metric: m }) => `${m.holder_namespace}/${m.holder_pod}/${m.holder_container} ${m.device} ${m.device_id}`);
        };
        const nodes = cluster === RENAMED ? 1 : 2;
        await expect.poll(async () => (await holders()).length).toBeGreaterThan(8 * nodes);
        const rows = await holders();
        expect(rows.filter((row) => /device-agent|monitoring|undefined\//.test(row))).toEqual([]);
        const node1 = (row: Sample): boolean => row.metric.node === 'node-1';
        if (cluster === RENAMED) return;
        const cells = (samples: readonly Sample[]): string[] =>
          samples
            .filter(node1)
            .map(({ metric: { cluster: _, ...m } }) => JSON.stringify(Object.entries(m).toSorted()))
            .toSorted();
        const cellsOf = async (way: string, named: string): Promise<readonly string[]> =>
          cells(await prometheus.query(filledIn(expr, { cluster: way, prefix: named })));
        // A busy machine can miss a scrape of one way between the two questions.
        const differing = async (): Promise<readonly string[]> => {
          const [plain, here] = [await cellsOf('plain', ''), await cellsOf(cluster, prefix)];
          return plain.length === 0
            ? ['nothing']
            : [...plain.filter((one) => !here.includes(one)), ...here.filter((one) => !plain.includes(one))];
        };
        await expect.poll(differing, { interval: 250 }).toEqual([]);
      });

      it.each(ALL)('shows no idle device as held (%s)', async (cluster) => {
        const board = dashboards.find(({ name }) => name === 'node.json')?.dashboard as Dashboard;
        const prefix = await prefixOf(board, cluster);
        const expr = board.panels.find(({ title }) => title === 'Holders')?.targets[0]?.expr ?? '';
        const devices = async (query: string): Promise<readonly string[]> => [
          ...new Set((await prometheus.query(query)).map(({ metric: m }) => `${m.node} ${m.device}`)),
        ];
        // A busy machine can miss a scrape between the questions.
        const differing = async (): Promise<string> => {
          const all = await devices(`device_info{cluster="${cluster}"}`);
          const allocated = await devices(`container_device_allocation{cluster="${cluster}",device!=""}`);
          const held = await devices(filledIn(expr, { cluster, prefix }));
          if (allocated.length === 0 || all.length <= allocated.length) return 'no idle device';
          return held.toSorted().join() === allocated.toSorted().join() ? '' : `${held} is not ${allocated}`;
        };
        await expect.poll(differing, { interval: 250 }).toBe('');
      });

      it('answers what boards and autoscalers ask of dcgm-exporter', async () => {
        for (const expr of DCGM_QUERIES)
          await expect.poll(async () => (await prometheus.query(expr)).length, { interval: 1_000, message: expr }).toBeGreaterThan(0);
        const holders = async (labels: string): Promise<readonly string[]> => {
          const rows = await prometheus.query(`count by (${labels}) (DCGM_FI_DEV_GPU_UTIL{cluster="plain",Hostname="node-1",pod!=""})`);
          return rows.map(({ metric: m }) => `${m.namespace}/${m.pod}/${m.container}`).toSorted();
        };
        await expect.poll(async () => (await holders('namespace, pod, container')).length, { interval: 1_000 }).toBeGreaterThan(0);
        expect((await holders('namespace, pod, container')).filter((one) => /device-agent|monitoring|undefined/.test(one))).toEqual([]);
      });

      it.each(ALERTED)('fires $alert for a device of $family', async ({ family, alert }) => {
        const firing = `ALERTS{alertname="${alert}",alertstate="firing",cluster="plain"}`;
        const expr = `count(${firing} * on (device) group_left () count by (device) (device_info{cluster="plain",node="node-1",family="${family}"}))`;
        await expect.poll(async () => (await prometheus.query(expr)).length, { interval: 1_000 }).toBe(1);
      });

      it('answers each expression of each dashboard with data, in each way', async () => {
        const asked: { readonly panel: string; readonly expr: string }[] = [];
        for (const cluster of ways) {
          for (const { name, dashboard } of dashboards) {
            const prefix = await prefixOf(dashboard, cluster);
            for (const { title, targets } of dashboard.panels.filter((panel) => panel.title !== OF_JOBS))
              for (const { expr } of targets)
                asked.push({
                  panel: `${cluster}: ${name}: ${title}`,
                  expr: filledIn(expr, { cluster, prefix, ...chosen(name, title, page) }),
                });
          }
        }
        expect(asked.length).toBeGreaterThan(4 * 90);
        // Rates need two scrapes, and recording rules need the rates. Accounts of containers stay at 0 for the first minute.
        let waiting = asked;
        const empty = async (): Promise<readonly string[]> => {
          const answers = await Promise.all(waiting.map(async (one) => ({ ...one, rows: await prometheus.query(one.expr) })));
          waiting = answers.filter(({ rows }) => rows.length === 0);
          return waiting.map(({ panel, expr }) => `${panel}: ${expr}`);
        };
        await expect.poll(empty, { interval: 1_000 }).toEqual([]);
      });
    });
});

const CHOSEN = 'Hostname=~"node-.*", gpu=~".*"';

/** What the board that most people load for dcgm-exporter asks, and an autoscaler by pods. The demo's nvidia-smi has no profiling counters. */
const DCGM_QUERIES = [
  `max(DCGM_FI_DEV_GPU_TEMP{${CHOSEN}}) by (Hostname, gpu, uuid)`,
  `avg(DCGM_FI_DEV_GPU_TEMP{${CHOSEN}})`,
  `max(DCGM_FI_DEV_POWER_USAGE{${CHOSEN}}) by (Hostname, gpu, uuid)`,
  `sum(max(DCGM_FI_DEV_POWER_USAGE{${CHOSEN}}) by (gpu))`,
  `max(DCGM_FI_DEV_SM_CLOCK{${CHOSEN}} * 1000000) by (Hostname, UUID, gpu)`,
  `max(DCGM_FI_DEV_FB_USED{${CHOSEN}}) by (Hostname, gpu, GPU_I_ID, GPU_I_PROFILE)`,
  'count by (Hostname, gpu) (DCGM_FI_DEV_FB_FREE)',
  'avg by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{namespace!="",pod!=""})',
];

/** It needs `deploy/rules-stall.yaml` and a job of several pods. */
const OF_JOBS = 'Ranks that differ from their job';

/** Panels that devices of one family fill, with a metric of them. */
const OF_OTHERS = {
  'Drive traffic': 'device_nvme_read_bytes_total',
  'Life of a drive': 'device_nvme_used_life_ratio',
  'Dropped packets': 'device_netdev_dropped_packets_total',
};

/** The device board shows one device; no device has all readings, so each panel is asked of one that has them. */
function chosen(name: string, title: string, page: string): Readonly<Record<string, string>> {
  if (name !== 'device.json') return {};
  const ofHca = ['Conditions', 'Conditions over time', 'Received', 'Transmitted', 'Link up', 'Errors', 'Parts'];
  if (ofHca.includes(title)) return { node: 'node-1', device: 'mlx5_0' };
  const [, metric] = Object.entries(OF_OTHERS).find(([panel]) => panel === title) ?? [];
  if (metric !== undefined) return { node: 'node-1', device: deviceIn(page, metric) };
  // A board that tells limits; the simulated GPUs tell margins, as Hopper does.
  if (title === 'Temperature') return { node: 'node-1', device: '0010:21:00.0' };
  return { node: 'node-1', device: 'GPU-5e1f0000-0000-4000-8000-000000000001' };
}
