// What a hang costs. Something stops answering while the agent runs, all at once: counter files of one to seven of eight HCAs, calls of
// the driver's library for one and for seven of eight GPUs, nvidia-smi, a file of a hardware monitor of an FPGA. How long until all
// others are read at each interval again, how often the family is read meanwhile, memory and threads of the agent and its readers, and how long until what hung is read again once it answers. The program ends with 1 when one of these goals is missed:
// the others are read at each interval from two deadlines after the hang on, the memory stays, and all is back within a minute.
// `--interval=10s --timeout=15s` are the agent's defaults; `--at-once` agents are measured at the same time.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { addDriver } from './parts/driver.mjs';
import { hangCommand, hangFiles } from './parts/hangs.mjs';
import { makeBundle } from './parts/image.mjs';
import { hasCompiler, quantile, report, rssMiB, summary, threadsOf, withReaders } from './parts/measure.mjs';
import { makeNode } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    interval: { type: 'string', default: '1s' },
    timeout: { type: 'string', default: '2s' },
    /** Seconds that it hangs, from two deadlines on. */
    hold: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '3' },
    'at-once': { type: 'string', default: '1' },
    only: { type: 'string' },
  },
});
const [INTERVAL_MS, TIMEOUT_MS] = [values.interval, values.timeout].map((text) => Number.parseFloat(text) * 1_000);
const DEADLINES_MS = 2 * TIMEOUT_MS;
const HOLD_MS = Number(values.hold) * 1_000;
const POLL_MS = Math.min(250, INTERVAL_MS / 10);
/** Two reads that lie farther apart are not at each interval. */
const MOST_GAP_MS = INTERVAL_MS + Math.max(1_000, INTERVAL_MS / 2);
const MOST_RECOVERY_MS = 60_000;
/** Without pages of files, which Node's processes share: for another reader, and one that ends. */
const MOST_MORE_MIB = 24;
const PATIENCE_MS = 120_000;

const COUNTER = 'ports/1/counters/port_rcv_data';
const CALL = 'nvmlDeviceGetUtilizationRates';
const HCAS = 8;
const GPUS = 8;

const ofHcas = (count) => ({
  name: `a counter file of ${count} of ${HCAS} HCAs`,
  family: 'infiniband',
  machine: { counts: { infiniband: HCAS } },
  isHung: (device) => /^mlx5_(\d+)$/.exec(device)?.[1] < count,
  hang: ({ root }) => hangFiles(Array.from({ length: count }, (_, n) => join(root, 'sys/class/infiniband', `mlx5_${n}`, COUNTER))),
});
const ofGpus = (count) => ({
  name: `a library call for ${count} of ${GPUS} GPUs`,
  family: 'nvidia',
  machine: { counts: { infiniband: HCAS }, driverGpus: GPUS },
  isHung: (device, { driver }) => driver.ids.indexOf(device) > -1 && driver.ids.indexOf(device) < count,
  hang: ({ driver }) => driver.hang(CALL, count),
});
const ofSmi = {
  name: 'nvidia-smi',
  family: 'nvidia',
  machine: { counts: { infiniband: HCAS, nvidia: GPUS } },
  isHung: (device) => /^(?:GPU|MIG)-/.test(device),
  hang: ({ root }) => hangCommand(join(root, 'bin/nvidia-smi')),
};
const ofMonitor = (make, address, monitor) => ({
  name: `a file of a hardware monitor of 1 of 4 FPGAs, ${make}`,
  family: 'fpga',
  machine: { counts: { infiniband: HCAS, fpga: 4 } },
  // Else the sensors are read every 30 s, and nobody comes across the file before.
  flags: ['--refresh.slow=0s'],
  isHung: (device) => device.startsWith(address),
  hang: ({ root }) => hangFiles([join(root, 'sys/class/hwmon', monitor, 'temp1_input')]),
});
const CASES = [
  ...[1, 2, 3, 4, 5, 6, 7].map(ofHcas),
  ...(hasCompiler('calls of the library do not hang') ? [1, 7].map(ofGpus) : []),
  ofSmi,
  ofMonitor('DFL', '0010:21:00.0', 'hwmon101'),
  ofMonitor('Alveo', '0010:22:00.1', 'hwmon301'),
].filter(({ name }) => values.only === undefined || name.includes(values.only));

