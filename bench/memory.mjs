// RSS of the whole agent, probes' threads and web server included, after it refreshed and was scraped for a while, four times a second:
// idle (no devices), everyday (8 GPUs, 8 HCAs, 60 pods), large (136 HCA functions, 250 pods). As it ships, which is the bundle started as
// the image does; the bundle and the build started by nothing but `node`; and node_exporter, all on the same tree at the same time.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { DIST } from './parts/dist.mjs';
import { driverFlags } from './parts/driver-library.mjs';
import { hasCompiler, openDescriptors, report, rssMiB, summary } from './parts/measure.mjs';
import { nodeExporters } from './parts/node-exporters.mjs';
import { makeKubelet, makeNode } from './parts/node-tree.mjs';
import { fetchText, startNodeExporter } from './parts/peers.mjs';
import { startServe } from './parts/serve.mjs';
import { makeBundle } from './parts/shipped.mjs';

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '20' }, only: { type: 'string' } },
});
const PACE_MS = 250;
const MACHINES = [
  { name: 'idle: no devices, no pods', pods: 0 },
  { name: 'everyday: 8 GPUs by nvidia-smi, 8 HCAs, 60 pods', gpus: 8, hcas: 8, pods: 60, goal: 110 },
  { name: 'everyday: 8 GPUs by NVML, 8 HCAs, 60 pods', driverGpus: 8, hcas: 8, pods: 60, goal: 110 },
  { name: 'large: 136 HCA functions, 250 pods', hcas: 8, vfs: 128, pods: 250, goal: 220 },
].filter(({ name }) => values.only === undefined || name.startsWith(values.only));

const exporter = (await nodeExporters()).at(-1);
const canDrive = hasCompiler("GPUs are not met by a driver's library");
const bundle = makeBundle();
const STARTS = {
  'as in the image': bundle.image,
  bundle: bundle.plain,
  build: { words: [`${DIST}/cli/main.js`], env: {} },
};
try {
  const rows = [];
  for (const machine of MACHINES.filter(({ driverGpus }) => driverGpus === undefined || canDrive)) rows.push(...(await measure(machine)));
  report('memory', rows);
} finally {
  bundle.remove();
}

async function measure({ name, goal, ...machine }) {
  const took = new Map();
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [who, figures] of Object.entries(await measureOnce(machine))) took.set(who, [...(took.get(who) ?? []), figures]);
  }
  return [...took].map(([who, all]) => {
    const text = (column) => summary(all.map((figures) => figures[column])).text;
    return {
      machine: name,
      who,
      'RSS MiB': text('rss'),
      'highest MiB': text('highest'),
      'not files MiB': text('anonymous'),
      'goal MiB': who.startsWith('node_exporter') ? '-' : (goal ?? '-'),
      "the driver's library MiB": text('library'),
      descriptors: all.at(-1).descriptors,
    };
  });
}

async function measureOnce({ pods, driverGpus, ...devices }) {
  const node = await makeNode(devices);
  const flags = await driverFlags(node, driverGpus);
  const ids = Array.from({ length: (devices.hcas ?? 0) + (devices.vfs ?? 0) }, (_, n) => `mlx5_${n}`);
  const kubelet = await makeKubelet(node.root, pods, ids);
  const running = {};
  for (const [who, start] of Object.entries(STARTS)) {
    const agent = await startServe(node, kubelet, { interval: `${PACE_MS}ms`, flags, start });
    running[who] = { ...agent, scrape: () => fetchText({ host: '127.0.0.1', port: agent.port, path: '/metrics' }) };
  }
  if (ids.length > 0 && exporter !== undefined) {
    running[`node_exporter ${exporter.version}`] = await startNodeExporter(node.roots.sysfs, exporter);
  }
  try {
    return await watch(node, running, ids.length + (devices.gpus ?? 0) + (driverGpus ?? 0));
  } finally {
    await Promise.all(Object.values(running).map(({ stop }) => stop()));
    await kubelet.close();
    node.remove();
  }
}

async function watch(node, running, devices) {
  const ends = performance.now() + Number(values.seconds) * 1_000;
  const highest = {};
  while (performance.now() < ends) {
    node.advance();
    for (const [who, { pid, scrape }] of Object.entries(running)) {
      await scrape();
      highest[who] = Math.max(highest[who] ?? 0, rssMiB(pid));
    }
    await sleep(PACE_MS);
  }
  const figures = {};
  for (const [who, { pid, scrape }] of Object.entries(running)) {
    const told = (await scrape()).match(/^device_present\{device="(?:GPU-|mlx5_)/gm)?.length ?? 0;
    if (who in STARTS && told !== devices) throw new Error(`${who} tells of ${told} devices, not ${devices}`);
    figures[who] = { rss: rssMiB(pid), highest: highest[who], ...parts(pid), descriptors: openDescriptors(pid) };
  }
  return figures;
}

/** MiB that are no pages of files, and MiB of the library that stands for NVIDIA's, whose tables are the play's and not the agent's. */
function parts(pid) {
  const anonymous = Number(/^RssAnon:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024;
  let library = 0;
  let end;
  for (const line of readFileSync(`/proc/${pid}/smaps`, 'utf8').split('\n')) {
    const mapping = /^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \d+\s*(.*)$/.exec(line);
    if (mapping === null) {
      if (end !== undefined) library += Number(/^Rss:\s+(\d+) kB/.exec(line)?.[1] ?? 0) / 1_024;
      continue;
    }
    const [, from, to, path] = mapping;
    // Variables without a value at the start are a mapping without a name, right behind those of the file.
    end = path.endsWith('/libnvidia-ml.so.1') || (path === '' && from === end) ? to : undefined;
  }
  return { anonymous, library };
}
