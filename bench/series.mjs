// How many series the page has, and how many bytes a scrape takes, by the size of the node. GPUs are read by the demo's nvidia-smi, and once
// by the driver's library where a C compiler can build its stand-in.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { DIST } from './parts/dist.mjs';
import { hasCompiler, report } from './parts/measure.mjs';
import { makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const SIZES = [
  { node: '1 GPU', counts: { nvidia: 1 }, pods: 4 },
  { node: '8 HCAs', counts: { infiniband: 8 }, pods: 16 },
  { node: '8 FPGAs', counts: { fpga: 8 }, pods: 16 },
  { node: '8 GPUs, 8 HCAs', counts: { nvidia: 8, infiniband: 8 }, pods: 16 },
  { node: '16 GPUs, 16 HCAs', counts: { nvidia: 16, infiniband: 16 }, pods: 32 },
  { node: '8 GPUs, 8 HCAs, 128 virtual functions', counts: { nvidia: 8, infiniband: 8, 'infiniband.vf': 128 }, pods: 60 },
];
const { values } = parseArgs({ options: { only: { type: 'string' } } });

const rows = [];
for (const { node, counts, pods } of SIZES) {
  if (values.only !== undefined && node !== values.only) continue;
  const devices = ['all=0', ...Object.entries(counts).map((entry) => entry.join('='))].join(',');
  const agent = await startDemo([`--sim.devices=${devices}`, `--sim.pods=${pods}`, '--sim.pod-change=0s', '--refresh.interval=500ms']);
  const count = Object.values(counts).reduce((sum, one) => sum + one, 0);
  rows.push({ node, ...(await measure(agent, count)) });
}
if (values.only === undefined && hasCompiler('GPUs by the driver are not measured')) {
  const machine = await makeMachine({ driverGpus: 8, counts: { infiniband: 8 }, pods: 16 });
  const agent = await startServe(machine.node, machine.kubelet, { interval: '500ms', flags: machine.flags });
  rows.push({ node: '8 GPUs by NVML, 8 HCAs', ...(await measure(agent, machine.deviceCount)) });
  await machine.remove();
}
report('series', rows);

/** The demo prints its address on stdout, and ends when nobody reads it. */
async function startDemo(flags) {
  const words = [`${DIST}/cli/main.js`, 'demo', '--web.listen-address=127.0.0.1:0', '--log.level=error', ...flags];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const stop = async () => {
    child.kill('SIGTERM');
    await once(child, 'exit');
  };
  for await (const line of createInterface({ input: child.stdout })) {
    const [, port] = /Page\s+http:[^\s]+:(\d+)/.exec(line) ?? [];
    if (port !== undefined) return { port: Number(port), stop };
  }
  throw new Error('the demo did not start');
}

/** Waits until all devices are there, and for some refreshes more, because containers are seen later. */
async function measure({ port, stop }, devices) {
  try {
    const page = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const count = (text, name) => text.match(new RegExp(`^${name}`, 'gm'))?.length ?? 0;
    let text = await page();
    for (const endsMs = performance.now() + 60_000; count(text, 'device_present\\{') < devices; text = await page()) {
      if (performance.now() > endsMs) throw new Error(`there are ${count(text, 'device_present\\{')} devices, not ${devices}`);
      await sleep(200);
    }
    await sleep(3_000);
    text = await page();
    const [hardware, containers, all] = ['device_(?!agent_)', 'container_', '[a-z]'].map((name) => count(text, name));
    return {
      devices: count(text, 'device_present\\{'),
      'of devices': hardware,
      'of containers': containers,
      'of the agent': all - hardware - containers,
      series: all,
      'page KiB': Math.round(text.length / 1_024),
      'gzip KiB': Math.round(gzipSync(text, { level: 1 }).length / 1_024),
    };
  } finally {
    await stop();
  }
}
