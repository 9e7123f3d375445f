// From the start of the process to listening, and to a page that has all devices and the pods that hold them: the agent as built, and
// as a bundle; node_exporter to its first page of the same HCAs; and a web server of node:http that does nothing else, which is what
// Node itself takes. All take turns in each round. CPU is of the process with its threads and the children that have ended.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { report, summary } from './parts/measure.mjs';
import { nodeExporters } from './parts/node-exporters.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { fetchText, freePort } from './parts/peers.mjs';
import { end, startServe } from './parts/serve.mjs';

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '9' }, quick: { type: 'boolean', default: false } } });
const ROUNDS = values.quick ? 1 : Number(values.rounds);
const POLL_MS = 10;
const PATIENCE_MS = 30_000;
/** Clock ticks per second of /proc/<pid>/stat. */
const TICKS = 100;
const MACHINE = { gpus: 8, hcas: 8 };
const PODS = 60;

const node = await makeNode(MACHINE);
const ids = Array.from({ length: MACHINE.hcas }, (_, n) => `mlx5_${n}`);
const kubelet = await makeKubelet(node.root, PODS, ids);
const took = new Map();
try {
  const bundle = `${node.root}/bundle`;
  execFileSync(process.execPath, [fileURLToPath(new URL('../scripts/bundle.mjs', import.meta.url)), bundle], { stdio: 'ignore' });
  const programs = [
    { name: 'agent, as built', start: () => startAgent(`${DIST}/cli/main.js`) },
    { name: 'agent, bundled', start: () => startAgent(`${bundle}/main.js`) },
    { name: 'node:http alone', start: startBareServer },
    ...(await nodeExporters()).map(({ version, path }) => ({ name: `node_exporter ${version}`, start: () => startExporter(path) })),
  ];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { name, start } of programs) took.set(name, [...(took.get(name) ?? []), await start()]);
  }
} finally {
  await kubelet.close();
  node.remove();
}
const columns = ['listening ms', 'CPU ms by then', 'all devices ms', 'CPU ms in all'];
const rows = [...took].map(([who, starts]) => {
  const texts = columns.map((name, column) => [name, summaryOf(starts.map((one) => one[column]))]);
  return { who, ...Object.fromEntries(texts) };
});
report('start', rows);

function summaryOf(figures) {
  return figures.includes(undefined) ? '-' : summary(figures).text;
}

/** Milliseconds and CPU milliseconds until it listens, and until its page has everything. */
async function startAgent(program) {
  const begun = performance.now();
  const agent = await startServe(node, kubelet, { interval: '10s', start: { words: [program], env: {} } });
  const listening = [performance.now() - begun, cpuWithChildren(agent.pid)];
  const devices = MACHINE.gpus + MACHINE.hcas;
  const isWhole = (page) =>
    count(page, /^device_present\{device="(?:GPU-|mlx5_)/gm) === devices && count(page, /^container_device_healthy\{/gm) === ids.length;
  return [...listening, ...(await untilWhole(agent, begun, isWhole))];
}

async function startBareServer() {
  const begun = performance.now();
  const code =
    "require('node:http').createServer((q, r) => r.end()).listen(0, '127.0.0.1', function () { console.log(this.address().port) })";
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  const listening = [performance.now() - begun, cpuWithChildren(child.pid)];
  await end(child);
  return [...listening, undefined, undefined];
}

/** Whether it listens is seen by its first page only. */
async function startExporter(path) {
  const port = await freePort();
  const begun = performance.now();
  const flags = ['--collector.disable-defaults', '--collector.infiniband', '--log.level=error'];
  const child = spawn(path, [...flags, `--path.sysfs=${node.roots.sysfs}`, `--web.listen-address=127.0.0.1:${port}`], { stdio: 'ignore' });
  const isWhole = (page) => count(page, /^node_infiniband_state_id\{/gm) === MACHINE.hcas;
  return [undefined, undefined, ...(await untilWhole({ pid: child.pid, port, stop: () => end(child) }, begun, isWhole))];
}

async function untilWhole({ pid, port, stop }, begun, isWhole) {
  try {
    while (performance.now() - begun < PATIENCE_MS) {
      const page = await fetchText({ host: '127.0.0.1', port, path: '/metrics' }).catch(() => '');
      if (isWhole(page)) return [performance.now() - begun, cpuWithChildren(pid)];
      await sleep(POLL_MS);
    }
    throw new Error('the page did not get whole');
  } finally {
    await stop();
  }
}

function count(page, pattern) {
  return (page.match(pattern) ?? []).length;
}

/** Milliseconds. */
function cpuWithChildren(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + (Number(ticks) * 1_000) / TICKS, 0);
}
