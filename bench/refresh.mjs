// CPU and wall time of one refresh - all counters read, joined with 60 pods and judged - against one scrape of each node_exporter on
// the same tree and a C program that only preads the same files. The traffic counters move before every turn; the three take turns, in an order
// that goes round, since who is first finds the memory as the writer left it and who is last as the others did. An agent runs for weeks, so
// what is measured is one that has run for a while. Where in memory the kernel puts the files of a tree decides how many of them stay in the
// processor's caches, so the rounds are spread over several trees, each with processes of its own. A machine is faster in one minute than in
// the next, so all sizes are measured on their first trees, then all on their second ones, and how the cost grows from one size to another is
// taken between trees measured one after the other.
// Two tables: turn after turn, where a small tree is still in the processor's caches when it is read again, and at a node's pace, each turn
// after a pause. A third says how both grow with ten times the devices.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cpuMillis, hasCompiler, median, printTable, report, summary } from './parts/measure.mjs';
import { nodeExporters } from './parts/node-exporters.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { counterFiles, startCore, startFloor, startNodeExporter } from './parts/peers.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '1' },
    trees: { type: 'string', default: '6' },
    only: { type: 'string' },
    turns: { type: 'string', default: '60' },
    'paced-turns': { type: 'string', default: '6' },
    pause: { type: 'string', default: '1000' },
  },
});
const ROUNDS_PER_TREE = Number(values.rounds);
const TREES = Number(values.trees);
const TURNS = Number(values.turns);
const PACED_TURNS = Number(values['paced-turns']);
/** Before each turn at a node's pace. A tenth of the default interval, for the sake of the benchmark's duration. */
const PAUSE_MS = Number(values.pause);
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
const measured = SIZES.map((size) => ({ ...size, close: rounds(), paced: rounds() }));
for (let n = 0; n < TREES; n += 1) for (const size of measured) Object.assign(size, await measureTree(size));
const paced = PACED_TURNS === 0 ? [] : measured.map((size) => rowOf(size, size.paced.medians()));
const growth = growthRows();
console.log('turn after turn:');
report(
  'refresh',
  measured.map((size) => rowOf(size, size.close.medians())),
  { pauseMs: PAUSE_MS, paced, growth, trees: measured.map(ofTrees) },
);
if (paced.length > 0) {
  console.log(`\nat a node's pace, each turn after a pause of ${PAUSE_MS} ms:`);
  printTable(paced);
}
if (growth.length > 0) {
  console.log('\nCPU for about ten times the devices:');
  printTable(growth);
}

/** Adds the rounds of one more tree: turn after turn, and paced. Gives what there is on it. */
async function measureTree({ hcas, vfs = 0, close, paced }) {
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
  try {
    await warmUp(hcas + vfs, { node, core, exporters, floor });
    for (let round = 0; round < ROUNDS_PER_TREE; round += 1) {
      close.add(await turnAfterTurn({ node, core, exporters, floor }));
      if (PACED_TURNS > 0) paced.add(await atPace({ node, core, exporters, floor }));
    }
    const snapshot = await core.ask('snapshot');
    if (snapshot.devices !== hcas + vfs || snapshot.healthy !== hcas + vfs) throw new Error(`not all devices: ${JSON.stringify(snapshot)}`);
    if (snapshot.held !== ids.length) throw new Error(`not all pods joined: ${JSON.stringify(snapshot)}`);
    return { devices: hcas + vfs, files: files.length, series: snapshot.readings };
  } finally {
    await Promise.all([core.stop(), floor?.stop(), kubelet.close(), ...exporters.map((exporter) => exporter.stop())]);
    node.remove();
  }
}

async function warmUp(devices, { node, core, exporters, floor }) {
  const refreshes = Math.max(WARM_UP.refreshes, Math.ceil(WARM_UP.hcas / devices));
  for (let n = 0; n < refreshes; n += AT_ONCE) {
    node.advance();
    await core.ask('refreshMany', { count: AT_ONCE });
    if (n % 50 === 0) await core.ask('refresh', { withKubelet: true });
    if (n % 50 === 0) for (const exporter of exporters) await exporter.scrape();
    await floor?.pass();
  }
}

