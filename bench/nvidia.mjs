// CPU and wall time of reading all GPUs through the driver's library in process, against starting once a program that only prints what
// nvidia-smi would print, and against the same library calls from C. The library is the one that the tests play a machine with; its
// numbers move at each call. A read between is one in which nothing slow is due. At the default pace the clock goes on by the default
// refresh interval from read to read, so that everything slow is in it as often as in an agent: values of every half minute and five
// minutes, PCI functions, device nodes. All take turns. `npm run build && node bench/nvidia.mjs`.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';
import { dist } from './parts/dist.mjs';
import { median, report, summary } from './parts/measure.mjs';
import { startCore } from './parts/peers.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    reads: { type: 'string', default: '200' },
    starts: { type: 'string', default: '20' },
  },
});
const [ROUNDS, READS, STARTS] = [Number(values.rounds), Number(values.reads), Number(values.starts)];
const PACED_READS = 300;
/** What the agent's process is in everyday use. A process is copied, page tables and all, when it starts another. */
const BALLAST = Buffer.alloc(64 * 2 ** 20, 1);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const { systemClock } = await dist('host/clock.js');
const { createHost } = await dist('host/host.js');
const { refreshOptions } = await dist('agent/options.js');
const { runCommand } = await dist('host/command.js');
const { defaultValues } = await dist('model/options.js');
const { family } = await dist('probes/nvidia/index.js');
const { Library } = await dist('probes/nvidia/nvml/library.js');
const REFRESH_MS = refreshOptions.interval.default;
const root = mkdtempSync(join(tmpdir(), 'device-agent-bench-nvidia-'));
const { documentOf, hopper, scriptOf } = await scripted();

/** As a real function has them. */
const PCI_FILES = {
  vendor: '0x10de',
  class: '0x030200',
  numa_node: '0',
  power_state: 'D0',
  config: 'x'.repeat(256),
  aer_dev_correctable: 'RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 0',
  aer_dev_nonfatal: 'Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nUnsupReq 0\nTOTAL_ERR_NONFATAL 0',
  aer_dev_fatal: 'Undefined 0\nDLP 0\nSDES 0\nTLP 0\nFCP 0\nCmpltTO 0\nUnsupReq 0\nTOTAL_ERR_FATAL 0',
};

/** As little as a program can do. */
const PRINTER = `#include <fcntl.h>
#include <unistd.h>
static char bytes[1 << 20];
int main(void) {
  long length = read(open(DOCUMENT, O_RDONLY), bytes, sizeof bytes);
  for (long at = 0, wrote; at < length; at += wrote)
    if ((wrote = write(1, bytes + at, length - at)) <= 0) return 1;
  return 0;
}
`;

/** What a Hopper board tells of its units. */
const UNITS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 20, 21, 60, 61];
const ACTIVITY = { gpm: 1, ...Object.fromEntries(UNITS.map((id) => [`gpm.${id}`, 37.5])) };

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
  const rows = [];
  for (const size of SIZES) rows.push(await measure(size));
  report('nvidia', rows, {
    rounds: ROUNDS,
    reads: READS,
    starts: STARTS,
    rssMiB: Math.round(process.memoryUsage().rss / 2 ** 20),
    ballast: BALLAST.length,
  });
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

async function measure({ name, gpus, instances }) {
  const machine = { lines: ['frozen = 1', 'moves = 1'], gpus: Array.from({ length: gpus }, (_, index) => gpuOf(index, instances)) };
  const node = nodeOf(machine, `${gpus}-${instances}`);
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
    return {
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
    };
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

/** CPU of this process and of the started ones; the latter have a resolution of a clock tick, so many are summed up. */
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

function childrenCpuUs() {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10_000;
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

function gpuOf(index, instances) {
  const gpu = hopper(index, { ...ACTIVITY, ...(instances > 0 ? { mig_current: 1, mig_pending: 1 } : {}) });
  if (instances === 0) return { ...gpu, processes: [] };
  const hidden = Object.fromEntries(Object.entries(gpu.values).filter(([name]) => !/^(?:util_|remap_)/.test(name)));
  const split = Array.from({ length: instances }, (_, at) => ({
    uuid: `MIG-0000000${index}-0000-4000-8000-00000000000${at}`,
    name: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
    gi: 7 + at,
    ci: 0,
    multiprocessors: 16,
    memory_total: 9_984 * 2 ** 20,
    memory_used: 100 * 2 ** 20,
    memory_reserved: 0,
    bar1_total: 2 ** 34,
    bar1_used: 0,
    'ecc.1.0.7': 0,
    ...ACTIVITY,
  }));
  return { ...gpu, values: hidden, processes: [], instances: Object.fromEntries(split.entries()) };
}

function nodeOf(machine, name) {
  const folder = join(root, name);
  for (const path of ['sys/bus/pci/devices', 'proc', 'dev']) mkdirSync(join(folder, path), { recursive: true });
  writeFileSync(join(folder, 'dev/kmsg'), '');
  for (const { values: gpu } of machine.gpus) {
    const pci = join(folder, 'sys/bus/pci/devices', gpu.bus_id.slice(4).toLowerCase());
    mkdirSync(pci);
    for (const [file, text] of Object.entries(PCI_FILES)) writeFileSync(join(pci, file), `${text}\n`);
  }
  const library = join(folder, 'libnvidia-ml.so.1');
  execFileSync('cc', ['-O2', '-shared', '-fPIC', '-o', library, here('../test/probes/nvidia/stub/nvml.c')]);
  writeFileSync(`${library}.script`, scriptOf(machine));
  const document = join(folder, 'document');
  writeFileSync(document, documentOf(machine));
  const printer = join(folder, 'printer');
  writeFileSync(`${printer}.c`, PRINTER.replace('DOCUMENT', JSON.stringify(document)));
  execFileSync('cc', ['-O2', '-o', printer, `${printer}.c`]);
  copyFileSync(document, `${document}.copy`);
  return { library, document, printer, roots: { sysfs: join(folder, 'sys'), procfs: join(folder, 'proc'), dev: join(folder, 'dev') } };
}

/** The tests' machines, which are written in TypeScript. */
async function scripted() {
  const outfile = join(root, 'scripted.mjs');
  await build({
    stdin: {
      contents: `export { documentOf } from './scripted-document.ts'; export { hopper, scriptOf } from './scripted-script.ts';`,
      resolveDir: here('../test/probes/nvidia'),
    },
    bundle: true,
    format: 'esm',
    platform: 'node',
    outfile,
    logLevel: 'error',
  });
  return await import(outfile);
}
