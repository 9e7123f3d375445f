// How often the agent and its readers wake a core while nobody asks: a minute of voluntary context switches, by thread, with nothing on the node that
// changes between two refreshes.
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makeBundle } from './parts/image.mjs';
import { report, withReaders } from './parts/measure.mjs';
import { MACHINES, makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    interval: { type: 'string', default: '10' },
    settle: { type: 'string', default: '30' },
    seconds: { type: 'string', default: '60' },
    only: { type: 'string' },
  },
});

const bundle = makeBundle();
try {
  const machines = MACHINES.filter(({ name }) => values.only === undefined || name.startsWith(values.only));
  report('wakeups', (await Promise.all(machines.map(measure))).flat(), { interval: values.interval });
} finally {
  bundle.remove();
}

async function measure(machine) {
  const { node, kubelet, flags, remove } = await makeMachine(machine);
  const agent = await startServe(node, kubelet, { interval: `${values.interval}s`, flags, start: bundle });
  try {
    await sleep(Number(values.settle) * 1_000);
    const before = switchesOf(agent.pid);
    await sleep(Number(values.seconds) * 1_000);
    const after = switchesOf(agent.pid);
    const perMinute = [...after].map(([thread, { name, count }]) => ({
      name,
      count: ((count - (before.get(thread)?.count ?? 0)) * 60) / Number(values.seconds),
    }));
    const all = perMinute.reduce((sum, { count }) => sum + count, 0);
    const byThread = perMinute.filter(({ count }) => count >= 1).sort((a, b) => b.count - a.count);
    return {
      machine: machine.name,
      'wakeups a minute': all.toFixed(0),
      threads: after.size,
      'by thread': byThread.map(({ name, count }) => `${name} ${count.toFixed(0)}`).join(', '),
    };
  } finally {
    await agent.stop();
    await remove();
  }
}

/** Voluntary context switches of each thread since its start, by its id. A thread that ended meanwhile is left out. */
function switchesOf(pid) {
  const switches = new Map();
  for (const one of withReaders(pid)) {
    for (const thread of readdirSync(`/proc/${one}/task`)) {
      try {
        const status = readFileSync(`/proc/${one}/task/${thread}/status`, 'utf8');
        const [, name] = /^Name:\s+(.+)$/m.exec(status);
        switches.set(thread, {
          name: one === pid ? name : `reader ${name}`,
          count: Number(/^voluntary_ctxt_switches:\s+(\d+)$/m.exec(status)[1]),
        });
      } catch {}
    }
  }
  return switches;
}