const bundle = makeBundle();
const missed = [];
try {
  const took = CASES.map(() => []);
  const turns = CASES.flatMap((each, n) =>
    Array.from({ length: Number(values.rounds) }, () => async () => took[n].push(await measure(each))),
  );
  const work = async () => {
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) await turn();
  };
  await Promise.all(Array.from({ length: Number(values['at-once']) }, work));
  report('hang', CASES.map(rowOf(took)), { interval: values.interval, timeout: values.timeout, holdMs: HOLD_MS, missed });
} finally {
  bundle.remove();
}
for (const text of missed) console.error(`missed: ${text}`);
process.exitCode = missed.length === 0 ? 0 : 1;

function rowOf(took) {
  return ({ name }, n) => {
    const all = (column) => took[n].map((figures) => figures[column]);
    const text = (column, digits) => summary(all(column), digits).text;
    return {
      'what hangs': name,
      'others read on after s': text('readOnS', 1),
      'longest gap from two deadlines on, s': text('gapS', 1),
      'runs of the family per minute': text('runsPerMinute', 1),
      'scrape p99 ms': text('scrapeMs', 1),
      'RSS before, MiB': text('beforeMiB', 0),
      'RSS while it hangs, MiB': text('agentMiB', 0),
      'more than before, not files, MiB': text('moreMiB', 0),
      threads: text('threads', 0),
      readers: text('readers', 0),
      'read again after s': text('recoveryS', 1),
      'RSS a while later, MiB': text('afterMiB', 0),
    };
  };
}

async function measure(each) {
  const { driverGpus, counts } = each.machine;
  const node = await makeNode(counts);
  if (driverGpus !== undefined) node.driver = await addDriver(node, driverGpus, { isFrozen: false });
  const kubelet = { podResourcesSocket: join(node.root, 'none.sock'), checkpoint: '' };
  const flags = [
    `--refresh.timeout=${values.timeout}`,
    ...(each.flags ?? []),
    ...Object.entries(node.driver?.options ?? {}).map(([name, value]) => `--probe.nvidia.${name}=${value}`),
  ];
  const agent = await startServe(node, kubelet, { interval: values.interval, flags, start: bundle.image });
  const watch = watchReads(agent.port);
  try {
    return await measureHang(each, node, agent, watch);
  } finally {
    watch.stop();
    await agent.stop();
    node.remove();
  }
}

async function measureHang(each, node, { pid }, watch) {
  const { name, family, isHung } = each;
  // Everything is warm, and where in the interval it begins to hang is left to chance.
  await until(() => watch.devices().length > 0 && watch.runs(family) >= 5, `${name}: nothing is read`);
  await sleep(Math.random() * INTERVAL_MS);
  const [hanging, others] = [true, false].map((is) => watch.devices().filter((device) => isHung(device, node) === is));
  if (hanging.length === 0 || others.length === 0) throw new Error(`${name}: not all devices are there: ${watch.devices()}`);
  const [beforeMiB, ownMiB] = [rssMiB(pid), anonymousMiB(pid)];
  const release = each.hang(node);
  const hungAtMs = Date.now();
  await sleep(DEADLINES_MS);
  const [steadyMs, runs] = [Date.now(), watch.runs(family)];
  watch.forgetLatencies();
  await sleep(HOLD_MS);
  const heldMs = Date.now() - steadyMs;
  const figures = {
    beforeMiB,
    gapS: Math.max(...others.map((device) => longestGapMs(watch.reads(device), steadyMs))) / 1_000,
    readOnS: Math.max(...others.map((device) => readOnMs(watch.reads(device), hungAtMs))) / 1_000,
    runsPerMinute: ((watch.runs(family) - runs) * 60_000) / heldMs,
    scrapeMs: quantile(watch.latencies(), 0.99),
    agentMiB: rssMiB(pid),
    moreMiB: anonymousMiB(pid) - ownMiB,
    threads: threadsOf(pid),
    readers: withReaders(pid).length - 1,
  };
  const stillRead = hanging.filter((device) => watch.reads(device).at(-1) > steadyMs);
  if (stillRead.length > 0) throw new Error(`${name}: ${stillRead} is read although it hangs`);
  const releasedAtMs = Date.now();
  release();
  await until(() => hanging.every((device) => watch.reads(device).at(-1) > releasedAtMs), `${name}: does not come back`);
  figures.recoveryS = Math.max(...hanging.map((device) => watch.reads(device).find((atMs) => atMs > releasedAtMs) - releasedAtMs)) / 1_000;
  await sleep(DEADLINES_MS);
  figures.afterMiB = rssMiB(pid);
  judge(name, figures);
  return figures;
}

