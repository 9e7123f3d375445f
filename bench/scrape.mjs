// Latency and CPU of a scrape at about 1,000, 10,000 and 50,000 series, by 1 and by 50 scrapers at once, plain and compressed: back to
// back while the agent shows one snapshot, and paced, where each scrape meets a page that is new. Against node_exporter with as many
// series from the cheapest of its collectors that can have so many, a table of interrupts; and against a server of one page that never
// changes, which is what node:http itself costs.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { cpuMillis, quantile, report } from './parts/measure.mjs';
import { createScraper, startExporter } from './parts/node-exporter.mjs';
import { nodeExporters } from './parts/node-exporter-builds.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({ options: { turns: { type: 'string', default: '40' }, only: { type: 'string' } } });
const TURNS = Number(values.turns);
/** HCAs with a pod each. */
const SIZES = [7, 68, 340].filter((hcas) => values.only === undefined || Number(values.only) === hcas);
const WAYS = [1, 50].flatMap((connections) => [false, true].map((gzip) => ({ connections, gzip })));
/** The agent reads once a second; its page is the same for scrapes within a second. */
const PACE_MS = 1_100;
const MOST_PACED = 10;
const CPUS = 40;

const exporter = (await nodeExporters()).at(-1);
const rows = [];
for (const hcas of SIZES) rows.push(...(await measureSize(hcas)));
report('scrape', rows);

async function measureSize(hcas) {
  const node = await makeNode({ infiniband: hcas });
  const ids = Array.from({ length: hcas }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, hcas, ids);
  const started = [];
  try {
    const agent = await startServe(node, kubelet, { interval: '1s' });
    started.push(agent);
    const page = await settled(agent.port, hcas);
    const series = page.match(/^[^#\n]/gm).length;
    const still = await startStatic(page);
    started.push(still);
    const peers = [
      { name: 'agent', ...agent, paceMs: 0 },
      { name: 'agent, each page new', ...agent, paceMs: PACE_MS },
      { ...still, paceMs: 0 },
    ];
    if (exporter !== undefined) {
      started.push(await startTable(node.root, series));
      peers.push({ ...started.at(-1), paceMs: 0 });
    }
    const found = [];
    for (const way of WAYS) for (const peer of peers) found.push({ series, ...(await measure(peer, way, node)) });
    return found;
  } finally {
    for (const { stop } of started) await stop();
    await kubelet.close();
    node.remove();
  }
}

async function measure({ name, pid, port, paceMs }, { connections, gzip }, node) {
  const scraper = createScraper(port, { gzip, connections });
  const all = () => Promise.all(Array.from({ length: connections }, () => timed(scraper.scrape)));
  try {
    await all();
    const turns = paceMs === 0 ? Math.ceil(TURNS / connections) + 1 : Math.min(TURNS, MOST_PACED);
    const [times, cpus] = [[], []];
    for (let turn = 0; turn < turns; turn += 1) {
      if (paceMs > 0) node.advance();
      await sleep(paceMs);
      const before = cpuMillis(pid);
      times.push(...(await all()));
      cpus.push((cpuMillis(pid) - before) / connections);
    }
    return {
      'at once': connections,
      gzip: gzip ? 'yes' : 'no',
      who: name,
      'p50 ms': quantile(times, 0.5).toFixed(2),
      'p99 ms': quantile(times, 0.99).toFixed(1),
      'CPU ms per scrape': quantile(cpus, 0.5).toFixed(2),
    };
  } finally {
    scraper.close();
  }
}

async function timed(scrape) {
  const begun = performance.now();
  await scrape();
  return performance.now() - begun;
}

/** The page once all devices and their containers are on it. */
async function settled(port, hcas) {
  const { scrape, close } = createScraper(port);
  try {
    for (let tries = 0; tries < 200; tries += 1) {
      const page = await scrape();
      if ((page.match(/^container_device_healthy\{/gm) ?? []).length === hcas) return page;
      await sleep(100);
    }
  } finally {
    close();
  }
  throw new Error('the devices did not come');
}

async function startStatic(page) {
  const child = fork(fileURLToPath(new URL('parts/static-page.mjs', import.meta.url)));
  child.send({ page });
  const [{ port }] = await once(child, 'message');
  const stop = async () => {
    child.disconnect();
    await once(child, 'exit');
  };
  return { name: 'a static page', pid: child.pid, port, stop };
}

function startTable(folder, series) {
  const numbers = (row) => Array.from({ length: CPUS }, (_, cpu) => 10_000 * row + cpu).join(' ');
  const lines = Array.from(
    { length: Math.round(series / CPUS) },
    (_, row) => `${row}: ${numbers(row)} PCI-MSI 524288-edge mlx5_comp${row}`,
  );
  const header = Array.from({ length: CPUS }, (_, cpu) => `CPU${cpu}`).join(' ');
  mkdirSync(join(folder, 'proc'), { recursive: true });
  writeFileSync(join(folder, 'proc/interrupts'), `${[header, ...lines].join('\n')}\n`);
  return startExporter(exporter, ['--collector.interrupts', `--path.procfs=${join(folder, 'proc')}`]);
}
