// What a fleet costs Prometheus: series, disk, memory, the seconds of the rules and of each panel, with and without recorded series. The
// nodes are copies of one that the real agent exports (parts/fleet-record.mjs), with names and pods of their own and values that move.
//   node bench/fleet.mjs --nodes=50 --nodes=100 --nodes=200    measures; needs prometheus and promtool
//   node bench/fleet.mjs --write=fleet.om --nodes=2            only writes OpenMetrics with timestamps, for promtool
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createFleet, instanceOf, nodeName } from './parts/fleet-nodes.mjs';
import { panelsOf, RULES, recordingSteps, ruleGroups } from './parts/fleet-panels.mjs';
import { blockNames, blocksOf, bytesOf, discard, merged, recordRules, startPrometheus } from './parts/fleet-prometheus.mjs';
import { recordNode } from './parts/fleet-record.mjs';
import { median, printTable, report, rssMiB } from './parts/measure.mjs';

const { values } = parseArgs({
  options: {
    nodes: { type: 'string', multiple: true, default: ['50', '100', '200'] },
    minutes: { type: 'string', default: '120' },
    step: { type: 'string', default: '30' },
    pages: { type: 'string', default: '12' },
    dashboard: { type: 'string', default: fileURLToPath(new URL('../dashboards/fleet.json', import.meta.url)) },
    live: { type: 'string', default: '300' },
    recorded: { type: 'string' },
    write: { type: 'string' },
  },
});
const STEP = Number(values.step);
const STEPS = Math.round((Number(values.minutes) * 60) / STEP);
/** The last two hours that are one block of Prometheus, so that they lie on the disk as they would after a day. */
const BLOCK = 7_200;
const startSeconds = Math.floor(Date.now() / 1_000 / BLOCK) * BLOCK - BLOCK;
const endSeconds = startSeconds + (STEPS - 1) * STEP;
/** The text of so many nodes is made at once; it is large. */
const SLICE = 25;
const FAMILY_NODES = 10;
/** Grafana asks for about as many points as a panel has columns of pixels, half of them on a small panel. */
const POINTS = 300;
const RULE_SECONDS = 60;
const TURNS = 3;

const recorded = await record();
const fleet = createFleet(recorded, { startSeconds });
const sizes = values.nodes.map(Number).sort((a, b) => a - b);
if (values.write !== undefined) {
  const samples = fleet.write(values.write, { nodes: range(0, sizes.at(-1)), stepCount: STEPS });
  console.log(`${samples} samples of ${sizes.at(-1)} nodes`);
} else await measureAll();

async function measureAll() {
  const work = mkdtempSync(join(tmpdir(), 'device-agent-fleet-'));
  try {
    const families = await measureFamilies(work);
    const measured = [];
    for (const nodes of sizes) {
      const stored = await measureStored(work, nodes);
      measured.push({ nodes, ...stored, ...(await measureLive(work, nodes)) });
      // After each size, for the largest takes long.
      const rows = measured.map(({ panels: _, rules: __, ...row }) => row);
      report('fleet', rows, { families, panels: byPanel(measured), rules: byRule(measured), measured });
    }
    printTable(families);
    printTable(byPanel(measured));
    printTable(byRule(measured));
  } finally {
    discard(work);
  }
}

/** What the series of each family cost on the disk, each alone. */
async function measureFamilies(work) {
  const counts = fleet.seriesByFamily();
  return Object.entries(counts).map(([family, series]) => {
    const directory = join(work, `family-${family}`);
    const samples = addBlocks(work, directory, { nodes: range(0, FAMILY_NODES), stepCount: STEPS, family });
    const bytes = bytesOf(directory);
    discard(directory);
    return {
      family,
      'series per node': series,
      'KB per node and hour': perNodeHour(bytes, FAMILY_NODES),
      'bytes per sample': (bytes / samples).toFixed(2),
    };
  });
}

/** Disk, and the seconds of rules and panels, over stored history. */
async function measureStored(work, nodes) {
  const directory = join(work, `stored-${nodes}`);
  const data = join(directory, 'data');
  mkdirSync(data, { recursive: true });
  for (let first = 0; first < nodes; first += SLICE) {
    const last = Math.min(nodes, first + SLICE);
    const slice = join(work, `slice-${first}-${last}`);
    if (!existsSync(slice)) addBlocks(work, slice, { nodes: range(first, last), stepCount: STEPS });
    for (const name of blockNames(slice)) cpSync(join(slice, name), join(data, name), { recursive: true });
  }
  await withPrometheus(directory, () => merged(data));
  const bytes = bytesOf(data);
  const begun = performance.now();
  for (const [n, rules] of recordingSteps.entries()) {
    const file = join(directory, `rules-${n}.yaml`);
    writeFileSync(file, JSON.stringify({ groups: [{ name: `fleet-${n}`, rules }] }));
    await withPrometheus(directory, async ({ url }) =>
      recordRules(file, { url, start: startSeconds, end: endSeconds, seconds: RULE_SECONDS, directory: data }),
    );
  }
  console.error(`${nodes} nodes: rules of ${values.minutes} minutes evaluated in ${((performance.now() - begun) / 1_000).toFixed(0)} s`);
  return withPrometheus(directory, async (prometheus) => {
    await merged(data);
    const found = {
      'KB per node and hour': perNodeHour(bytes, nodes),
      'of it recorded': perNodeHour(bytesOf(data) - bytes, nodes),
      panels: await timePanels(prometheus),
      rules: await timeRules(prometheus),
    };
    const sum = (kind) => found.rules.filter((rule) => rule.kind === kind).reduce((total, { seconds }) => total + seconds, 0);
    return { ...found, 'recording rules, s': sum('record').toFixed(2), 'alerts, s': sum('alert').toFixed(2) };
  }).finally(() => discard(directory));
}

