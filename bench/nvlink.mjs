// CPU of a refresh of GPUs with NVLinks through the driver's library, against the same GPUs without links. By default links are read each
// half minute, and where they lead each five minutes, so a refresh of each kind is measured. The machines take turns, after a pause. The
// library is the one that the tests play a machine with: the time of the driver is not included.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startCore } from './parts/core.mjs';
import { addDriver } from './parts/driver.mjs';
import { hasCompiler, median, report, summary } from './parts/measure.mjs';
import { makeNode } from './parts/node-tree.mjs';

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '60' },
    pause: { type: 'string', default: '200' },
    'warm-up': { type: 'string', default: '300' },
  },
});
const GPUS = 8;
const NEVER = 86_400_000;
/** What each refresh reads, the intervals that make it so, and how many of the 30 refreshes of five minutes read this by default. */
const KINDS = [
  { name: 'with links and where they lead', slowEveryMs: 0, factsEveryMs: 0, share: 1 / 30 },
  { name: 'with links', slowEveryMs: 0, factsEveryMs: NEVER, share: 9 / 30 },
  { name: 'between', slowEveryMs: NEVER, factsEveryMs: NEVER, share: 20 / 30 },
];
const MACHINES = [
  { name: 'none' },
  { name: '18, error counters', links: { count: 18, isFifth: false } },
  { name: '18, fields of NVLink 5', links: { count: 18, isFifth: true } },
];

if (hasCompiler('there is no library to read from')) {
  const took = [];
  for (const kind of KINDS) took.push(await measure(kind));
  const means = MACHINES.map((_, at) => KINDS.reduce((sum, { share }, kind) => sum + share * median(took[kind][at]), 0));
  const rows = MACHINES.map(({ name }, at) => ({
    'links of each GPU': name,
    ...Object.fromEntries(KINDS.map((kind, of) => [`${kind.name}, ms CPU`, summary(took[of][at], 1).text])),
    'mean by default, ms CPU': means[at].toFixed(1),
    'mean / none': (means[at] / means[0]).toFixed(2),
  }));
  report('nvlink', rows, { pauseMs: Number(values.pause), turns: Number(values.turns) });
}

/** CPU of the refreshes of one kind, in milliseconds, of each machine. */
async function measure(kind) {
  const started = [];
  try {
    for (const { links } of MACHINES) started.push(await start(links, kind));
    const took = started.map(() => []);
    for (let turn = 0; turn < Number(values.turns); turn += 1) {
      await sleep(Number(values.pause));
      for (const [at, { core }] of started.entries()) took[at].push((await core.ask('refresh')).cpuUs / 1_000);
    }
    return took;
  } finally {
    for (const { core, node } of started) {
      await core.stop();
      node.remove();
    }
  }
}

async function start(links, { slowEveryMs, factsEveryMs }) {
  const node = await makeNode({});
  const { options } = await addDriver(node, GPUS, { links });
  const nvidia = { ...options, 'nvml-slow-every': slowEveryMs, 'nvml-facts-every': factsEveryMs };
  const core = await startCore({ roots: node.roots, socket: '/nonexistent', families: ['nvidia'], options: { nvidia } });
  await core.ask('refresh', { count: Number(values['warm-up']) });
  const { devices } = await core.ask('snapshot');
  if (devices !== GPUS) throw new Error(`${devices} devices`);
  return { core, node };
}
