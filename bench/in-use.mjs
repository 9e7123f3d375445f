// What the whole agent costs while it does what it is there for: it reads at the default interval, asks the kubelet, and is scraped as
// often the way Prometheus scrapes, compressed over a kept connection, hour after hour with nothing else happening. All its threads, its
// web server and its collecting of garbage are in it, which a single refresh leaves out. Each node_exporter reads the same tree at the
// same pace. All machines are measured at the same time, for nearly all of it is waiting.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { driverFlags } from './parts/driver-library.mjs';
import { cpuSeconds, hasCompiler, report } from './parts/measure.mjs';
import { nodeExporters } from './parts/node-exporters.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { prometheus, startNodeExporter } from './parts/peers.mjs';
import { startServe } from './parts/serve.mjs';
import { makeBundle } from './parts/shipped.mjs';

const { values } = parseArgs({
  options: {
    interval: { type: 'string', default: '10' },
    settle: { type: 'string', default: '600' },
    seconds: { type: 'string', default: '300' },
    only: { type: 'string' },
  },
});
const INTERVAL_MS = Number(values.interval) * 1_000;
const MACHINES = [
  { name: 'no devices, no pods', pods: 0 },
  { name: '8 HCAs, 60 pods', hcas: 8, pods: 60 },
  { name: '8 GPUs by NVML, 8 HCAs, 60 pods', driverGpus: 8, hcas: 8, pods: 60 },
  { name: '136 HCA functions, 250 pods', hcas: 8, vfs: 128, pods: 250 },
].filter(({ name }) => values.only === undefined || name.startsWith(values.only));

const EXPORTERS = await nodeExporters();
const canDrive = hasCompiler("GPUs are not met by a driver's library");
const bundle = makeBundle();
try {
  const machines = MACHINES.filter(({ driverGpus }) => driverGpus === undefined || canDrive);
  const rows = await Promise.all(machines.map(measure));
  report('in-use', rows.flat(), { intervalMs: INTERVAL_MS });
} finally {
  bundle.remove();
}

async function measure({ name, pods, driverGpus, ...devices }, at) {
  const node = await makeNode(devices);
  const flags = await driverFlags(node, driverGpus);
  const ids = Array.from({ length: (devices.hcas ?? 0) + (devices.vfs ?? 0) }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, pods, ids);
  const agent = await startServe(node, kubelet, { interval: `${INTERVAL_MS}ms`, flags, start: bundle.image });
  const exporters = ids.length === 0 ? [] : await Promise.all(EXPORTERS.map((exporter) => startNodeExporter(node.roots.sysfs, exporter)));
  const running = [{ who: 'agent', ...agent }, ...exporters.map((one) => ({ who: `node_exporter ${one.version}`, ...one }))].map(
    ({ who, pid, port }) => ({ who, pid, ...prometheus(port) }),
  );
  try {
    // Not all machines at the same moment.
    await sleep((INTERVAL_MS / MACHINES.length) * at);
    const turns = (seconds) => Math.max(1, Math.round((Number(seconds) * 1_000) / INTERVAL_MS));
    for (let turn = 0; turn < turns(values.settle); turn += 1) await takeTurn(node, running);
    // By the process, since threads that ended count too.
    const before = running.map(({ pid }) => cpuSeconds(pid));
    for (let turn = 0; turn < turns(values.seconds); turn += 1) await takeTurn(node, running);
    const took = running.map(({ pid }, n) => ((cpuSeconds(pid) - before[n]) * 1_000) / turns(values.seconds));
    return running.map(({ who }, n) => ({
      machine: name,
      who,
      'ms CPU per interval': took[n].toFixed(1),
      'agent to it': n === 0 ? undefined : (took[0] / took[n]).toFixed(2),
    }));
  } finally {
    for (const { leave } of running) leave();
    await Promise.all([agent, ...exporters].map(({ stop }) => stop()));
    await kubelet.close();
    node.remove();
  }
}

/** One interval, in which the counters move and everybody is scraped once. */
async function takeTurn(node, running) {
  await sleep(INTERVAL_MS / 2);
  for (const { scrape } of running) await scrape();
  await sleep(INTERVAL_MS / 2);
  node.advance();
}
