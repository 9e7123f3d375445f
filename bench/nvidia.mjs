// CPU of a refresh of all GPUs through the driver's library, in process, against starting once a program that only prints what
// nvidia-smi would print. The library is the one that the tests play a machine with; its numbers move at each call. Both take turns, each
// after a pause, as an agent reads.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCore } from './parts/core.mjs';
import { dist } from './parts/dist.mjs';
import { addDriver } from './parts/driver.mjs';
import { hasCompiler, report, summary } from './parts/measure.mjs';
import { makeNode } from './parts/node-tree.mjs';

const { runCommand } = await dist('host/process/command.js');
const { values } = parseArgs({
  options: { turns: { type: 'string', default: '60' }, pause: { type: 'string', default: '200' }, only: { type: 'string' } },
});
const WARM_UP = 300;
/** CPU of children is told in hundredths of a second, so of several starts at once. */
const STARTS = 20;
const SIZES = [
  { name: '1', gpus: 1 },
  { name: '8', gpus: 8 },
  { name: '16', gpus: 16 },
  { name: '8 split into 56', gpus: 8, instances: 7 },
].filter(({ name }) => values.only === undefined || values.only === name);

if (hasCompiler('there is no library to read from')) {
  const rows = [];
  for (const size of SIZES) rows.push(await measure(size));
  report('nvidia', rows, { pauseMs: Number(values.pause) });
}

async function measure({ name, gpus, instances = 0 }) {
  const node = await makeNode({});
  const { printer, options } = await addDriver(node, gpus, { instances });
  const core = await startCore({ roots: node.roots, socket: '/nonexistent', families: ['nvidia'], options: { nvidia: options } });
  try {
    await core.ask('refresh', { count: WARM_UP });
    const { devices, readings } = await core.ask('snapshot');
    if (devices !== gpus * (instances + 1)) throw new Error(`${devices} devices`);
    const reads = [];
    const starts = [];
    for (let turn = 0; turn < Number(values.turns); turn += 1) {
      await sleep(Number(values.pause));
      reads.push((await core.ask('refresh')).cpuUs);
      if (turn % 10 === 0) starts.push(await startCpuUs(printer));
    }
    const [read, start] = [summary(reads), summary(starts)];
    return {
      GPUs: name,
      series: readings,
      'refresh, µs CPU': read.text,
      'start, µs CPU': start.text,
      'refresh / start': (read.median / start.median).toFixed(3),
    };
  } finally {
    await core.stop();
    node.remove();
  }
}

/** One start, of several: CPU of this process and of the started ones. */
async function startCpuUs(program) {
  const [cpu, children] = [process.cpuUsage(), childrenCpuUs()];
  for (let n = 0; n < STARTS; n += 1) {
    const { failure } = await runCommand(program, ['-q', '-x'], { deadlineMs: 10_000 });
    if (failure !== undefined) throw new Error(`the printer failed: ${failure}`);
  }
  const { user, system } = process.cpuUsage(cpu);
  return (user + system + childrenCpuUs() - children) / STARTS;
}

function childrenCpuUs() {
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[13]) + Number(fields[14])) * 10_000;
}
