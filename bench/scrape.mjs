// Latency and CPU of a scrape at about 1,000, 10,000 and 50,000 series, by 1 and by 50 scrapers at once, plain and compressed. The
// agent has simulated HCAs with a pod each, and is met in three ways:
// - `same`: the real agent, scraped back to back while it shows one snapshot;
// - `first`: its exposition and server alone, each scrape being the first of a snapshot that nothing was prepared for: all of
//   rendering and compressing falls on it, and on its CPU;
// - `live`: the real agent reading every 400 ms and scraped every 520 ms, between which the counters move, so that each scrape meets a page
//   that is new. They move while nobody waits: the kernel's do so by themselves, and here it takes a processor some time. Its CPU,
//   which is that of reading for the most part, tells nothing of scrapes.
// Against node_exporter with as many series (at the pace of `live` too: whoever is seldom asked answers more slowly), and against the
// same page sent by node:http from memory. All take turns in each round.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { cpuMillis, printTable, report } from './parts/measure.mjs';
import { nodeExporters } from './parts/node-exporters.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { fetchText } from './parts/peers.mjs';
import { startBare, startClient, startStatic, startTable } from './parts/scrape-peers.mjs';
import { columns, goals, PACED } from './parts/scrape-table.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, only: { type: 'string' }, quick: { type: 'boolean', default: false } },
});
const ROUNDS = values.quick ? 1 : Number(values.rounds);
const REFRESH_MS = 400;
const PACE_MS = 520;
const PACED_TIMES = values.quick ? 3 : 8;
/** More take minutes. */
const QUICK_MOST = 10_000;
/** HCAs with a pod each; scrapes by one scraper and by fifty in a turn; rounds where fewer have to do. */
const SIZES = [
  { about: 1_000, hcas: 7, times: { 1: 150, 50: 6 } },
  { about: 10_000, hcas: 68, times: { 1: 40, 50: 10 } },
  { about: 50_000, hcas: 340, times: { 1: 12, 50: 1 }, most: { 1: 3, 50: 2 } },
].filter(({ about }) => (values.only === undefined ? !values.quick || about <= QUICK_MOST : Number(values.only) === about));
const WAYS = [1, 50].flatMap((scrapers) => [false, true].map((gzip) => ({ scrapers, gzip })));

const exporters = await nodeExporters();
const results = [];
for (const size of SIZES) results.push(...(await measureSize(size)));
const rows = results.flatMap(columns);
const verdicts = goals(results);
report('scrape', rows, { goals: verdicts });
console.log();
printTable(verdicts);

async function measureSize(size) {
  const node = await makeNode({ hcas: size.hcas });
  const ids = Array.from({ length: size.hcas }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, size.hcas, ids);
  const started = [];
  const start = async (peer) => {
    started.push(await peer);
    return started.at(-1);
  };
  try {
    const same = await start(startServe(node, kubelet, { interval: '1h', flags: ['--refresh.stale-after=2h'] }));
    const live = await start(startServe(node, kubelet, { interval: `${REFRESH_MS}ms` }));
    const page = await settledPage(same, size.hcas);
    await settledPage(live, size.hcas);
    process.kill(live.pid, 'SIGSTOP');
    const series = page.match(/^[^#\n]/gm).length;
    const bare = await start(startBare(size.hcas));
    const peers = [
      { name: 'same', ...same },
      { name: 'first', ...bare },
      { name: 'live', ...live, node },
      { name: 'static', ...(await start(startStatic(node.root, page))) },
    ];
    for (const exporter of exporters)
      peers.push({ name: `node_exporter ${exporter.version}`, ...(await start(startTable(node.root, series, exporter))) });
    if (exporters.length > 0) peers.push({ ...peers.at(-1), name: `${peers.at(-1).name}, ${PACED}`, isPaced: true });
    return await measureWays(size, series, peers, await start(startClient()));
  } finally {
    // One that stands still does not end.
    for (const { pid } of started) if (pid !== undefined) process.kill(pid, 'SIGCONT');
    for (const peer of started) await peer.stop();
    await kubelet.close();
    node.remove();
  }
}

/** The page once all devices and the counters of their containers are on it, which begin a look later. */
async function settledPage({ port }, hcas) {
  for (let tries = 0; tries < 200; tries += 1) {
    const page = await fetchText({ host: '127.0.0.1', port, path: '/metrics' });
    if ((page.match(/^container_device_received_bytes_total\{/gm) ?? []).length === hcas) return page;
    await sleep(100);
  }
  throw new Error('the agent does not show all devices');
}

async function measureWays(size, series, peers, client) {
  const ways = WAYS.map((way) => ({ series, ...way, took: new Map(peers.map(({ name }) => [name, []])) }));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { scrapers, gzip, took } of ways) {
      if (round >= (size.most?.[scrapers] ?? ROUNDS)) continue;
      const times = values.quick ? Math.ceil(size.times[scrapers] / 10) : size.times[scrapers];
      for (const peer of turned(peers, round)) {
        if (peer.isPaced && scrapers > 1) continue;
        const result = await measurePeer(peer, client, { port: peer.port, scrapers, gzip, times: timesOf(peer, times), paceMs: 0 });
        if (Math.abs(result.series / series - 1) > 0.08) throw new Error(`${peer.name} has ${result.series} series instead of ${series}`);
        took.get(peer.name).push({ ...result, cpuMs: result.cpuMs / result.latencies.length });
      }
    }
  }
  return ways;
}

/** What takes seconds is done less often: its median needs no more. */
function timesOf({ name }, times) {
  return name.startsWith('node_exporter') ? Math.ceil(times / 4) : times;
}

function turned(list, by) {
  return list.map((_, index) => list[(index + by) % list.length]);
}

function measurePeer(peer, client, task) {
  const cpu = () => cpuMillis(peer.pid);
  if (peer.node !== undefined) return whileMoving(peer, (before) => client.turn({ ...task, times: PACED_TIMES }, { cpu, before }));
  return client.turn(peer.isPaced ? { ...task, times: PACED_TIMES, paceMs: PACE_MS } : task, { cpu, before: peer.publish });
}

/** It stands still while others are measured. `measure` is given what is to be done before each scrape. */
async function whileMoving({ pid, node }, measure) {
  process.kill(pid, 'SIGCONT');
  await sleep(2 * REFRESH_MS);
  const begun = performance.now();
  let scrapes = 0;
  try {
    return await measure(async () => {
      node.advance();
      scrapes += 1;
      await sleep(Math.max(0, begun + scrapes * PACE_MS - performance.now()));
    });
  } finally {
    process.kill(pid, 'SIGSTOP');
  }
}
