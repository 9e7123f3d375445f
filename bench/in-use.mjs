// What the whole agent costs while it does what it is there for: it reads at the default interval, asks the kubelet, and is scraped as
// often, compressed over a kept connection. All its threads and its collecting of garbage are in it, which a single refresh leaves out.
// Each node_exporter reads the same tree at the same pace. All machines are measured at once, for nearly all of it is waiting. The counters of
// traffic move; `--moving=all` moves all counters of each adapter. `--only=everyday` measures the machines whose name has that word, and
// `--flags='--no-opt'` starts Node with other flags than the image.
import { loadavg } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makeBundle } from './parts/image.mjs';
import { cpuSeconds, report, rssMiB } from './parts/measure.mjs';
import { createScraper, startInfinibandExporter } from './parts/node-exporter.mjs';
import { nodeExporters } from './parts/node-exporter-builds.mjs';
import { MACHINES, makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: {
    interval: { type: 'string', default: '10' },
    settle: { type: 'string', default: '600' },
    seconds: { type: 'string', default: '300' },
    moving: { type: 'string', default: 'four' },
    only: { type: 'string', default: '' },
    flags: { type: 'string' },
  },
});
const INTERVAL_MS = Number(values.interval) * 1_000;
const exporters = await nodeExporters();
const bundle = makeBundle(values.flags?.split(' ').filter((flag) => flag !== ''));
const machines = MACHINES.filter(({ name }) => name.includes(values.only));
try {
  const rows = (await Promise.all(machines.map(measure))).flat();
  const { moving, flags } = values;
  report('in-use', rows, { intervalMs: INTERVAL_MS, moving, flags, load: loadavg() });
} finally {
  bundle.remove();
}

async function measure(machine, at) {
  const { node, kubelet, flags, hcaCount, remove } = await makeMachine(machine);
  const agent = await startServe(node, kubelet, { interval: `${INTERVAL_MS}ms`, flags, start: bundle });
  const peers = hcaCount === 0 ? [] : await Promise.all(exporters.map((exporter) => startInfinibandExporter(node.roots.sysfs, exporter)));
  const running = [{ name: 'agent', ...agent }, ...peers].map((one) => ({ ...one, scraper: createScraper(one.port, { gzip: true }) }));
  const turns = (seconds) => Math.max(1, Math.round((Number(seconds) * 1_000) / INTERVAL_MS));
  /** One interval, in which the counters move and everybody is scraped once. */
  const takeTurn = async () => {
    await sleep(INTERVAL_MS / 2);
    for (const { scraper } of running) await scraper.scrape();
    await sleep(INTERVAL_MS / 2);
    node.move(values.moving === 'all' ? 1 : node.trafficShare);
  };
  try {
    // Not all machines at the same moment.
    await sleep((INTERVAL_MS / machines.length) * at);
    for (let turn = 0; turn < turns(values.settle); turn += 1) await takeTurn();
    const before = running.map(({ pid }) => cpuSeconds(pid));
    for (let turn = 0; turn < turns(values.seconds); turn += 1) await takeTurn();
    const took = running.map(({ pid }, n) => ((cpuSeconds(pid) - before[n]) * 1_000) / turns(values.seconds));
    return running.map(({ name }, n) => ({
      machine: machine.name,
      who: name,
      'ms CPU per interval': took[n].toFixed(1),
      'RSS MiB': rssMiB(running[n].pid).toFixed(0),
      'agent to it': n === 0 ? undefined : (took[0] / took[n]).toFixed(2),
    }));
  } finally {
    for (const { scraper } of running) scraper.close();
    await Promise.all([agent, ...peers].map(({ stop }) => stop()));
    await remove();
  }
}
