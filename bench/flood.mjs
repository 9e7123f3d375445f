// CPU of the whole agent in ten seconds, in a quiet kernel log and in one that gets 10,000 records each second. The records are in a file, which is
// exchanged each second: the agent reads all of it, as it reads the records of /dev/kmsg. BENCH_DIST measures another build; one that has another
// place for the log gets it by `--log`. `--image` starts the agent as the image does.
import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { makeBundle } from './parts/image.mjs';
import { cpuSeconds, report, rssMiB, summary } from './parts/measure.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    log: { type: 'string', default: 'dev/kmsg' },
    records: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '10' },
    turns: { type: 'string', default: '3' },
    settle: { type: 'string', default: '5' },
    image: { type: 'boolean', default: false },
  },
});

const node = await makeNode({ amdgpu: 4, intelgpu: 4, infiniband: 8, nvme: 4 });
const ids = Array.from({ length: 8 }, (_, n) => `mlx5_${n}`);
const kubelet = await makeKubelet(node.root, 60, ids);
const log = `${node.root}/${values.log}`;
const bundle = values.image ? makeBundle() : undefined;
let seq = 0;

/** One of hundred is a line of a driver that counts, the others are those of other programs, drivers and of the same one about nothing. */
function records(count) {
  const lines = [];
  for (let n = 0; n < count; n += 1) {
    seq += 1;
    const card = `0020:${10 + (n % 4)}:00.0`;
    const about = ` SUBSYSTEM=pci\n DEVICE=+pci:${card}\n`;
    const text =
      n % 100 === 0
        ? `amdgpu ${card}: amdgpu: ring gfx timeout, signaled seq=${n}, emitted seq=${n}\n${about}`
        : n % 3 === 0
          ? `amdgpu ${card}: amdgpu: a message that means nothing ${n}\n${about}`
          : `audit: type=1400 audit(1700000000.${n}): apparmor="ALLOWED" operation="open" pid=${n} comm="python3"\n`;
    lines.push(`4,${seq},${seq},-;${text}`);
  }
  return lines.join('');
}

async function measure(perSecond) {
  writeFileSync(log, '6,0,0,-;Linux version 7.0\n');
  const start = bundle ?? { words: [`${DIST}/cli/main.js`], env: {} };
  const agent = await startServe(node, kubelet, { interval: '10s', start });
  try {
    const pass = async (seconds) => {
      for (let at = 0; at < seconds; at += 1) {
        if (perSecond > 0) writeFileSync(log, records(perSecond));
        await sleep(1_000);
      }
    };
    await pass(Number(values.settle));
    const before = cpuSeconds(agent.pid);
    await pass(Number(values.seconds));
    return { cpuMs: ((cpuSeconds(agent.pid) - before) * 10_000) / Number(values.seconds), rss: rssMiB(agent.pid) };
  } finally {
    await agent.stop();
  }
}

try {
  const took = new Map();
  for (let turn = 0; turn < Number(values.turns); turn += 1)
    for (const perSecond of [0, Number(values.records)]) took.set(perSecond, [...(took.get(perSecond) ?? []), await measure(perSecond)]);
  const rows = [...took].map(([perSecond, list]) => ({
    'records a second': perSecond,
    'CPU of 10 s, ms': summary(list.map(({ cpuMs }) => cpuMs)).text,
    'RSS, MiB': summary(list.map(({ rss }) => rss)).text,
  }));
  report('flood', rows);
} finally {
  await kubelet.stop();
  node.remove();
}
