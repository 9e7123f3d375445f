// CPU and wall time of reading all GPUs through the driver's library in process, against starting once a program that only prints what
// nvidia-smi would print, and against the same library calls from C. The library is the one that the tests play a machine with; its
// numbers move at each call. A read between is one in which nothing slow is due. At the default pace the clock goes on by the default
// refresh interval from read to read, so that everything slow is in it as often as in an agent: values of every half minute and five
// minutes, PCI functions, device nodes. All take turns: first many times back to back, which keeps what they use in the processor's caches, and
// then once at a time with a pause before each, as an agent reads. `npm run build && node bench/nvidia.mjs`.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { childrenClock } from './parts/children-cpu.mjs';
import { dist } from './parts/dist.mjs';
import { median, printTable, report, summary } from './parts/measure.mjs';
import { nvidiaNode } from './parts/nvidia-node.mjs';
import { startCore } from './parts/peers.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    reads: { type: 'string', default: '200' },
    starts: { type: 'string', default: '20' },
    turns: { type: 'string', default: '9' },
    pause: { type: 'string', default: '1000' },
    only: { type: 'string' },
  },
});
const [ROUNDS, READS, STARTS] = [Number(values.rounds), Number(values.reads), Number(values.starts)];
const [TURNS, PAUSE_MS] = [Number(values.turns), Number(values.pause)];
const PACED_READS = 300;
/** What the agent's process is in everyday use. A process is copied, page tables and all, when it starts another. */
const BALLAST = Buffer.alloc(64 * 2 ** 20, 1);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { systemClock } = await dist('host/clock.js');
const { createHost } = await dist('host/host.js');
const { refreshOptions } = await dist('agent/options.js');
const { runCommand } = await dist('host/process/command.js');
const { defaultValues } = await dist('model/options.js');
const { family } = await dist('probes/nvidia/index.js');
const { Library } = await dist('probes/nvidia/nvml/library.js');
const REFRESH_MS = refreshOptions.interval.default;
const root = mkdtempSync(join(tmpdir(), 'device-agent-bench-nvidia-'));
const childrenCpuUs = childrenClock();

const SIZES = [
  { name: '1', gpus: 1, instances: 0 },
  { name: '8', gpus: 8, instances: 0 },
  { name: '16', gpus: 16, instances: 0 },
  { name: '8 split into 56', gpus: 8, instances: 7 },
];

/** What was started or made, to be ended or removed whatever happens, the latest first. Children also end when their pipes do. */
const endings = [() => rmSync(root, { recursive: true, force: true })];
for (const [signal, status] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
])
  process.once(signal, () => void endAll().finally(() => process.exit(status)));

try {
  const [rows, paused] = [[], []];
  for (const size of SIZES.filter(({ name }) => values.only === undefined || values.only === name)) await measure(size, rows, paused);
  report('nvidia', rows, {
    paused,
    rounds: ROUNDS,
    reads: READS,
    starts: STARTS,
    rssMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
    ballast: BALLAST.length,
  });
  console.log(`\none at a time, a pause of ${PAUSE_MS} ms before each of ${TURNS} turns, at the default pace\n`);
  printTable(paused);
} finally {
  await endAll();
}

async function endAll(left = 0) {
  while (endings.length > left) {
    try {
      await endings.pop()();
    } catch (error) {
      console.error(error);
    }
  }
}

async function measure({ name, gpus, instances }, rows, paused) {
  const node = await nvidiaNode(join(root, `${gpus}-${instances}`), { gpus, instances });
  const options = { source: 'nvml', 'nvml-library': node.library };
  let nowMs = Date.now();
  const clock = { now: () => nowMs, monotonic: () => nowMs, after: systemClock.after };
  const probe = family.createProbe(createHost(node.roots, clock), { ...defaultValues(family.options), ...options });
  const left = endings.length;
  endings.push(() => probe.close());
  const pace = () => {
    nowMs += REFRESH_MS;
  };
  const floor = startFloor(node.library, gpus, instances);
  endings.push(() => floor.stop());
  const core = await startCore({ roots: node.roots, socket: join(root, 'none.sock'), families: ['nvidia'], options: { nvidia: options } });
  endings.push(() => core.stop());
  const took = { cpu: [], wall: [], paced: [], core: [], startWall: [], startCpu: [], startOwn: [], floor: [] };
  try {
    const { reports } = await probe.collect();
    const devices = gpus * (instances + 1);
    if (reports.length !== devices) throw new Error(`${reports.length} devices, not ${devices}`);
    const calls = await callsOf(node, options);
    const inC = await floor.pass(1);
    if (calls !== inC.calls) throw new Error(`the agent makes ${calls} calls, the C program ${inC.calls}`);
    for (let n = 0; n < 4_000; n += 1) {
      if (n % 4 === 0) pace();
      await probe.collect();
    }
    await core.ask('refreshMany', { count: 300 });
    await starts(node.printer, STARTS);
    for (let round = 0; round < ROUNDS; round += 1) {
      took.floor.push((await floor.pass(2_000)).cpuUs);
      const read = await reads(probe, READS);
      took.cpu.push(read.cpuUs);
      took.wall.push(read.wallUs);
      took.paced.push((await reads(probe, PACED_READS, pace)).cpuUs);
      const started = await starts(node.printer, STARTS);
      took.startWall.push(started.wallUs);
      took.startCpu.push(started.cpuUs);
      took.startOwn.push(started.ownUs);
      took.core.push((await core.ask('refreshMany', { count: 100 })).cpuUs);
    }
    const [cpu, wall, paced, startCpu, startWall] = [took.cpu, took.wall, took.paced, took.startCpu, took.startWall].map((list) =>
      summary(list),
    );
    const floorUs = median(took.floor);
    rows.push({
      GPUs: name,
      series: reports.reduce((sum, { readings }) => sum + readings.length, 0),
      calls,
      'read between, µs CPU': cpu.text,
      'read between, µs wall': wall.text,
      'read at default pace, µs CPU': paced.text,
      'C floor, µs CPU': summary(took.floor, 1).text,
      'agent refresh, µs CPU': summary(took.core).text,
      'start, µs CPU': startCpu.text,
      'of it the agent, µs CPU': summary(took.startOwn).text,
      'start, µs wall': startWall.text,
      'XML KiB': Math.round(statSync(node.document).size / 1_024),
      'read between / start, CPU': (cpu.median / startCpu.median).toFixed(4),
      'read at default pace / start, CPU': (paced.median / startCpu.median).toFixed(4),
      'read between / start, wall': (wall.median / startWall.median).toFixed(4),
      'read between / C floor': (cpu.median / floorUs).toFixed(1),
    });
    paused.push({ GPUs: name, ...(await afterPauses({ probe, pace, floor, node })) });
  } finally {
    await endAll(left);
  }
}

