// Snapshots for the scrape benchmark: one read of simulated HCAs by the real probe, joined by the real assembler with a pod for
// each. `next()` is as after a refresh: the traffic counters have grown.
import { dist } from './dist.mjs';
import { makeNode } from './node-tree.mjs';

const { family } = await dist('probes/infiniband/index.js');
const { createHost } = await dist('host/host.js');
const { systemClock } = await dist('host/clock.js');
const { Assembler } = await dist('agent/assemble.js');

export const families = [family];

export async function createSnapshots(hcas) {
  let collection = await readOnce(hcas);
  const allocations = collection.reports.map(({ device }, index) => ({
    namespace: 'training',
    pod: `job-${index}-worker-0`,
    container: 'main',
    resource: 'rdma/hca',
    deviceId: device.id,
    numaNodes: [],
  }));
  const specs = new Map(family.metrics.map((spec) => [spec.name, spec]));
  const verdict = { state: 'healthy', sinceMs: Date.now(), conditions: [] };
  const assembler = new Assembler(
    { rules: { pools: [], families: new Map() }, specs, staleAfterMs: 1e9, missingRetentionMs: 1e9 },
    (devices) => new Map(devices.map(({ key }) => [key, verdict])),
  );
  const podResources = { api: 'v1', allocations, held: new Set(), exclusive: [], answeredAtMs: Date.now() };
  const state = { family: family.name, succeeded: true, problems: [], runs: 1, failures: 0, abandoned: 0, hung: false };
  return () => {
    const reports = collection.reports.map(({ device, read }) => ({ device, read: { ...read, readings: read.readings.map(grown) } }));
    collection = { ...collection, reports };
    const [nowMs, monotonicMs] = [Date.now(), performance.now()];
    const latest = { collection, startedMs: monotonicMs, readAtMs: nowMs, monotonicMs };
    return assembler.assemble({ families: [{ state, latest }], podResources, checkpoint: [] }, { nowMs, monotonicMs });
  };
}

function grown(reading) {
  if (!/_(?:bytes|packets|ticks)_total$/.test(reading.metric)) return reading;
  const { value } = reading;
  return { ...reading, value: typeof value === 'bigint' ? value + 123_457n : value + 123_457 };
}

async function readOnce(hcas) {
  const node = await makeNode({ hcas });
  try {
    const host = createHost(node.roots, systemClock);
    const options = Object.fromEntries(Object.entries(family.options).map(([name, { default: value }]) => [name, value]));
    const probe = family.createProbe(host, options);
    const collection = await probe.collect();
    await probe.close?.();
    return collection;
  } finally {
    node.remove();
  }
}
