// RSS of the whole agent, probes' threads and web server included, after it refreshed and was scraped for a while: idle (no devices),
// everyday (8 GPUs, 8 HCAs, 60 pods), large (136 HCA functions, 250 pods). Beside it node_exporter on the same tree.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { openDescriptors, report, rssMiB, summary } from './parts/measure.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { fetchText, startNodeExporter } from './parts/peers.mjs';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '20' } } });
const MACHINES = [
  { name: 'idle: no devices, no pods', pods: 0, goal: undefined },
  { name: 'everyday: 8 GPUs, 8 HCAs, 60 pods', gpus: 8, hcas: 8, pods: 60, goal: 110 },
  { name: 'large: 136 HCA functions, 250 pods', hcas: 8, vfs: 128, pods: 250, goal: 220 },
];

const rows = [];
const only = process.env.ONLY;
for (const machine of MACHINES.filter(({ name }) => only === undefined || name.startsWith(only))) rows.push(await measure(machine));
report('memory', rows);

async function measure({ name, goal, pods, ...devices }) {
  const took = { agent: [], peak: [], exporter: [] };
  let descriptors = 0;
  for (let round = 0; round < Number(values.rounds); round += 1) {
    const node = await makeNode(devices);
    const ids = Array.from({ length: (devices.hcas ?? 0) + (devices.vfs ?? 0) }, (_, n) => `mlx5_${n}`);
    const kubelet = await makeKubelet(node.root, pods, ids);
    const agent = await startAgent(node, kubelet);
    const exporter = ids.length === 0 ? undefined : await startNodeExporter(node.roots.sysfs);
    const ends = performance.now() + Number(values.seconds) * 1_000;
    let peak = 0;
    while (performance.now() < ends) {
      node.advance();
      await agent.scrape();
      await exporter?.scrape();
      peak = Math.max(peak, rssMiB(agent.pid));
      await sleep(250);
    }
    took.agent.push(rssMiB(agent.pid));
    took.peak.push(peak);
    if (exporter !== undefined) took.exporter.push(rssMiB(exporter.pid));
    descriptors = openDescriptors(agent.pid);
    await Promise.all([agent.stop(), exporter?.stop()]);
    await kubelet.close();
    node.remove();
  }
  return {
    machine: name,
    'agent MiB': summary(took.agent).text,
    'peak MiB': summary(took.peak).text,
    'goal MiB': goal ?? '-',
    'node_exporter MiB': took.exporter.length === 0 ? '-' : summary(took.exporter).text,
    'agent descriptors': descriptors,
  };
}

async function startAgent(node, kubelet) {
  const options = Object.entries(node.options).flatMap(([family, given]) =>
    Object.entries(given).map(([option, value]) => `--probe.${family}.${option}=${value}`),
  );
  const flags = [
    '--web.listen-address=127.0.0.1:0',
    '--log.format=json',
    '--log.level=info',
    '--refresh.interval=250ms',
    `--state.file=${node.root}/health.json`,
    `--path.sysfs=${node.roots.sysfs}`,
    `--path.procfs=${node.roots.procfs}`,
    `--path.dev=${node.roots.dev}`,
    `--podresources.socket=${kubelet.podResourcesSocket}`,
    `--podresources.checkpoint=${kubelet.checkpoint}`,
    ...options,
  ];
  const child = spawn(process.execPath, [`${DIST}/cli/main.js`, 'serve', ...flags], { stdio: ['ignore', 'ignore', 'pipe'] });
  for await (const line of createInterface({ input: child.stderr })) {
    const address = JSON.parse(line).address;
    if (address === undefined) continue;
    child.stderr.resume();
    const { hostname: host, port } = new URL(address);
    return {
      pid: child.pid,
      scrape: () => fetchText({ host, port, path: '/metrics' }),
      stop: async () => {
        child.kill('SIGTERM');
        await once(child, 'exit');
      },
    };
  }
  throw new Error('the agent did not start');
}
