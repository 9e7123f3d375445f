// The real agent under churn for a long time: does anything that it holds keep growing? Pods with new names come and go, devices vanish and
// come back, ports lose their links, other plugins' sockets come and go, the kubelet restarts, hostile files stand in place of the
// kubelet's, and scrapers, browsers and plugin callers ask meanwhile. A row per minute tells what the process holds; the program ends
// with 1 when a figure keeps growing after the warm-up (soak/growth.mjs).
// `--only=pods,scrapes` leaves the other parts out. `--snapshots=DIR` writes a heap snapshot after a quarter of the time and at the end.
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { imageStart } from './parts/image.mjs';
import { openFiles, report, rssMiB, threadsOf } from './parts/measure.mjs';
import { startServe } from './parts/serve.mjs';
import { DISTURBANCES } from './soak/disturbances.mjs';
import { growing } from './soak/growth.mjs';
import { makeSoakNode } from './soak/node.mjs';
import { makeTraffic } from './soak/traffic.mjs';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    /** Pods that end and begin, per second. */
    changes: { type: 'string', default: '25' },
    /** Pods at any moment. */
    pods: { type: 'string', default: '60' },
    interval: { type: 'string', default: '1s' },
    /** Seconds from one row to the next. */
    row: { type: 'string', default: '60' },
    /** Rows from one forced collection to the next; 0 for none. A collection makes RSS smaller than without anybody who looks. */
    'collect-every': { type: 'string', default: '1' },
    only: { type: 'string' },
    /** The entry point of another build of the agent. */
    agent: { type: 'string', default: `${DIST}/cli/main.js` },
    snapshots: { type: 'string' },
  },
});
const MIB = 2 ** 20;
const COLLECT_EVERY = Number(values['collect-every']);
const ROW_MS = Number(values.row) * 1_000;
const ROWS = Math.max(1, Math.round((Number(values.minutes) * 60_000) / ROW_MS));
/** Before each row nothing disturbs the node, while counts are taken once a second. The lowest count is what never goes away. */
const QUIET_MS = Math.min(8_000, ROW_MS / 3);
const DISTURB_EVERY_MS = 8_000;
const PACES_MS = {
  pods: 1_000 / Number(values.changes),
  'plugin-pods': 500,
  devices: 1_500,
  faults: 700,
  decoys: 250,
  scrapes: 1_000,
  pages: 700,
  calls: 2_000,
  disturbances: DISTURB_EVERY_MS,
};
/**
 * Rises that are no leak, MiB. What is in use in the heaps is the sharp figure. RSS rises by the machine code that V8 makes of what runs
 * often, and by pages of its heaps that stay partly used, for the better part of an hour.
 */
const MEMORY = { 'heap MiB': 2, 'heaps of threads MiB': 2, 'external MiB': 2, 'outside heaps MiB': 4, 'RSS MiB': 8 };
const COUNTS = ['descriptors', 'kept files', 'threads', 'handles', 'timers'];

const wanted = values.only?.split(',') ?? Object.keys(PACES_MS);
for (const name of wanted)
  if (!(name in PACES_MS)) throw new Error(`nothing is called ${name}; there are ${Object.keys(PACES_MS).join(', ')}`);

const node = await makeSoakNode(Number(values.pods));
const agent = await startInspected(node).catch(async (error) => {
  await node.stop();
  throw error;
});
const traffic = makeTraffic(agent.port, node);
const stops = wanted.filter((name) => name !== 'disturbances').map((name) => repeat(node.churns[name] ?? traffic[name], PACES_MS[name]));
const counters = setInterval(() => node.node.advance(), 1_000);
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    agent.child.kill('SIGKILL');
    node.node.remove();
    process.exit(1);
  });
const startedMs = performance.now();
const rows = [];
let disturbed = 0;
let mostThreads = 0;
try {
  for (let n = 1; n <= ROWS; n += 1) {
    rows.push(await nextRow(n));
    printRow(rows);
    const isTimeForSnapshot = n === Math.ceil(ROWS / 4) || n === ROWS;
    if (values.snapshots !== undefined && isTimeForSnapshot)
      await agent.ask('snapshot', { path: join(values.snapshots, `${n}.heapsnapshot`) });
  }
} finally {
  clearInterval(counters);
  for (const stop of stops) stop();
  traffic.scrapes.end();
  traffic.pages.end();
  await agent.stop();
  await node.stop();
}
const grown = growing(rows, { memory: MEMORY, counts: COUNTS });
console.log();
report('soak', rows, { settings: values, grown, failures: Object.fromEntries(traffic.failures) });
for (const [what, count] of traffic.failures) console.log(`${count} x ${what}`);
for (const text of grown) console.error(`grows: ${text}`);
process.exit(grown.length === 0 ? 0 : 1);

