// Snapshots for the scrape benchmark: one read of simulated HCAs by the real probe, joined by the real assembler with a pod for
// each. `next()` is as after a refresh: the traffic counters have grown, and the lists of series are the same objects as before.
import { dist } from './dist.mjs';
import { makeNode } from './node-tree.mjs';

const { family } = await dist('probes/infiniband/index.js');
const { createHost } = await dist('host/host.js');
const { systemClock } = await dist('host/clock.js');
const { Assembler } = await dist('agent/assemble.js');
const { CollectionDecoder, CollectionEncoder } = await dist('supervisor/collection-codec.js');
const { defaultValues } = await dist('model/options.js');
const { Readings } = await dist('model/readings.js');

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
  const verdict = { state: 'healthy', sinceMs: Date.now(), conditions: [], transitions: {} };
  const assembler = new Assembler(
    { rules: { pools: [], families: new Map() }, specs, staleAfterMs: 1e9, missingRetentionMs: 1e9 },
    (devices) => new Map(devices.map(({ key }) => [key, verdict])),
  );
  const podResources = { api: 'v1', allocations, held: new Set(), exclusive: [], answeredAtMs: Date.now() };
  const state = { family: family.name, succeeded: true, problems: [], runs: 1, failures: 0, abandoned: 0, hung: false };
  const encoder = new CollectionEncoder();
  const decoder = new CollectionDecoder();
  const next = () => {
    const startedMs = systemClock.monotonic();
    const reports = collection.reports.map(({ read, ...rest }) => ({ ...rest, read: { ...read, readings: moved(read.readings) } }));
    collection = { ...collection, reports };
    const now = { nowMs: systemClock.now(), monotonicMs: systemClock.monotonic() };
    // A message between two threads is a copy.
    const told = decoder.decode(structuredClone(encoder.encode(collection)));
    const latest = { collection: told, startedMs, readAtMs: now.nowMs, monotonicMs: now.monotonicMs };
    return assembler.assemble({ families: [{ state, latest }], podResources, checkpoint: [] }, now);
  };
  // The counters of a container begin at a look that began after the container was seen.
  next();
  next();
  return next;
}

function moved({ series, values }) {
  const isTraffic = ({ metric }) => /_(?:bytes|packets|ticks)_total$/.test(metric);
  const grown = (value) => (typeof value === 'bigint' ? value + 123_457n : value + 123_457);
  return new Readings(
    series,
    values.map((value, at) => (isTraffic(series[at]) ? grown(value) : value)),
  );
}

async function readOnce(hcas) {
  const node = await makeNode({ hcas });
  try {
    const host = createHost(node.roots, systemClock);
    const probe = family.createProbe(host, defaultValues(family.options));
    const collection = await probe.collect();
    await probe.close?.();
    return collection;
  } finally {
    node.remove();
  }
}
