// The agent's probes, join and judgement without its web server: refreshes when told to over the IPC channel, and says what that cost.
import { dist } from './dist.mjs';
import { cpuMillis } from './measure.mjs';

const { systemClock } = await dist('host/clock.js');
const { AgentCore } = await dist('agent/core.js');
const { HealthService } = await dist('agent/health.js');
const { refreshOptions, deviceOptions, stateOptions } = await dist('agent/options.js');
const { cdiOptions, draOptions, podResourcesOptions } = await dist('kubelet/options.js');
const { pluginOptions } = await dist('plugin/options.js');
const { defaultValues } = await dist('model/options.js');
const { usageOptions } = await dist('accounting/options.js');
const { incidentOptions } = await dist('incidents/options.js');
const { stallOptions } = await dist('waiting/options.js');
const { familyLoaders } = await dist('probes/families.js');

const { roots, socket, families: wanted, options = {} } = JSON.parse(process.argv[2]);
const families = await Promise.all(wanted.map((name) => familyLoaders[name]()));
const settings = {
  roots,
  refresh: defaultValues(refreshOptions),
  device: defaultValues(deviceOptions),
  podResources: { ...defaultValues(podResourcesOptions), socket, checkpoint: '' },
  dra: defaultValues(draOptions),
  cdi: defaultValues(cdiOptions),
  families: families.map((family) => ({ family, options: { ...defaultValues(family.options), ...options[family.name] } })),
  pools: [],
  health: {},
  plugin: { options: defaultValues(pluginOptions), resources: [] },
  state: { ...defaultValues(stateOptions), file: '' },
  usage: defaultValues(usageOptions),
  stall: defaultValues(stallOptions),
  incidents: defaultValues(incidentOptions),
  expect: {},
  idle: {},
};
const silent = { debug() {}, info() {}, warn() {}, error: console.error };
const core = new AgentCore(settings, await HealthService.open(settings, silent, systemClock, true), silent, systemClock);

const commands = {
  /** CPU of one refresh, in microseconds. `kubelet`: whether the kubelet is asked too. `isMeasured`: false where the caller measures. */
  async refresh({ count = 1, kubelet = true, isMeasured = true }) {
    const before = isMeasured ? cpuMillis(process.pid) : 0;
    for (let n = 0; n < count; n += 1) {
      const known = core.store.snapshot();
      await (kubelet ? core.refresh() : core.refreshFamilies(() => true));
      if (core.store.snapshot() === known) core.assemble();
    }
    return isMeasured ? { cpuUs: ((cpuMillis(process.pid) - before) * 1_000) / count } : {};
  },
  memory() {
    globalThis.gc?.();
    const { rss, heapUsed } = process.memoryUsage();
    return { rss, heapUsed };
  },
  snapshot() {
    const { devices, allocations } = core.store.snapshot();
    return {
      devices: devices.length,
      readings: devices.reduce((sum, device) => sum + device.readings.length, 0),
      held: allocations.filter((allocation) => allocation.devices.length > 0).length,
    };
  },
};

// However the parent ended.
process.on('disconnect', () => process.exit());
process.on('message', async ({ command, ...rest }) => process.send(await commands[command](rest)));
await core.refresh();
process.send({ ready: true });