/** The agent with the image's flags and variables, and with what looks into its process. */
async function startInspected(soakNode) {
  const { flags, env } = imageStart();
  const inside = fileURLToPath(new URL('soak/inside.mjs', import.meta.url));
  const start = { words: [...flags, `--import=${inside}`, values.agent], env, hasChannel: true };
  const served = await startServe(soakNode, soakNode, { interval: values.interval, flags: soakNode.flags, start });
  const { child } = served;
  const lastLines = [];
  child.stderr.on('data', (text) => {
    lastLines.push(String(text));
    if (lastLines.length > 50) lastLines.shift();
  });
  const ended = once(child, 'exit').then(([status, signal]) => {
    throw new Error(`the agent ended with ${signal ?? status}:\n${lastLines.join('')}`);
  });
  ended.catch(() => {});
  return {
    ...served,
    async ask(soak, rest = {}) {
      child.send({ soak, ...rest });
      const [{ answer }] = await Promise.race([once(child, 'message'), ended]);
      return answer;
    },
  };
}

/** Runs `step` at a pace until the returned function is called. A step that takes longer delays the next one. */
function repeat(part, paceMs) {
  let timer;
  let dueMs = performance.now();
  const run = async () => {
    await part.step();
    dueMs = Math.max(dueMs + paceMs, performance.now() - 1_000);
    if (timer !== undefined) timer = setTimeout(run, Math.max(0, dueMs - performance.now()));
  };
  timer = setTimeout(run, paceMs);
  return () => {
    clearTimeout(timer);
    timer = undefined;
  };
}

async function nextRow(n) {
  const rest = () => startedMs + n * ROW_MS - QUIET_MS - performance.now();
  while (rest() > DISTURB_EVERY_MS) {
    await sleep(DISTURB_EVERY_MS / 2);
    if (wanted.includes('disturbances')) await disturb();
    await sleep(DISTURB_EVERY_MS / 2);
  }
  await sleep(Math.max(0, rest()));
  const counts = await lowestCounts();
  const rss = rssMiB(agent.pid);
  const isCollected = COLLECT_EVERY > 0 && n % COLLECT_EVERY === 0;
  // What the heaps have of the system is told as it was before the collection, as RSS is.
  const before = await agent.ask('memory', { isCollected: false });
  const row = {
    minute: ((performance.now() - startedMs) / 60_000).toFixed(1),
    'RSS MiB': round(rss),
    'outside heaps MiB': ofAllThreads(before, rss * MIB - before.taken),
    'external MiB': round(before.external / MIB),
    ...counts,
  };
  if (!isCollected) return row;
  const after = await agent.ask('memory', { isCollected });
  return {
    ...row,
    'heap MiB': round(after.used / MIB, 2),
    'heaps of threads MiB': ofAllThreads(after, after.usedByThreads),
    timers: after.timers,
  };
}

/** A sum over the threads; undefined when one of them did not answer, because it is in the middle of a long read. */
function ofAllThreads({ threads }, bytes) {
  mostThreads = Math.max(mostThreads, threads);
  return threads === mostThreads ? round(bytes / MIB, 2) : undefined;
}

async function lowestCounts() {
  const lowest = {};
  for (const endsMs = performance.now() + QUIET_MS; performance.now() < endsMs; await sleep(1_000)) {
    const counts = { ...descriptors(), threads: threadsOf(agent.pid), handles: await agent.ask('handles') };
    for (const [name, count] of Object.entries(counts)) lowest[name] = Math.min(lowest[name] ?? count, count);
  }
  return lowest;
}

/** The files of devices that probes keep open are apart: while a file hangs, another process has them open. */
function descriptors() {
  const all = openFiles(agent.pid);
  const kept = all.filter((path) => path.startsWith(`${node.root}/sys/`)).length;
  return { descriptors: all.length - kept, 'kept files': kept };
}

/** The next one of the list. */
async function disturb() {
  const all = Object.values(DISTURBANCES);
  const next = all[disturbed % all.length];
  disturbed += 1;
  await next(node);
}

function round(value, digits = 1) {
  return Number(value.toFixed(digits));
}

/** The table grows while the program runs; the whole one comes at the end. */
function printRow(all) {
  const row = all.at(-1);
  if (all.length === 1) console.log(Object.keys(row).join(' | '));
  console.log(
    Object.entries(row)
      .map(([name, value]) => String(value ?? '-').padStart(name.length))
      .join(' | '),
  );
}
