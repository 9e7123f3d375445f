// The kubelet's List of 10, 250 and 1,000 pods, each with one device: reading the message, joining it with 136 devices, and seeing that
// nothing changed - against the bare decode of the same bytes. In one process, in turns. The kubelet gives its pods in another order each
// time, so no two answers are the same bytes.
import { parseArgs } from 'node:util';
import { dist } from './parts/dist.mjs';
import { report, summary } from './parts/measure.mjs';

const { ListPodResourcesResponse } = await dist('generated/podresources/v1/api.js');
const { attributionFrom } = await dist('kubelet/allocations.js');
const { ListReader } = await dist('kubelet/list-reader.js');
const { Assembler } = await dist('agent/assemble.js');

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' }, turns: { type: 'string', default: '60' } } });
const DEVICES = 136;
const collection = {
  reports: Array.from({ length: DEVICES }, (_, n) => ({
    device: { family: 'infiniband', id: `mlx5_${n}`, kind: 'vf', aliases: [`0000:18:${n}.0`], attributes: { vfIndex: String(n) } },
    read: { readings: [], findings: [] },
  })),
  problems: [],
  listing: 'complete',
};
const state = { family: 'infiniband', succeeded: true, problems: [], runs: 1, failures: 0, abandoned: 0, hung: false };
const verdict = { state: 'healthy', sinceMs: 1, conditions: [] };
const judge = (devices) => new Map(devices.map(({ key }) => [key, verdict]));

const rows = [10, 250, 1_000].map(measure);
report('pods', rows);

function measure(pods) {
  const answers = Array.from({ length: 4 }, () => listOf(pods));
  const [bytes] = answers;
  const oneMoved = Array.from({ length: 4 }, (_, n) => listOf(pods, 'job', n % 2));
  const others = Array.from({ length: 2 }, () => listOf(pods, 'other'));
  const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 1e9, missingRetentionMs: 1e9 };
  const part = () => {
    const assembler = new Assembler(settings, judge);
    const reader = new ListReader();
    return { reader, join: (attribution) => join(assembler, attribution) };
  };
  const [reading, same, moved, changed] = [part(), part(), part(), part()];
  let turn = 0;
  const parts = {
    decode: () => ListPodResourcesResponse.decode(bytes),
    anew: () => attributionFrom(ListPodResourcesResponse.decode(bytes)),
    reading: () => reading.reader.read(answers[turn++ % answers.length]),
    same: () => same.join(same.reader.read(answers[turn++ % answers.length])),
    moved: () => moved.join(moved.reader.read(oneMoved[turn++ % oneMoved.length])),
    changed: () => changed.join(changed.reader.read(turn++ % 2 === 0 ? bytes : others[turn % others.length])),
  };
  for (const run of Object.values(parts)) for (let n = 0; n < 200; n += 1) run();
  const held = parts.same().allocations.filter(({ devices }) => devices.length === 1).length;
  if (held !== pods) throw new Error(`${held} of ${pods} pods joined`);
  const took = Object.fromEntries(Object.keys(parts).map((name) => [name, []]));
  const turns = Math.max(6, Math.round((Number(values.turns) * 250) / pods));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, run] of Object.entries(parts)) {
      const before = process.cpuUsage();
      for (let n = 0; n < turns; n += 1) run();
      const { user, system } = process.cpuUsage(before);
      took[name].push((user + system) / turns);
    }
  }
  return row(pods, bytes.length, took);
}

function join(assembler, attribution) {
  const podResources = { api: 'v1', held: new Set(), ...attribution };
  return assembler.assemble(
    { families: [{ state, latest: { collection, startedMs: 1, readAtMs: 1, monotonicMs: 1 } }], podResources, checkpoint: [] },
    { nowMs: 2, monotonicMs: 2 },
  );
}

function row(pods, bytes, took) {
  const decode = summary(took.decode);
  return {
    pods,
    bytes,
    'bare decode µs': decode.text,
    'to allocations, knowing nothing µs': summary(took.anew).text,
    'to allocations, as before µs': summary(took.reading).text,
    'and join, as before µs': summary(took.same).text,
    'and join, one device moved µs': summary(took.moved).text,
    'and join, all changed µs': summary(took.changed).text,
    'as before / bare decode': (summary(took.same).median / decode.median).toFixed(2),
    'one moved / bare decode': (summary(took.moved).median / decode.median).toFixed(2),
    'all changed / bare decode': (summary(took.changed).median / decode.median).toFixed(2),
  };
}

/** In random order. `moved` gives the device of the first pod to the last one and the other way round. */
function listOf(pods, name = 'job', moved = 0) {
  const podResources = Array.from({ length: pods }, (_, n) => {
    const at = moved === 1 && (n === 0 || n === pods - 1) ? pods - 1 - n : n;
    return {
      namespace: 'training',
      name: `${name}-${n}-worker-0`,
      containers: [
        {
          name: 'main',
          devices: [{ resourceName: 'rdma/hca', deviceIds: [`mlx5_${at % DEVICES}`], topology: { nodes: [{ ID: n % 2 }] } }],
          cpuIds: [],
          memory: [],
          dynamicResources: [],
        },
      ],
      cpuIds: [],
      memory: [],
    };
  });
  podResources.sort(() => Math.random() - 0.5);
  return ListPodResourcesResponse.encode(ListPodResourcesResponse.fromPartial({ podResources })).finish();
}
