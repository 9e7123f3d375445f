// How long the agent's main thread is busy without a break on a large node: 512 devices, each held by a pod, their counters moving and pods
// coming and going. Ten scrapers, 50 open pages and a probe of /healthz ask it meanwhile, from a process of their own.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { cpuSeconds, quantile, report, rssMiB } from './parts/measure.mjs';
import { createScraper } from './parts/node-exporter.mjs';
import { makeKubelet, makeNode, podOf } from './parts/node-tree.mjs';
import { startServe, WITHOUT_LIMIT } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '512' },
    scrapers: { type: 'string', default: '10' },
    pages: { type: 'string', default: '50' },
    interval: { type: 'string', default: '10' },
    // Each scraper; they do not start together.
    scrape: { type: 'string', default: '15' },
    settle: { type: 'string', default: '60' },
    seconds: { type: 'string', default: '600' },
    // A directory for a CPU profile of the main thread.
    profile: { type: 'string' },
    // Set by this program alone: the port that its clients ask.
    port: { type: 'string' },
  },
});
const [DEVICES, SCRAPERS, PAGES, INTERVAL, SCRAPE, SETTLE, SECONDS] = [
  'devices',
  'scrapers',
  'pages',
  'interval',
  'scrape',
  'settle',
  'seconds',
].map((name) => Number(values[name]));
const CHURN_MS = 1_000;
const HEALTHZ_MS = 100;
let churned = 0;

if (values.port === undefined) await measure();
else runClients(Number(values.port));

async function measure() {
  const hcas = Math.min(8, DEVICES);
  const node = await makeNode({ infiniband: hcas, 'infiniband.vf': DEVICES - hcas });
  const ids = Array.from({ length: DEVICES }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, DEVICES, ids);
  const profile = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`];
  const probe = fileURLToPath(new URL('parts/stall-probe.mjs', import.meta.url));
  const start = { words: [...profile, '--import', probe, WITHOUT_LIMIT, `${DIST}/cli/main.js`], env: {}, hasChannel: true };
  const agent = await startServe(node, kubelet, { interval: `${INTERVAL}s`, start });
  const clients = fork(fileURLToPath(import.meta.url), [`--port=${agent.port}`, ...process.argv.slice(2)]);
  const churn = setInterval(() => churnPods(kubelet, ids), CHURN_MS);
  const traffic = setInterval(() => node.advance(), INTERVAL * 1_000);
  try {
    await sleep(SETTLE * 1_000);
    await Promise.all([ask(agent.child), ask(clients)]);
    const before = cpuSeconds(agent.pid);
    await sleep(SECONDS * 1_000);
    const [{ wall, took }, { scrapes, healthz }] = await Promise.all([ask(agent.child), ask(clients)]);
    const cpu = ((cpuSeconds(agent.pid) - before) * 60_000) / SECONDS;
    const texts = (what, times) => ({
      what,
      'p50 ms': quantile(times, 0.5).toFixed(1),
      'p99 ms': quantile(times, 0.99).toFixed(1),
      'longest ms': quantile(times, 1).toFixed(1),
      'above 20 ms': times.filter((ms) => ms > 20).length,
      count: times.length,
    });
    const rows = [
      texts('main thread without a turn, wall', wall),
      texts('main thread without a turn, its CPU', took),
      ...(scrapes.length === 0 ? [] : [texts('scrape', scrapes)]),
      ...(healthz.length === 0 ? [] : [texts('/healthz', healthz)]),
    ];
    const load = loadavg().map((one) => one.toFixed(1));
    const all = { devices: DEVICES, seconds: SECONDS, load, cpuMsPerMinute: cpu.toFixed(0), rssMiB: rssMiB(agent.pid).toFixed(0) };
    console.log(JSON.stringify(all));
    report('stalls', rows, all);
  } finally {
    clearInterval(churn);
    clearInterval(traffic);
    clients.kill();
    await agent.stop();
    await kubelet.close();
    node.remove();
  }
}

/** One pod ends, and one with another name takes its device. */
function churnPods(kubelet, ids) {
  const n = churned % ids.length;
  const named = (turn) => ({ ...podOf(n, ids[n]), ...(turn === 0 ? {} : { name: `job-${n}-worker-${turn}` }) });
  const turn = Math.floor(churned / ids.length);
  const { namespace, name } = named(turn);
  kubelet.removePod(namespace, name);
  kubelet.admitPod(named(turn + 1));
  churned += 1;
}

async function ask(child) {
  child.send({});
  return (await once(child, 'message'))[0];
}

/** The clients, in the process that this program forks. */
function runClients(port) {
  let [scrapes, healthz] = [[], []];
  for (let n = 0; n < SCRAPERS; n += 1) {
    const { scrape } = createScraper(port, { gzip: true });
    const one = () => timed(scrape, scrapes);
    setTimeout(() => setInterval(one, SCRAPE * 1_000), (n * SCRAPE * 1_000) / SCRAPERS);
  }
  for (let n = 0; n < PAGES; n += 1)
    get({ host: '127.0.0.1', port, path: '/api/v1/devices/watch', agent: false }, (response) => response.resume()).on(
      'error',
      () => undefined,
    );
  setInterval(() => timed(() => fetch(`http://127.0.0.1:${port}/healthz`).then((answer) => answer.text()), healthz), HEALTHZ_MS);
  process.on('message', () => {
    process.send({ scrapes, healthz });
    [scrapes, healthz] = [[], []];
  });
}

async function timed(work, times) {
  const begun = performance.now();
  try {
    await work();
    times.push(performance.now() - begun);
  } catch (error) {
    console.error(`no answer: ${error.message}`);
  }
}
