// The kubelet's List of 10, 250 and 1,000 pods, each with one device: decoding the message, turning it into allocations, joining
// them with 136 devices, and seeing that nothing changed - against the bare decode of the same bytes. In one process, in turns.
import { parseArgs } from 'node:util';
import { dist } from './parts/dist.mjs';
import { report, summary } from './parts/measure.mjs';

const { ListPodResourcesResponse } = await dist('generated/podresources/v1/api.js');
const { attributionFrom } = await dist('kubelet/allocations.js');
const { Assembler } = await dist('agent/assemble.js');

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' }, turns: { type: 'string', default: '60' } } });
const DEVICES = 136;
const collection = {
  reports: Array.from({ length: DEVICES }, (_, n) => ({
    device: { family: 'infiniband', id: `mlx5_${n}`, kind: 'vf', aliases: [`0000:18:${n}.0`], attributes: { vfIndex: String(n) } },
    readings: [],
    findings: [],
  })),
  problems: [],
};
const state = { family: 'infiniband', succeeded: true, problems: [], runs: 1, failures: 0, abandoned: 0, hung: false };
const verdict = { state: 'healthy', sinceMs: 1, conditions: [] };
const judge = (devices) => new Map(devices.map(({ key }) => [key, verdict]));

const rows = [10, 250, 1_000].map(measure);
report('pods', rows);

function measure(pods) {
  const bytes = listOf(pods);
  const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 1e9, missingRetentionMs: 1e9 };
  const assembler = new Assembler(settings, judge);
  const join = (attribution) =>
    assembler.assemble(
      {
        families: [{ state, latest: { collection, readAtMs: 1 } }],
        podResources: { api: 'v1', held: new Set(), ...attribution },
        checkpoint: [],
      },
      2,
    );
  const other = attributionFrom(ListPodResourcesResponse.decode(listOf(pods, 'other')));
  const parts = {
    decode: () => ListPodResourcesResponse.decode(bytes),
    allocations: () => attributionFrom(ListPodResourcesResponse.decode(bytes)),
    same: () => join(attributionFrom(ListPodResourcesResponse.decode(bytes))),
    changed: () => {
      join(other);
      return join(attributionFrom(ListPodResourcesResponse.decode(bytes)));
    },
    other: () => join(other),
  };
  for (const run of Object.values(parts)) for (let n = 0; n < 200; n += 1) run();
  const held = parts.same().allocations.filter(({ devices }) => devices.length === 1).length;
  if (held !== pods) throw new Error(`${held} of ${pods} pods joined`);
  const took = { decode: [], allocations: [], same: [], changed: [], other: [] };
  const turns = Math.max(5, Math.round((Number(values.turns) * 250) / pods));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [part, run] of Object.entries(parts)) {
      const before = process.cpuUsage();
      for (let n = 0; n < turns; n += 1) run();
      const { user, system } = process.cpuUsage(before);
      took[part].push((user + system) / turns);
    }
  }
  const decode = summary(took.decode);
  const same = summary(took.same);
  return {
    pods,
    bytes: bytes.length,
    'bare decode µs': decode.text,
    'decode to allocations µs': summary(took.allocations).text,
    'and join, as before µs': same.text,
    'and join, all changed µs': summary(took.changed.map((us, n) => us - took.other[n])).text,
    'as before / bare decode': (same.median / decode.median).toFixed(2),
  };
}

function listOf(pods, name = 'job') {
  const podResources = Array.from({ length: pods }, (_, n) => ({
    namespace: 'training',
    name: `${name}-${n}-worker-0`,
    containers: [
      {
        name: 'main',
        devices: [{ resourceName: 'rdma/hca', deviceIds: [`mlx5_${n % DEVICES}`], topology: { nodes: [{ ID: n % 2 }] } }],
        cpuIds: [],
        memory: [],
        dynamicResources: [],
      },
    ],
    cpuIds: [],
    memory: [],
  }));
  return ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources })).finish();
}
