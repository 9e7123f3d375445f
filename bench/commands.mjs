// Commands beside a running agent, as the image starts them, all in one memory cgroup: the highest RSS of each command, its time, and the highest
// memory of the group.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeBundle } from './parts/image.mjs';
import { report } from './parts/measure.mjs';
import { makeMemoryGroup } from './parts/memory-group.mjs';
import { MACHINES, makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const CASES = [
  { name: 'list', runs: [['list']] },
  { name: 'doctor', runs: [['doctor']] },
  { name: 'health', runs: [['health', '-o', 'text']] },
  { name: 'usage', runs: [['usage']] },
  { name: 'incidents', runs: [['incidents']] },
  { name: 'list, doctor', runs: [['list'], ['doctor']] },
  { name: 'five health', runs: Array.from({ length: 5 }, () => ['health']) },
  { name: 'capture', runs: [['capture', '-o', '-']] },
  { name: 'capture, list, doctor', runs: [['capture', '-o', '-'], ['list'], ['doctor']] },
  { name: 'list --read', runs: [['list', '--read']] },
];

const bundle = makeBundle();
const machine = MACHINES.find(({ name }) => name.includes('NVML'));
const { node, kubelet, flags, remove } = await makeMachine(machine);
const group = makeMemoryGroup();
const agent = await startServe(node, kubelet, { interval: '2s', flags, start: { ...bundle, group } });
try {
  await sleep(6_000);
  const rows = [];
  for (const { name, runs } of CASES) {
    const before = group.usedMiB();
    group.resetPeak();
    const began = performance.now();
    const ended = await Promise.all(runs.map((words) => run([...bundle.words.slice(-1), ...words, ...agent.flags, ...flags], bundle.env)));
    rows.push({
      commands: name,
      status: ended.map(({ status }) => status).join(' '),
      'RSS MiB': ended.map(({ mib }) => mib.toFixed(0)).join(' '),
      seconds: ((performance.now() - began) / 1_000).toFixed(1),
      'group before MiB': before.toFixed(0),
      'group highest MiB': group.peakMiB().toFixed(0),
    });
  }
  report('commands', rows);
} finally {
  await agent.stop();
  await remove();
  bundle.remove();
  group.remove();
}

/** Runs `node` in the group. `mib`: the highest RSS of the process, of what was sampled. */
async function run(words, env) {
  const [program, ...before] = group.start;
  const child = spawn(program, [...before, process.execPath, '--lite-mode', ...words], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  child.stderr.resume();
  let mib = 0;
  const timer = setInterval(() => {
    try {
      const [, kib] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8')) ?? [];
      mib = Math.max(mib, Number(kib ?? 0) / 1_024);
    } catch {
      // It has ended.
    }
  }, 10);
  const [status, signal] = await new Promise((resolve) => child.once('close', (...ending) => resolve(ending)));
  clearInterval(timer);
  return { status: status ?? signal, mib };
}
