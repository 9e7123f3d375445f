// What the agent writes to the disk, as bytes and syncs of a day. The state has a directory on a real disk; sysfs has one in memory. What is
// written at the start is left out. `--before=DIST` measures another build beside it.
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { report } from './parts/measure.mjs';
import { makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    before: { type: 'string' },
    interval: { type: 'string', default: '10' },
    settle: { type: 'string', default: '120' },
    seconds: { type: 'string', default: '3600' },
    directory: { type: 'string', default: '/var/tmp' },
    only: { type: 'string', default: '' },
  },
});
const DAY_SECONDS = 86_400;
const MB = 1e6;
const MACHINES = [
  { name: 'everyday: 8 GPUs by nvidia-smi, 8 HCAs, 60 pods', counts: { nvidia: 8, infiniband: 8 }, pods: 60 },
  { name: '512 devices, 512 pods', counts: { infiniband: 8, 'infiniband.vf': 504 }, pods: 512 },
].filter(({ name }) => name.includes(values.only));
const BUILDS = { ...(values.before === undefined ? {} : { before: values.before }), now: DIST };

report('disk', (await Promise.all(MACHINES.map(measure))).flat(), { interval: values.interval, seconds: values.seconds });

async function measure(machine) {
  const { node, kubelet, flags, remove } = await makeMachine(machine);
  const agents = await Promise.all(Object.entries(BUILDS).map(([name, path]) => start(name, path, { node, kubelet, flags })));
  const moving = setInterval(() => node.advance(), Number(values.interval) * 1_000);
  try {
    await sleep(Number(values.settle) * 1_000);
    const begins = await Promise.all(agents.map(countsOf));
    await sleep(Number(values.seconds) * 1_000);
    const ends = await Promise.all(agents.map(countsOf));
    return agents.map(({ name }, n) => row(machine.name, name, begins[n], ends[n]));
  } finally {
    clearInterval(moving);
    for (const { stop, state } of agents) {
      await stop();
      rmSync(state, { recursive: true, force: true });
    }
    await remove();
  }
}

async function start(name, path, { node, kubelet, flags }) {
  const state = mkdtempSync(join(values.directory, 'device-agent-disk-'));
  const counter = fileURLToPath(new URL('parts/count-writes.mjs', import.meta.url));
  const agent = await startServe(node, kubelet, {
    interval: `${values.interval}s`,
    flags: [...flags, `--state.file=${state}/health.json`],
    start: { words: ['--import', counter, `${path}/cli/main.js`], env: {}, hasChannel: true },
  });
  return { name, state, ...agent };
}

async function countsOf({ child, pid }) {
  const answered = once(child, 'message');
  child.send('counts');
  const [counts] = await answered;
  const [, pages] = /^write_bytes: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'));
  return { ...counts, pages: Number(pages) };
}

function row(machine, build, begin, end) {
  const day = (name) => ((end[name] - begin[name]) / Number(values.seconds)) * DAY_SECONDS;
  return {
    machine,
    build,
    'MB a day': (day('bytes') / MB).toFixed(1),
    'MB a day, complete pages': (day('pages') / MB).toFixed(1),
    'writes a day': day('writes').toFixed(0),
    'syncs a day': day('syncs').toFixed(0),
  };
}
