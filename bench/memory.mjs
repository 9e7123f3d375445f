// Memory of the agent and its readers as the image starts it, after it refreshed and was scraped for a while, four times a second; and of
// node_exporter on the same tree. `--against=DIRECTORY` measures another checkout, too.
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { makeBundle } from './parts/image.mjs';
import { openDescriptors, report, rssMiB, withReaders } from './parts/measure.mjs';
import { memoryGroup } from './parts/memory-group.mjs';
import { createScraper, startInfinibandExporter } from './parts/node-exporter.mjs';
import { nodeExporters } from './parts/node-exporter-builds.mjs';
import { MACHINES, makeMachine } from './parts/node-tree.mjs';
import { startServe } from './parts/serve.mjs';

const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '20' }, only: { type: 'string' }, against: { type: 'string' } },
});
const PACE_MS = 250;
/** What it must not take, by the beginning of the machine's name. */
const MOST_MIB = { everyday: 110, large: 140 };

const exporter = (await nodeExporters()).at(-1);
const bundles = [{ name: 'agent', bundle: makeBundle() }];
if (values.against !== undefined) bundles.push({ name: values.against, bundle: makeBundle(undefined, values.against) });
try {
  const rows = [];
  for (const machine of MACHINES)
    if (values.only === undefined || machine.name.startsWith(values.only)) rows.push(...(await measure(machine)));
  report('memory', rows);
} finally {
  for (const { bundle } of bundles) bundle.remove();
}

async function measure(machine) {
  const { node, kubelet, flags, hcaCount, deviceCount, remove } = await makeMachine(machine);
  const running = [];
  for (const { name, bundle } of bundles) {
    const group = memoryGroup();
    const agent = await startServe(node, kubelet, { interval: `${PACE_MS}ms`, flags, start: { ...bundle, group } });
    running.push({ name, group, ...agent, most: MOST_MIB[machine.name.split(':')[0]] });
  }
  if (hcaCount > 0 && exporter !== undefined) running.push(await startInfinibandExporter(node.roots.sysfs, exporter));
  const scrapers = running.map(({ port }) => createScraper(port));
  try {
    const highest = running.map(() => 0);
    for (const ends = performance.now() + Number(values.seconds) * 1_000; performance.now() < ends; await sleep(PACE_MS)) {
      node.advance();
      for (const [n, { pid }] of running.entries()) {
        await scrapers[n].scrape();
        highest[n] = Math.max(highest[n], rssMiB(pid));
      }
    }
    const told = (await scrapers[0].scrape()).match(/^device_present\{device="(?:GPU-|mlx5_)/gm)?.length ?? 0;
    if (told !== deviceCount) throw new Error(`the agent tells of ${told} devices, not ${deviceCount}`);
    return running.map(({ name, group, pid, most }, n) => ({
      machine: machine.name,
      who: name,
      processes: withReaders(pid).length,
      'cgroup MiB': group?.usedMiB().toFixed(0),
      'RSS MiB': rssMiB(pid).toFixed(0),
      'highest MiB': highest[n].toFixed(0),
      'at most MiB': most,
      descriptors: openDescriptors(pid),
    }));
  } finally {
    for (const scraper of scrapers) scraper.close();
    await Promise.all(running.map(({ stop }) => stop()));
    for (const { group } of running) group?.remove();
    await remove();
  }
}
