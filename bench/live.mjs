// What open pages cost: an agent with 500 devices, 8 HCAs and their virtual functions, each held by a pod, and 50 clients that follow the board as a page does. Measures the CPU of
// the agent without and with the clients, its memory, and the time of a scrape meanwhile; then the history of readings at 8 + 8 devices.
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { dist } from './parts/dist.mjs';
import { cpuSeconds, quantile, report, rssMiB } from './parts/measure.mjs';
import { createScraper } from './parts/node-exporter.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '500' },
    pages: { type: 'string', default: '50' },
    seconds: { type: 'string', default: '150' },
    settle: { type: 'string', default: '30' },
    interval: { type: 'string', default: '10' },
    // As two or three Prometheus servers scrape.
    scrape: { type: 'string', default: '5' },
  },
});
const names = ['devices', 'pages', 'seconds', 'settle', 'interval', 'scrape'];
const [DEVICES, PAGES, SECONDS, SETTLE, INTERVAL, SCRAPE] = names.map((name) => Number(values[name]));
const HCAS = Math.min(8, DEVICES);

const node = await makeNode({ infiniband: HCAS, 'infiniband.vf': DEVICES - HCAS });
const kubelet = await makeKubelet(
  node.root,
  DEVICES,
  Array.from({ length: DEVICES }, (_, n) => `mlx5_${n}`),
);
const agent = await startServe(node, kubelet, { interval: `${INTERVAL}s` });
const scraper = createScraper(agent.port, { gzip: true });
const clients = [];
try {
  await waitForDevices();
  const alone = await measure();
  for (let n = 0; n < PAGES; n += 1) clients.push(follow());
  const watched = await measure();
  const received = clients.reduce((sum, { bytes }) => sum + bytes(), 0);
  report(
    'live',
    [
      { pages: 0, ...alone },
      { pages: PAGES, ...watched, 'MiB to all pages per second': (received / 2 ** 20 / (SECONDS + SETTLE)).toFixed(1) },
      {
        pages: 'the difference',
        'CPU of a core': `${(Number.parseFloat(watched['CPU of a core']) - Number.parseFloat(alone['CPU of a core'])).toFixed(2)} %`,
      },
    ],
    { devices: DEVICES, intervalSeconds: INTERVAL, scrapeSeconds: SCRAPE, seconds: SECONDS },
  );
} finally {
  for (const { end } of clients) end();
  scraper.close();
  await agent.stop();
  await kubelet.close();
  node.remove();
}
await reportHistory();

async function waitForDevices() {
  for (let tries = 0; tries < 120; tries += 1) {
    const devices = await readingsOf(agent.port).catch(() => []);
    if (devices.length >= DEVICES) return;
    await sleep(1_000);
  }
  throw new Error('the devices were never seen');
}

/** CPU and memory over the time, with traffic that moves. */
async function measure() {
  const times = [];
  /** New counters come before each refresh only, because writing them costs this process much. */
  const run = async (seconds) => {
    const endMs = performance.now() + seconds * 1_000;
    for (let n = 0; performance.now() < endMs; n += 1) {
      if ((n * SCRAPE) % INTERVAL < SCRAPE) node.advance();
      const startMs = performance.now();
      await scraper.scrape();
      times.push(performance.now() - startMs);
      await sleep(Math.max(0, startMs + SCRAPE * 1_000 - performance.now()));
    }
  };
  await run(SETTLE);
  times.length = 0;
  const before = cpuSeconds(agent.pid);
  const startMs = performance.now();
  await run(SECONDS);
  const share = ((cpuSeconds(agent.pid) - before) * 1_000) / (performance.now() - startMs);
  return {
    'CPU of a core': `${(share * 100).toFixed(2)} %`,
    'RSS MiB': rssMiB(agent.pid).toFixed(0),
    'scrape p50 ms': quantile(times, 0.5).toFixed(1),
    'scrape p99 ms': quantile(times, 0.99).toFixed(1),
    scrapes: times.length,
  };
}

/** One client that reads all it gets, as a browser does. */
function follow() {
  let bytes = 0;
  const request = get({ host: '127.0.0.1', port: agent.port, path: '/api/v1/devices/watch', agent: false }, (response) => {
    response.on('data', (chunk) => {
      bytes += chunk.length;
    });
    response.on('error', () => undefined);
  });
  request.on('error', () => undefined);
  return { bytes: () => bytes, end: () => request.destroy() };
}

/** Memory of half an hour of readings: what it is on the simulated node, and the most it can be when each series changes at each read. */
async function reportHistory() {
  const { ReadingHistoryStore } = await dist('incidents/history.js');
  const { familyLoaders } = await dist('probes/families.js');
  const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
  const specs = new Map(families.flatMap(({ metrics }) => metrics).map((spec) => [spec.name, spec]));
  const machine = await makeNode({ nvidia: 8, infiniband: 8 });
  const holders = await makeKubelet(machine.root, 0, []);
  const running = await startServe(machine, holders, { interval: '1s' });
  try {
    let devices = [];
    for (let tries = 0; tries < 60 && devices.length < 16; tries += 1) {
      await sleep(500);
      devices = await readingsOf(running.port);
    }
    const rows = [];
    for (const intervalMs of [10_000, 1_000]) {
      for (const changing of ['a fifth', 'all']) {
        const history = new ReadingHistoryStore({ periodMs: 1_800_000, intervalMs, specs });
        for (let n = 0; n <= 1_800_000 / intervalMs; n += 1) {
          history.take(
            devices.map(({ key, readings }) => ({
              key,
              readAtMs: n * intervalMs,
              readings: {
                series: readings,
                values: readings.map((_, at) => (changing === 'all' || at % 5 === 0 ? n : 1)),
                length: readings.length,
              },
            })),
          );
        }
        rows.push({
          devices: devices.length,
          series: devices.reduce((sum, { readings }) => sum + readings.length, 0),
          'interval s': intervalMs / 1_000,
          'series that change': changing,
          MiB: (history.bytes / 2 ** 20).toFixed(1),
        });
      }
    }
    report('live-history', rows);
  } finally {
    await running.stop();
    await holders.close();
    machine.remove();
  }
}

async function readingsOf(port) {
  const { devices = [] } = await (await fetch(`http://127.0.0.1:${port}/api/v1/devices`)).json();
  return devices.map(({ family, id, readings }) => ({
    key: `${family}/${id}`,
    readings: Object.entries(readings).flatMap(([metric, value]) =>
      Array.isArray(value) ? value.map(({ labels }) => ({ metric, labels })) : [{ metric, labels: {} }],
    ),
  }));
}
