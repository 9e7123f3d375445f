// What the page of a fleet costs: nodes of 8 devices in a real Prometheus, written as blocks; the overview of the built program, its bytes and memory,
// and the time of its questions, which is Prometheus's share.
//   node bench/fleet-page.mjs --nodes=20 --nodes=200 --nodes=1000
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { blocksOf, discard, startPrometheus } from './parts/fleet-prometheus.mjs';
import { freePort } from './parts/free-port.mjs';
import { quantile, report, rssMiB } from './parts/measure.mjs';

const { values } = parseArgs({ options: { nodes: { type: 'string', multiple: true, default: ['20', '200', '1000'] } } });
const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const DEVICES = 8;
const STEP = 30;
const STEPS = 20;
const TURNS = 100;
const READS = 5;

/** Samples of what the rules record, until some minutes after now, so that they are new while it measures. */
function write(path, nodes) {
  const first = Math.floor(Date.now() / 1_000) - 5 * 60;
  const times = Array.from({ length: STEPS }, (_, n) => first + n * STEP);
  const byName = new Map();
  const add = (name, labels, value) => {
    const head = `${name}{${labels}}`;
    const list = byName.get(name) ?? byName.set(name, []).get(name);
    list.push(times.map((at) => `${head} ${value === 'time' ? at : value} ${at}\n`).join(''));
  };
  const type = 'family="nvidia",kind="gpu",model="H100"';
  for (let node = 0; node < nodes; node += 1) {
    const identity = `node="gpu-node-${node}"`;
    const isSick = node % 50 === 0;
    add('node:device_agent_heard:timestamp_seconds', identity, 'time');
    add('node:device_agent_snapshots:changes5m', identity, 10);
    add('node:devices_without_parts:count', `${identity},${type}`, DEVICES);
    add('node:devices_by_level:count', `${identity},${type},level="1"`, isSick ? DEVICES - 1 : DEVICES);
    add('node:devices_held_by_level:count', `${identity},${type},level="1"`, isSick ? DEVICES - 1 : DEVICES);
    add('node:device_utilization_ratio:avg', `${identity},${type}`, (node % 11) / 10);
    add('kube_node_labels', `${identity},label_topology_kubernetes_io_zone="zone-${node % 8}"`, 1);
    for (let device = 0; device < DEVICES; device += 1)
      add(
        'device:container_device_allocation:max',
        `${identity},device="GPU-${device}",holder_namespace="team-${node % 50}",resource="nvidia.com/gpu"`,
        1,
      );
    if (!isSick) continue;
    add('node:devices_by_level:count', `${identity},${type},level="3"`, 1);
    add(
      'device:device_fault:since_timestamp_seconds',
      `${identity},device="GPU-0",${type},driver="580.105",condition="GpuLost",reason="Xid79",severity="fatal",remedy="reboot"`,
      first,
    );
    add('device:device_fault_holder:max', `${identity},device="GPU-0",holder_namespace="team-0",holder_pod="llm-${node}"`, 1);
  }
  for (let n = 0; n < 50; n += 1) {
    add('namespace:devices_held:count', `holder_namespace="team-${n}"`, DEVICES);
    add('namespace:device_share_hours:sum1d', `holder_namespace="team-${n}",family="nvidia",model="H100"`, 24 * DEVICES);
    add('namespace:device_idle_share_hours:sum1d', `holder_namespace="team-${n}",family="nvidia",model="H100"`, n);
  }
  writeFileSync(path, `${[...byName.values()].flat().join('')}# EOF\n`);
}

async function measure(nodes) {
  const work = mkdtempSync(join(tmpdir(), 'device-agent-fleet-page-'));
  mkdirSync(join(work, 'data'));
  write(join(work, 'fleet.om'), nodes);
  blocksOf(join(work, 'fleet.om'), join(work, 'data'));
  const prometheus = await startPrometheus(work);
  const port = await freePort();
  const fleet = spawn('node', [PROGRAM, 'fleet', `--prometheus=${prometheus.url}`, `--listen=127.0.0.1:${port}`], {
    stdio: 'ignore',
  });
  try {
    const url = `http://127.0.0.1:${port}/`;
    const ask = async () => {
      const begun = performance.now();
      const answer = await fetch(url, { headers: { accept: 'text/html' } }).catch(() => undefined);
      const text = (await answer?.text()) ?? '';
      return { isThere: answer?.ok === true, ms: performance.now() - begun, text };
    };
    while (!(await ask()).isThere) await sleep(100);
    const turns = [];
    for (let turn = 0; turn < TURNS; turn += 1) turns.push(await ask());
    const { text } = turns.at(-1);
    const found = /<h1>(.*?)<\/h1>/s.exec(text)?.[1].replace(/<[^>]*>/g, '');
    const times = turns.map(({ ms }) => ms);
    const sum = () => prometheus.own('prometheus_engine_query_duration_seconds_sum');
    const [before, begun] = [await sum(), performance.now()];
    for (let read = 0; read < READS; read += 1) {
      const list = spawn('node', [PROGRAM, 'fleet', 'list', '-o', 'json', `--prometheus=${prometheus.url}`], { stdio: 'ignore' });
      const [status] = await once(list, 'exit');
      if (status !== 0) throw new Error(`fleet list ended with ${status}`);
    }
    const seconds = (performance.now() - begun) / 1_000 / READS;
    return {
      nodes,
      'overview p50, ms': quantile(times, 0.5).toFixed(1),
      'overview p95, ms': quantile(times, 0.95).toFixed(1),
      'overview, KB': (Buffer.byteLength(text) / 1_000).toFixed(0),
      'Prometheus per read, s (inner timers summed)': (((await sum()) - before) / READS).toFixed(3),
      'fleet RSS, MiB': rssMiB(fleet.pid).toFixed(0),
      'fleet list, s': seconds.toFixed(2),
      sentence: found,
    };
  } finally {
    fleet.kill('SIGTERM');
    await prometheus.stop();
    discard(work);
  }
}

const rows = [];
for (const nodes of values.nodes.map(Number)) rows.push(await measure(nodes));
report('fleet-page', rows);
