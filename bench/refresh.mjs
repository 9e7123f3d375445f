// CPU and wall time of one refresh - all counters read, joined with 60 pods and judged - against one scrape of each node_exporter on
// the same tree and a C program that only preads the same files. The traffic counters move before every turn; the three take turns, in an order
// that goes round, since who is first finds the memory as the writer left it and who is last as the others did. An agent runs for weeks, so
// what is measured is one that has run for a while.
import { parseArgs } from 'node:util';
import { hasCompiler, median, report, summary } from './parts/measure.mjs';
import { nodeExporters } from './parts/node-exporters.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { counterFiles, startCore, startFloor, startNodeExporter } from './parts/peers.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, only: { type: 'string' }, turns: { type: 'string', default: '60' } },
});
const ROUNDS = Number(values.rounds);
const TURNS = Number(values.turns);
/** Refreshes before the first that is measured: at least so many, and until so many HCAs were read in all. */
const WARM_UP = { refreshes: 300, hcas: 16_000 };
/** Refreshes of the warm-up between two moves of the counters. */
const AT_ONCE = 5;
const PODS = 60;
const SIZES = [
  { name: '1', hcas: 1 },
  { name: '8', hcas: 8 },
  { name: '10', hcas: 10 },
  { name: '14', hcas: 14 },
  { name: '32', hcas: 32 },
  { name: '80', hcas: 80 },
  { name: '136 (8 PF, 128 VF)', hcas: 8, vfs: 128 },
].filter(({ name }) => values.only === undefined || values.only.split(',').includes(name.split(' ', 1)[0]));

const EXPORTERS = await nodeExporters();
const HAS_FLOOR = hasCompiler('the bare reads are not compared with');
const rows = [];
for (const size of SIZES) rows.push(await measure(size));
report('refresh', rows);

async function measure({ name, hcas, vfs = 0 }) {
  const node = await makeNode({ hcas, vfs });
  const files = counterFiles(node.roots.sysfs);
  const ids = Array.from({ length: Math.min(PODS, hcas + vfs) }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, PODS, ids);
  const core = await startCore({
    roots: node.roots,
    socket: kubelet.podResourcesSocket,
    checkpoint: kubelet.checkpoint,
    families: ['infiniband'],
  });
  const exporters = await Promise.all(EXPORTERS.map((exporter) => startNodeExporter(node.roots.sysfs, exporter)));
  const floor = HAS_FLOOR ? await startFloor(files) : undefined;
  const took = { agent: [], wall: [], asked: [], floor: [], exporters: exporters.map(() => []) };
  try {
    const warmUp = Math.max(WARM_UP.refreshes, Math.ceil(WARM_UP.hcas / (hcas + vfs)));
    for (let n = 0; n < warmUp; n += AT_ONCE) {
      node.advance();
      await core.ask('refreshMany', { count: AT_ONCE });
      if (n % 50 === 0) await core.ask('refresh', { withKubelet: true });
      if (n % 50 === 0) for (const exporter of exporters) await exporter.scrape();
      await floor?.pass();
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const one = { agent: [], wall: [], asked: [], floor: [] };
      const turns = [
        ...(floor === undefined ? [] : [async () => one.floor.push(await floor.pass())]),
        ...exporters.map((exporter) => () => exporter.scrape()),
        async () => {
          const { cpuUs, wallUs } = await core.ask('refresh', {});
          one.agent.push(cpuUs);
          one.wall.push(wallUs);
        },
      ];
      const before = exporters.map((exporter) => exporter.cpuSeconds());
      for (let turn = 0; turn < TURNS; turn += 1) {
        node.advance();
        for (let at = 0; at < turns.length; at += 1) await turns[(turn + at) % turns.length]();
        if (turn % 4 === 0) {
          node.advance();
          one.asked.push((await core.ask('refresh', { withKubelet: true })).cpuUs);
        }
      }
      for (const [at, exporter] of exporters.entries()) took.exporters[at].push(((exporter.cpuSeconds() - before[at]) * 1e6) / TURNS);
      for (const [key, list] of Object.entries(one)) if (list.length > 0) took[key].push(median(list));
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
      ...Object.fromEntries(exporters.map(({ version }, at) => [`node_exporter ${version} µs CPU`, summary(took.exporters[at]).text])),
      'C floor µs CPU': floor === undefined ? undefined : summary(took.floor).text,
      ...Object.fromEntries(
        exporters.map(({ version }, at) => [`agent / ${version}`, (agent.median / summary(took.exporters[at]).median).toFixed(2)]),
      ),
      'agent / C floor': floor === undefined ? undefined : (agent.median / summary(took.floor).median).toFixed(2),
      'µs per HCA': (agent.median / (hcas + vfs)).toFixed(1),
    };
  } finally {
    await Promise.all([core.stop(), floor?.stop(), kubelet.close(), ...exporters.map((exporter) => exporter.stop())]);
    node.remove();
  }
}
