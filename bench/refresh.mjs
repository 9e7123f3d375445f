// CPU and wall time of one refresh - all counters read, joined with 60 pods and judged - against one scrape of node_exporter on the
// same tree and a C program that only preads the same files. The traffic counters move before every refresh; the three take turns.
import { parseArgs } from 'node:util';
import { median, report, summary } from './parts/measure.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { counterFiles, startCore, startFloor, startNodeExporter } from './parts/peers.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, only: { type: 'string' }, turns: { type: 'string', default: '60' } },
});
const ROUNDS = Number(values.rounds);
const TURNS = Number(values.turns);
const WARM_UP = 150;
const PODS = 60;
const SIZES = [
  { name: '1', hcas: 1 },
  { name: '8', hcas: 8 },
  { name: '32', hcas: 32 },
  { name: '80', hcas: 80 },
  { name: '136 (8 PF, 128 VF)', hcas: 8, vfs: 128 },
].filter(({ name }) => values.only === undefined || name.startsWith(values.only));

const rows = [];
for (const size of SIZES) rows.push(await measure(size));
report('refresh', rows);

async function measure({ name, hcas, vfs = 0 }) {
  const node = await makeNode({ hcas, vfs });
  const files = counterFiles(node.roots.sysfs);
  const ids = Array.from({ length: Math.min(PODS, hcas + vfs) }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, PODS, ids);
  const core = await startCore({ roots: node.roots, socket: kubelet.podResourcesSocket, families: ['infiniband'] });
  const exporter = await startNodeExporter(node.roots.sysfs);
  const floor = await startFloor(files);
  const took = { agent: [], wall: [], asked: [], exporter: [], floor: [] };
  try {
    for (let n = 0; n < WARM_UP; n += 1) {
      node.advance();
      await core.ask('refresh', { withKubelet: n % 4 === 0 });
      await exporter.scrape();
      await floor.pass();
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const one = { agent: [], wall: [], asked: [], floor: [] };
      const exporterBefore = exporter.cpuSeconds();
      for (let turn = 0; turn < TURNS; turn += 1) {
        node.advance();
        one.floor.push(await floor.pass());
        await exporter.scrape();
        const { cpuUs, wallUs } = await core.ask('refresh', {});
        one.agent.push(cpuUs);
        one.wall.push(wallUs);
        if (turn % 4 === 0) {
          node.advance();
          await exporter.scrape();
          one.asked.push((await core.ask('refresh', { withKubelet: true })).cpuUs);
        }
      }
      const scrapes = TURNS + Math.ceil(TURNS / 4);
      took.exporter.push(((exporter.cpuSeconds() - exporterBefore) * 1e6) / scrapes);
      for (const [key, list] of Object.entries(one)) took[key].push(median(list));
    }
    const snapshot = await core.ask('snapshot');
    if (snapshot.devices !== hcas + vfs || snapshot.healthy !== hcas + vfs) throw new Error(`not all devices: ${JSON.stringify(snapshot)}`);
    if (snapshot.held !== ids.length) throw new Error(`not all pods joined: ${JSON.stringify(snapshot)}`);
    const agent = summary(took.agent);
    return {
      HCAs: name,
      'files read': files.length,
      series: snapshot.readings,
      'agent µs CPU': agent.text,
      'agent µs wall': summary(took.wall).text,
      'with List µs CPU': summary(took.asked).text,
      'node_exporter µs CPU': summary(took.exporter).text,
      'C floor µs CPU': summary(took.floor).text,
      'agent / node_exporter': (agent.median / summary(took.exporter).median).toFixed(2),
      'agent / C floor': (agent.median / summary(took.floor).median).toFixed(2),
      'µs per HCA': (agent.median / (hcas + vfs)).toFixed(1),
    };
  } finally {
    await Promise.all([core.stop(), exporter.stop(), floor.stop(), kubelet.close()]);
    node.remove();
  }
}
