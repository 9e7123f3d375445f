// CPU of one refresh - all counters read, joined with 60 pods and judged - against one scrape of each node_exporter on the same tree; and
// of one that asks the kubelet too. The traffic counters move before every turn. An agent runs for weeks, so what is measured is one that has run for a
// while. It reads every ten seconds, with other programs between: `--pause=1000` puts a pause before each turn.
// `--against=DIRECTORY` compares with another checkout that is built instead.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCore } from './parts/core.mjs';
import { cpuMillis, report, summary } from './parts/measure.mjs';
import { startInfinibandExporter } from './parts/node-exporter.mjs';
import { nodeExporters } from './parts/node-exporter-builds.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { compareWith } from './parts/two-checkouts.mjs';

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '60' },
    pause: { type: 'string', default: '0' },
    only: { type: 'string' },
    against: { type: 'string' },
  },
});
if (values.against !== undefined) {
  report('refresh-against', await compareWith(values.against, Number(values.turns)), { against: values.against });
  process.exit();
}
const WARM_UP = 300;
const PODS = 60;
const SIZES = [
  { name: '1', hcas: 1 },
  { name: '8', hcas: 8 },
  { name: '80', hcas: 80 },
  { name: '136 (8 PF, 128 VF)', hcas: 8, vfs: 128 },
  { name: '8+128 (128 VF missing)', hcas: 8, vfs: 128, missing: 128 },
].filter(({ name }) => values.only === undefined || values.only === name.split(' ')[0]);

const exporters = await nodeExporters();
const rows = [];
for (const size of SIZES) rows.push(await measure(size));
report('refresh', rows, { pauseMs: Number(values.pause) });

async function measure({ name, hcas, vfs = 0, missing = 0 }) {
  const node = await makeNode({ infiniband: hcas, 'infiniband.vf': vfs });
  const ids = Array.from({ length: Math.min(PODS, hcas + vfs) }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, PODS, ids);
  const core = await startCore({ roots: node.roots, socket: kubelet.podResourcesSocket, families: ['infiniband'] });
  const peers = await Promise.all(exporters.map((exporter) => startInfinibandExporter(node.roots.sysfs, exporter)));
  try {
    if (missing > 0) {
      await core.ask('refresh');
      node.tearDownVfs();
    }
    await core.ask('refresh', { count: WARM_UP });
    const { devices, readings, held } = await core.ask('snapshot');
    if (devices !== hcas + vfs || held !== ids.length) throw new Error(`${devices} devices, ${held} of them held`);
    const took = new Map();
    const keep = (who, us) => took.set(who, [...(took.get(who) ?? []), us]);
    for (let turn = 0; turn < Number(values.turns); turn += 1) {
      node.advance();
      await sleep(Number(values.pause));
      keep('agent', (await core.ask('refresh', { kubelet: false })).cpuUs);
      node.advance();
      keep('agent with List', (await core.ask('refresh')).cpuUs);
      for (const peer of peers) keep(peer.name, await scrapeCpuUs(peer));
    }
    const columns = [...took].map(([who, list]) => [`${who}, µs CPU`, summary(list).text]);
    const ratios = peers.map((peer) => [
      `agent / ${peer.name}`,
      (summary(took.get('agent')).median / summary(took.get(peer.name)).median).toFixed(2),
    ]);
    return { HCAs: name, series: readings, ...Object.fromEntries([...columns, ...ratios]) };
  } finally {
    await Promise.all([core.stop(), kubelet.close(), ...peers.map((peer) => peer.stop())]);
    node.remove();
  }
}

async function scrapeCpuUs({ pid, scrape }) {
  const before = cpuMillis(pid);
  await scrape();
  return (cpuMillis(pid) - before) * 1_000;
}
