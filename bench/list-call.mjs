// What one List of the kubelet costs when it is asked for as in an agent: now and then, by a process that slept meanwhile. The agent's
// poller, the gRPC library's client as it comes, a bare HTTP/2 request of the same bytes, which is the floor within Node, and a client
// in Go where there is Go; each in a process of its own, asked in turns whose order goes round. The bare ones leave the message as it
// is, the poller and Go read it. CPU that falls after the answer - streams that end, garbage - is in the third column: all that the
// process took from one question to the next, without what a process takes that is woken for nothing.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { dist } from './parts/dist.mjs';
import { listClients } from './parts/list-clients.mjs';
import { median, report, summary } from './parts/measure.mjs';
import { podOf } from './parts/node-tree.mjs';

const { SimulatedKubelet } = await dist('simulator/kubelet/kubelet.js');

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    turns: { type: 'string', default: '60' },
    spacing: { type: 'string', default: '200' },
    warm: { type: 'string', default: '600' },
    quiet: { type: 'string', default: '30' },
    // Another build of the agent, to be compared with: its `dist`.
    before: { type: 'string' },
  },
});
const [ROUNDS, TURNS, SPACING_MS, WARM_UP, QUIET_S] = ['rounds', 'turns', 'spacing', 'warm', 'quiet'].map((name) => Number(values[name]));
const PODS = 60;
const HELD = 8;
const LIST = 'the agent, List';
const BOTH = 'the agent, List and capacity';
const FLOOR = 'bare HTTP/2';
/** At the default interval the agent asks for the capacity with one List of so many. */
const LISTS_PER_CAPACITY = 6;
const IDLE_MS = 3_000;

const root = mkdtempSync(join(tmpdir(), 'device-agent-list-'));
const kubelet = new SimulatedKubelet({ directory: join(root, 'kubelet'), rate: { perSecond: 1e6, burst: 1e6 } });
const clients = listClients(root, kubelet);
try {
  await kubelet.start();
  for (let n = 0; n < PODS; n += 1) kubelet.admitPod(podOf(n, n < HELD ? `mlx5_${n}` : undefined));
  const { rows, details } = await measure();
  report('list-call', rows, details);
} finally {
  await clients.stop();
  await kubelet.close();
  rmSync(root, { recursive: true, force: true });
}

async function measure() {
  const builds = { now: process.env, ...(values.before === undefined ? {} : { before: { ...process.env, BENCH_DIST: values.before } }) };
  const watching = await startWatching(builds);
  const nothing = await clients.node('nothing');
  const go = await clients.go();
  const asked = {
    [LIST]: await clients.node('poller', clients.quietCheckpoint()),
    // Without a checkpoint to go by the capacity is asked for each time.
    [BOTH]: await clients.node('poller', ''),
    ...(builds.before === undefined ? {} : { 'the agent before': await clients.node('poller', clients.quietCheckpoint(), builds.before) }),
    "the library's client": await clients.node('client'),
    [FLOOR]: await clients.node('http2'),
    ...(go === undefined ? {} : { 'Go client': go }),
    nothing,
  };
  const took = Object.fromEntries(Object.keys(asked).map((name) => [name, { call: [], whole: [] }]));
  await inTurns(asked, WARM_UP, SPACING_MS / 10);
  await sleep(IDLE_MS);
  for (let round = 0; round < ROUNDS; round += 1) {
    const answers = await inTurns(asked, TURNS, SPACING_MS);
    check(answers);
    const idle = mean(answers.nothing.map(({ since }) => since));
    for (const [name, list] of Object.entries(answers)) {
      took[name].call.push(median(list.map(({ call }) => call)));
      took[name].whole.push(mean(list.map(({ since }) => since)) - (name === 'Go client' ? 0 : idle));
    }
  }
  const watchingUs = await watching.cost();
  return { rows: rowsOf(took), details: { spacingMs: SPACING_MS, pods: PODS, watchingUs } };
}

/** Watches as the agent does between two refreshes, in processes that are asked nothing. What it costs is told in µs of CPU in ten seconds. */
async function startWatching(builds) {
  const asleep = await clients.node('nothing');
  const watching = await eachOf(builds, (env) => clients.node('watching', clients.quietCheckpoint(), env));
  return {
    async cost() {
      const took = await eachOf({ asleep, ...watching }, (client) => client.quiet(QUIET_S * 1_000));
      const costs = await eachOf(watching, (_, build) => ((took[build] - took.asleep) / QUIET_S) * 10);
      for (const [build, us] of Object.entries(costs))
        console.log(`watching socket and checkpoint, ${build}: ${us.toFixed(0)} µs CPU in 10 s`);
      return costs;
    },
  };
}

/** Asks all so many times, one after the other and each once in `spacingMs`. What was asked first has nothing before it and is left out. */
async function inTurns(asked, turns, spacingMs) {
  const names = Object.keys(asked);
  const answers = Object.fromEntries(names.map((name) => [name, []]));
  for (let turn = 0; turn <= turns; turn += 1) {
    for (let at = 0; at < names.length; at += 1) {
      const name = names[(turn + at) % names.length];
      const answer = await asked[name].ask();
      if (turn > 0) answers[name].push(answer);
      await sleep(spacingMs / names.length);
    }
  }
  return answers;
}

/** All were told the same: whoever reads the message found the devices, and all others have as many bytes. */
function check(answers) {
  const sizes = new Set(Object.values(answers).flatMap((list) => list.flatMap(({ bytes }) => bytes ?? [])));
  if (sizes.size !== 1) throw new Error(`not all were told the same: ${[...sizes]} bytes`);
  for (const [name, asks] of [
    [LIST, 1],
    [BOTH, 2],
  ]) {
    const { allocations, methods } = answers[name].at(-1);
    if (allocations !== HELD || methods.length !== 2) throw new Error(`${name}: ${allocations} allocations`);
    const [capacity, lists] = methods;
    if (asks === 2 ? capacity !== lists : capacity > lists / 2) throw new Error(`${name}: asked ${capacity} times for the capacity`);
  }
}

function rowsOf(took) {
  const each = ({ call, whole }) => ({ call, whole });
  const atDefault = (kind) => took[LIST][kind].map((list, round) => list + (took[BOTH][kind][round] - list) / LISTS_PER_CAPACITY);
  const all = { ...took, 'the agent, mean at the default interval': each({ call: atDefault('call'), whole: atDefault('whole') }) };
  const floor = { call: median(took[FLOOR].call), whole: median(took[FLOOR].whole) };
  return Object.entries(all).map(([name, { call, whole }]) => ({
    asked: name,
    'the question, µs CPU': summary(call).text,
    'with what follows, µs CPU': summary(whole).text,
    'question / bare HTTP/2': (median(call) / floor.call).toFixed(2),
    'with what follows / bare HTTP/2': (median(whole) / floor.whole).toFixed(2),
  }));
}

/** The same keys with what becomes of each value, all at once. */
async function eachOf(object, become) {
  return Object.fromEntries(await Promise.all(Object.entries(object).map(async ([key, value]) => [key, await become(value, key)])));
}

function mean(list) {
  return list.reduce((sum, value) => sum + value, 0) / list.length;
}