async function turnAfterTurn({ node, core, exporters, floor }) {
  const took = { agent: [], wall: [], asked: [], floor: [] };
  const turns = [
    ...(floor === undefined ? [] : [async () => took.floor.push(await floor.pass())]),
    ...exporters.map((exporter) => () => exporter.scrape()),
    async () => keep(took, await core.ask('refresh', {})),
  ];
  const before = exporters.map((exporter) => exporter.cpuSeconds());
  for (let turn = 0; turn < TURNS; turn += 1) {
    node.advance();
    for (let at = 0; at < turns.length; at += 1) await turns[(turn + at) % turns.length]();
    if (turn % 4 === 0) {
      node.advance();
      took.asked.push((await core.ask('refresh', { withKubelet: true })).cpuUs);
    }
  }
  // Counted in ticks of ten milliseconds, so over all turns at once.
  const perScrape = exporters.map((exporter, at) => ((exporter.cpuSeconds() - before[at]) * 1e6) / TURNS);
  return { ...took, ...Object.fromEntries(EXPORTERS.map(({ version }, at) => [version, [perScrape[at]]])) };
}

async function atPace({ node, core, exporters, floor }) {
  const took = { agent: [], wall: [], floor: [], ...Object.fromEntries(EXPORTERS.map(({ version }) => [version, []])) };
  const turns = [
    ...(floor === undefined ? [] : [async () => took.floor.push(await floor.pass())]),
    ...exporters.map((exporter) => async () => {
      const before = cpuMillis(exporter.pid);
      await exporter.scrape();
      took[exporter.version].push((cpuMillis(exporter.pid) - before) * 1_000);
    }),
    async () => keep(took, await core.ask('refresh', {})),
  ];
  for (let turn = 0; turn < PACED_TURNS; turn += 1) {
    for (const take of turns) {
      node.advance();
      await sleep(PAUSE_MS);
      await take();
    }
  }
  return took;
}

function keep(took, { cpuUs, wallUs }) {
  took.agent.push(cpuUs);
  took.wall.push(wallUs);
}

/** Collects the median of each round, by who took part. */
function rounds() {
  const lists = {};
  return {
    add(took) {
      for (const [who, list] of Object.entries(took)) if (list.length > 0) lists[who] = [...(lists[who] ?? []), median(list)];
    },
    /** Of all rounds, with their range. */
    medians: () => Object.fromEntries(Object.entries(lists).map(([who, list]) => [who, summary(list)])),
    /** Of the rounds on each tree, in the order of the trees. */
    ofTrees(who) {
      const list = lists[who] ?? [];
      const each = list.length / TREES;
      return Array.from({ length: each === 0 ? 0 : TREES }, (_, n) => median(list.slice(n * each, (n + 1) * each)));
    },
  };
}

function rowOf({ name, devices, files, series }, medians) {
  const ratio = (other) => (medians[other] === undefined ? undefined : (medians.agent.median / medians[other].median).toFixed(2));
  return {
    HCAs: name,
    'files read': files,
    series,
    'agent µs CPU': medians.agent.text,
    'agent µs wall': medians.wall.text,
    'with List µs CPU': medians.asked?.text,
    ...Object.fromEntries(EXPORTERS.map(({ version }) => [`node_exporter ${version} µs CPU`, medians[version].text])),
    'C floor µs CPU': medians.floor?.text,
    ...Object.fromEntries(EXPORTERS.map(({ version }) => [`agent / ${version}`, ratio(version)])),
    'agent / C floor': ratio('floor'),
    'µs per HCA': (medians.agent.median / devices).toFixed(1),
  };
}

/** CPU on each tree, microseconds. */
function ofTrees({ name, close, paced: slow }) {
  const of = (taken) => ({ agent: taken.ofTrees('agent'), floor: taken.ofTrees('floor') });
  return { HCAs: name, turnAfterTurn: of(close), paced: of(slow) };
}

/** Pairs of sizes of which one has 9.7 or ten times the devices of the other. */
function growthRows() {
  const pairs = measured.flatMap((small) => measured.map((large) => [small, large]));
  return pairs
    .filter(([small, large]) => Math.round(large.devices / small.devices) === 10)
    .map(([small, large]) => {
      const times = (pace, who) => {
        const before = small[pace].ofTrees(who);
        return before.length === 0
          ? undefined
          : summary(
              large[pace].ofTrees(who).map((cpu, n) => cpu / before[n]),
              1,
            ).text;
      };
      return {
        'HCAs from': small.name,
        to: large.name,
        devices: (large.devices / small.devices).toFixed(1),
        'agent, turn after turn': times('close', 'agent'),
        'agent, paced': times('paced', 'agent'),
        'C floor, turn after turn': times('close', 'floor'),
        'C floor, paced': times('paced', 'floor'),
        ...Object.fromEntries(EXPORTERS.map(({ version }) => [`node_exporter ${version}, paced`, times('paced', version)])),
      };
    });
}
