// Commands beside a running agent, as the image starts them, all in one memory cgroup: the highest RSS of each command, its time, and the highest
// memory of the group. Needs root, and the memory controller of cgroup v1 or v2.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { makeBundle } from './parts/image.mjs';
import { report } from './parts/measure.mjs';
import { MACHINES, makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const MIB = 2 ** 20;
const isV1 = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes');
const group = join(isV1 ? '/sys/fs/cgroup/memory' : '/sys/fs/cgroup', `device-agent-bench-${process.pid}`);
const [used, peak] = isV1 ? ['memory.usage_in_bytes', 'memory.max_usage_in_bytes'] : ['memory.current', 'memory.peak'];
const inMiB = (file) => Number(readFileSync(join(group, file), 'utf8')) / MIB;

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
mkdirSync(group);
// A child begins in the group of its parent, and pages count where they were first used.
const [, home] = (isV1 ? /memory:(.*)/m : /^0::(.*)/m).exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? [];
const enter = (path) => writeFileSync(join(path, 'cgroup.procs'), String(process.pid));
enter(group);
const agent = await startServe(node, kubelet, { interval: '2s', flags, start: bundle }).finally(() =>
  enter(join(dirname(group), home ?? '')),
);
try {
  await sleep(6_000);
  const rows = [];
  for (const { name, runs } of CASES) {
    const before = inMiB(used);
    if (isV1) writeFileSync(join(group, peak), '0');
    const began = performance.now();
    const ended = await Promise.all(runs.map((words) => run([...bundle.words.slice(-1), ...words, ...agent.flags, ...flags], bundle.env)));
    rows.push({
      commands: name,
      status: ended.map(({ status }) => status).join(' '),
      'RSS MiB': ended.map(({ mib }) => mib.toFixed(0)).join(' '),
      seconds: ((performance.now() - began) / 1_000).toFixed(1),
      'group before MiB': before.toFixed(0),
      'group highest MiB': inMiB(peak).toFixed(0),
    });
  }
  report('commands', rows);
} finally {
  await agent.stop();
  await remove();
  bundle.remove();
  rmdirSync(group);
}

/** Runs `node` in the group. `mib`: the highest RSS of the process, of what was sampled. */
async function run(words, env) {
  const start = `echo $$ > ${join(group, 'cgroup.procs')}; exec "$@"`;
  const child = spawn('/bin/sh', ['-c', start, 'sh', process.execPath, '--lite-mode', ...words], {
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
