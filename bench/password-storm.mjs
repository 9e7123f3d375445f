// Scrapes of a client whose password is known, while wrong passwords arrive from the same address, 200 each second: does the storm
// delay the scrape? The wrong ones name users that exist and users that do not, on new connections and on open ones.
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { hashSync } from 'bcryptjs';
import { cpuSeconds, quantile, report, rssMiB } from './parts/measure.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '30' }, rate: { type: 'string', default: '200' } } });
const SECONDS = Number(values.seconds);
const RATE = Number(values.rate);
const COST = 10;
const SCRAPE_MS = 250;
/** Prometheus gives up after ten seconds by default. */
const DEADLINE_MS = 10_000;

const node = await makeNode({ infiniband: 68 });
const kubelet = await makeKubelet(
  node.root,
  68,
  Array.from({ length: 68 }, (_, n) => `mlx5_${n}`),
);
const file = join(node.root, 'web.yml');
writeFileSync(file, `basic_auth_users:\n  prometheus: ${hashSync('right', COST)}\n`);
const agent = await startServe(node, kubelet, { interval: '10s', flags: [`--web.config.file=${file}`] });
try {
  const rows = [];
  rows.push({ connections: 'first scrape', ...(await measure(0, false, 0)) });
  rows.push({ connections: 'quiet', ...(await measure(0, false, SECONDS)) });
  for (const keepAlive of [false, true])
    rows.push({ connections: keepAlive ? 'kept' : 'new', ...(await measure(RATE, keepAlive, SECONDS)) });
  report('password-storm', rows);
} finally {
  await agent.stop();
  await kubelet.close();
  node.remove();
}

/** Scrapes four times a second, and sends wrong passwords at a rate. */
async function measure(rate, keepAlive, seconds) {
  const answers = new Map();
  const storm = new Agent({ keepAlive, maxSockets: 64 });
  const scraper = new Agent({ keepAlive: true });
  const endMs = performance.now() + seconds * 1_000;
  const cpuBefore = cpuSeconds(agent.pid);
  const sent = [];
  let count = 0;
  const sending = (async () => {
    const startMs = performance.now();
    while (rate > 0 && performance.now() < endMs) {
      const due = ((performance.now() - startMs) / 1_000) * rate;
      for (; count < due; count += 1) sent.push(ask(storm, count % 2 === 0 ? 'prometheus' : `user-${count}`, `wrong-${count}`));
      await sleep(5);
    }
  })();
  const times = [];
  do {
    const startMs = performance.now();
    const status = await ask(scraper, 'prometheus', 'right');
    times.push(performance.now() - startMs);
    if (status !== 200) throw new Error(`the scrape got ${status}`);
    if (seconds > 0) await sleep(SCRAPE_MS);
  } while (performance.now() < endMs);
  const cpu = cpuSeconds(agent.pid) - cpuBefore;
  await sending;
  for (const status of await Promise.all(sent)) answers.set(status, (answers.get(status) ?? 0) + 1);
  storm.destroy();
  scraper.destroy();
  return {
    'wrong/s': rate,
    scrapes: times.length,
    'median ms': quantile(times, 0.5).toFixed(1),
    'p99 ms': quantile(times, 0.99).toFixed(1),
    'longest ms': Math.max(...times).toFixed(1),
    'in time': times.every((time) => time < DEADLINE_MS) ? 'all' : 'NOT ALL',
    'got 401': answers.get(401) ?? 0,
    'got 503': answers.get(503) ?? 0,
    other: [...answers].filter(([status]) => status !== 401 && status !== 503).reduce((sum, [, times]) => sum + times, 0),
    'CPU %': seconds === 0 ? '-' : ((cpu / seconds) * 100).toFixed(0),
    'RSS MiB': rssMiB(agent.pid).toFixed(0),
  };
}

/** Gives the status, or 0 without an answer. */
function ask(connections, user, password) {
  const options = { host: '127.0.0.1', port: agent.port, path: '/metrics', agent: connections, auth: `${user}:${password}` };
  return new Promise((resolve) => {
    get(options, (response) => response.resume().on('end', () => resolve(response.statusCode))).on('error', () => resolve(0));
  });
}