/** Series and memory of the head while it scrapes for some minutes, and how long the rules take meanwhile. */
async function measureLive(work, nodes) {
  const directory = join(work, `live-${nodes}`);
  const server = fork(fileURLToPath(new URL('parts/fleet-server.mjs', import.meta.url)));
  server.send({ recorded, startSeconds });
  const [{ port }] = await once(server, 'message');
  const targets = range(0, nodes).map((node) => ({
    targets: [`127.0.0.1:${port}`],
    labels: { __metrics_path__: `/${node}`, node: nodeName(node), instance: instanceOf(node) },
  }));
  const config = {
    global: { scrape_interval: `${STEP}s`, evaluation_interval: `${RULE_SECONDS}s` },
    scrape_configs: [{ job_name: 'device-agent', static_configs: targets }],
    rule_files: [RULES],
  };
  try {
    return await withPrometheus(
      directory,
      async ({ own, groups, pid }) => {
        await sleep(Number(values.live) * 1_000);
        const last = await groups();
        const seconds = last.map(({ name, evaluationTime }) => [`live: ${name}, s`, evaluationTime.toFixed(3)]);
        return {
          'head series': await own('prometheus_tsdb_head_series'),
          'RSS MiB': rssMiB(pid).toFixed(0),
          'heap MiB': ((await own('go_memstats_heap_inuse_bytes')) / 2 ** 20).toFixed(0),
          ...Object.fromEntries(seconds),
        };
      },
      config,
    );
  } finally {
    server.disconnect();
    discard(directory);
  }
}

async function timePanels({ instant, range: ask }) {
  const span = { start: startSeconds, end: endSeconds, step: Math.ceil((endSeconds - startSeconds) / POINTS) };
  const time = (expr, kind) => timed(() => (kind === 'graph' ? ask(expr, span) : instant(expr, endSeconds)));
  const found = [];
  for (const { title, kind, expr, raw } of panelsOf(values.dashboard))
    found.push({ panel: `${title} (${kind})`, recorded: await time(expr, kind), raw: await time(raw, kind) });
  return found;
}

/** Each rule once, at the end of the history. */
async function timeRules({ instant }) {
  const found = [];
  for (const { name: group, rules } of ruleGroups())
    for (const { record, alert, expr } of rules)
      found.push({
        group,
        kind: record === undefined ? 'alert' : 'record',
        rule: record ?? alert,
        ...(await timed(() => instant(expr, endSeconds))),
      });
  return found;
}

/** The median of some turns; the first of all is not counted, for it reads the disk. */
async function timed(ask) {
  const first = await ask();
  const turns = [];
  for (let turn = 0; turn < TURNS; turn += 1) turns.push((await ask()).seconds);
  return { seconds: median(turns), first: first.seconds, samples: first.samples, series: first.result.length };
}

function byPanel(measured) {
  return measured[0].panels.map(({ panel }, n) => ({
    panel,
    ...Object.fromEntries(
      measured.flatMap(({ nodes, panels: all }) => [
        [`${nodes} recorded, s`, all[n].recorded.seconds.toFixed(3)],
        [`${nodes} raw, s`, all[n].raw.seconds.toFixed(2)],
      ]),
    ),
    series: measured.at(-1).panels[n].recorded.series,
    'raw series': measured.at(-1).panels[n].raw.series,
  }));
}

function byRule(measured) {
  return measured[0].rules.map(({ rule }, n) => ({
    rule,
    ...Object.fromEntries(measured.map(({ nodes, rules }) => [`${nodes}, s`, rules[n].seconds.toFixed(4)])),
    samples: measured.at(-1).rules[n].samples,
    series: measured.at(-1).rules[n].series,
  }));
}

function addBlocks(work, directory, what) {
  const text = join(work, 'fleet.om');
  const samples = fleet.write(text, what);
  blocksOf(text, directory);
  discard(text);
  return samples;
}

async function withPrometheus(directory, use, config) {
  const prometheus = await startPrometheus(directory, config);
  try {
    return await use(prometheus);
  } finally {
    await prometheus.stop();
  }
}

function perNodeHour(bytes, nodes) {
  return (bytes / nodes / (Number(values.minutes) / 60) / 1_000).toFixed(0);
}

/** `--recorded`: a file that keeps what was recorded for the next run. */
async function record() {
  if (values.recorded !== undefined && existsSync(values.recorded)) return JSON.parse(readFileSync(values.recorded, 'utf8'));
  const taken = await recordNode({ steps: Number(values.pages), stepSeconds: STEP });
  if (values.recorded !== undefined) writeFileSync(values.recorded, JSON.stringify(taken));
  return taken;
}

function range(from, to) {
  return Array.from({ length: to - from }, (_, n) => from + n);
}
