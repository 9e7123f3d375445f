// The agent's probes, join and judgement in a process of their own, without its web server: refreshes when told to and says what
// each cost. Talks with its parent over the IPC channel; nothing of that falls into what is measured.
import { dist } from './dist.mjs';

const { boundHeaps } = await dist('cli/heap.js');
boundHeaps();

const { systemClock } = await dist('host/clock.js');
const { AgentCore } = await dist('agent/core.js');
const { HealthKeeper } = await dist('agent/health.js');
const { refreshOptions, deviceOptions } = await dist('agent/options.js');
const { podResourcesOptions } = await dist('kubelet/options.js');
const { pluginOptions } = await dist('plugin/options.js');
const { defaultValues } = await dist('model/options.js');
const { familyLoaders } = await dist('probes/families.js');

const { roots, socket, checkpoint = '', families: wanted, options = {} } = JSON.parse(process.argv[2]);
const families = await Promise.all(wanted.map((name) => familyLoaders[name]()));
const settings = {
  roots,
  refresh: defaultValues(refreshOptions),
  device: defaultValues(deviceOptions),
  podResources: { ...defaultValues(podResourcesOptions), socket, checkpoint },
  families: families.map((family) => ({ family, options: { ...defaultValues(family.options), ...options[family.name] } })),
  pools: [],
  health: {},
  plugin: { options: defaultValues(pluginOptions), resources: [] },
  state: { file: '' },
};
const silent = { debug() {}, info() {}, warn() {}, error: console.error };
const health = await HealthKeeper.open(settings, silent, systemClock, true);
const core = new AgentCore(settings, health, silent, systemClock);

/**
 * One refresh of all probes, joined and judged; `withKubelet` asks the kubelet too, as the agent does at the same pace. The last part that
 * answers makes the snapshot, unless it was not the last.
 */
async function refreshOnce(withKubelet) {
  const before = core.store.snapshot();
  await (withKubelet ? core.refresh() : Promise.all(core.runners.map((runner) => runner.refresh())));
  if (core.store.snapshot() === before) core.assemble();
}

async function measured(count, withKubelet) {
  const before = process.cpuUsage();
  const begun = performance.now();
  for (let n = 0; n < count; n += 1) await refreshOnce(withKubelet);
  const { user, system } = process.cpuUsage(before);
  return { cpuUs: (user + system) / count, wallUs: ((performance.now() - begun) * 1_000) / count };
}

function memory() {
  globalThis.gc?.();
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heapUsed };
}

const commands = {
  refresh: ({ withKubelet }) => measured(1, withKubelet === true),
  refreshMany: ({ count }) => measured(count, false),
  memory,
  snapshot: () => {
    const { devices, allocations, containerReadings } = core.store.snapshot();
    const readings = devices.reduce((sum, device) => sum + device.readings.length, 0);
    const held = allocations.filter((allocation) => allocation.devices.length > 0).length;
    return {
      devices: devices.length,
      readings,
      healthy: devices.filter(({ verdict }) => verdict.state === 'healthy').length,
      held,
      containerReadings: containerReadings.reduce((sum, { readings }) => sum + readings.length, 0),
    };
  },
};

process.on('SIGINT', () => void core.close().then(() => process.exit()));
// However the parent ended.
process.on('disconnect', () => process.exit());
process.on('message', async ({ command, ...rest }) => process.send(await commands[command](rest)));
await core.refresh();
process.send({ ready: true });