async function reads(probe, count, beforeEach = () => {}) {
  const cpuBefore = process.cpuUsage();
  const before = performance.now();
  for (let n = 0; n < count; n += 1) {
    beforeEach();
    await probe.collect();
  }
  const wallUs = ((performance.now() - before) * 1_000) / count;
  const { user, system } = process.cpuUsage(cpuBefore);
  return { cpuUs: (user + system) / count, wallUs };
}

/** CPU of this process and of the started ones. */
async function starts(program, count) {
  const [cpuBefore, childrenBefore, before] = [process.cpuUsage(), childrenCpuUs(), performance.now()];
  for (let n = 0; n < count; n += 1) {
    const { stdout, failure } = await runCommand(program, ['-q', '-x'], { deadlineMs: 10_000 });
    if (failure !== undefined || !stdout.endsWith('</nvidia_smi_log>\n')) throw new Error(`the printer failed: ${failure}`);
  }
  const wallUs = ((performance.now() - before) * 1_000) / count;
  const { user, system } = process.cpuUsage(cpuBefore);
  const ownUs = (user + system) / count;
  return { cpuUs: ownUs + (childrenCpuUs() - childrenBefore) / count, ownUs, wallUs };
}

/** One read, one start and one round from C in turns, each after a pause in which others have the processor's caches. */
async function afterPauses({ probe, pace, floor, node }) {
  const took = { read: [], start: [], floor: [] };
  const participants = [
    [took.read, async () => (await reads(probe, 1, pace)).cpuUs],
    [took.start, async () => (await starts(node.printer, 1)).cpuUs],
    [took.floor, async () => (await floor.pass(1)).cpuUs],
  ];
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [list, run] of participants) {
      await sleep(PAUSE_MS);
      list.push(await run());
    }
  }
  const [read, start] = [mean(took.read), mean(took.start)];
  const ranged = (list, digits) => `${mean(list).toFixed(digits)} (${summary(list, digits).text})`;
  return {
    'average read, µs CPU (median, range)': ranged(took.read),
    'average start, µs CPU (median, range)': ranged(took.start),
    'C floor, µs CPU (median, range)': ranged(took.floor, 1),
    'average read / average start': (read / start).toFixed(4),
    'median read / median start': (median(took.read) / median(took.start)).toFixed(4),
  };
}

function mean(list) {
  return list.reduce((sum, each) => sum + each, 0) / list.length;
}

/** Calls of one round that reads nothing slow. */
async function callsOf(node, options) {
  const { bind } = Library.prototype;
  let calls = 0;
  let probe;
  Library.prototype.bind = function (symbol, args) {
    const bound = bind.call(this, symbol, args);
    if (bound === undefined) return undefined;
    return (...params) => {
      calls += 1;
      return bound(...params);
    };
  };
  try {
    let nowMs = 0;
    const clock = { ...systemClock, monotonic: () => nowMs };
    probe = family.createProbe(createHost(node.roots, clock), { ...defaultValues(family.options), ...options });
    await probe.collect();
    // Activity has its second sample.
    nowMs += REFRESH_MS;
    await probe.collect();
    calls = 0;
    await probe.collect();
    return calls;
  } finally {
    Library.prototype.bind = bind;
    await probe?.close();
  }
}

function startFloor(library, gpus, instances) {
  const program = join(root, 'floor');
  execFileSync('cc', ['-O2', '-std=gnu11', '-o', program, here('parts/nvml-floor.c'), '-ldl']);
  const child = spawn(program, [library, String(gpus), String(instances)], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  return {
    async pass(count) {
      child.stdin.write(`${count}\n`);
      const [line] = await once(lines, 'line');
      const [cpuUs, calls] = line.split(' ').map(Number);
      return { cpuUs, calls };
    },
    stop: () => child.stdin.end(),
  };
}