function judge(name, { gapS, moreMiB, recoveryS }) {
  if (gapS * 1_000 > MOST_GAP_MS) missed.push(`${name}: others were not read for ${gapS.toFixed(1)} s after two deadlines`);
  if (recoveryS * 1_000 > MOST_RECOVERY_MS) missed.push(`${name}: read again only after ${recoveryS.toFixed(1)} s`);
  if (moreMiB > MOST_MORE_MIB) missed.push(`${name}: ${moreMiB.toFixed(0)} MiB more`);
}

/** From when on the reads of a device lie no farther apart than they should, from the hang on. */
function readOnMs(reads, hungAtMs) {
  const last = reads.findLastIndex((atMs, n) => n > 0 && atMs > hungAtMs && atMs - reads[n - 1] > MOST_GAP_MS);
  const first = last < 0 ? reads.find((atMs) => atMs > hungAtMs) : reads[last];
  return (first ?? Number.POSITIVE_INFINITY) - hungAtMs;
}

/** Of what lies between two reads, and between the last one and now, that which comes after a moment. */
function longestGapMs(reads, fromMs) {
  const after = [fromMs, ...reads.filter((atMs) => atMs > fromMs), Date.now()];
  return Math.max(...after.slice(1).map((atMs, n) => atMs - after[n]));
}

/** Scrapes all the time, and remembers when each device was read. */
function watchReads(port) {
  const reads = new Map();
  let [page, latencies, isStopped] = ['', [], false];
  const scrape = async () => {
    const begun = performance.now();
    page = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    latencies.push(performance.now() - begun);
    for (const [, device, seconds] of page.matchAll(/^device_last_read_timestamp_seconds\{device="([^"]+)"\} (\S+)$/gm)) {
      const known = reads.get(device) ?? reads.set(device, []).get(device);
      const atMs = Math.round(Number(seconds) * 1_000);
      if (known.at(-1) !== atMs) known.push(atMs);
    }
  };
  const run = async () => {
    while (!isStopped) {
      await scrape().catch(() => {});
      await sleep(POLL_MS);
    }
  };
  void run();
  return {
    devices: () => [...reads.keys()],
    reads: (device) => reads.get(device) ?? [],
    runs: (family) => Number(new RegExp(`^device_agent_probe_runs_total\\{family="${family}"\\} (\\d+)$`, 'm').exec(page)?.[1] ?? 0),
    latencies: () => latencies,
    forgetLatencies() {
      latencies = [];
    },
    stop() {
      isStopped = true;
    },
  };
}

async function until(condition, otherwise) {
  for (const ends = performance.now() + PATIENCE_MS; !condition(); await sleep(POLL_MS))
    if (performance.now() > ends) throw new Error(otherwise);
}

/** Of the agent and its readers. */
function anonymousMiB(pid) {
  const of = (one) => Number(/^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${one}/status`, 'utf8'))?.[1]) / 1_024;
  return withReaders(pid).reduce((sum, one) => sum + of(one), 0);
}
