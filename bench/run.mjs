// All benchmarks one after the other: `npm run bench`, or `npm run bench -- refresh flat` for some. Each compares with its peer in the
// same run, prints a table and leaves it as JSON in bench/results/. Nothing else should run on the machine meanwhile. With `--quick`
// each does the least that shows that it works; its numbers mean little.
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runContained } from './parts/contained.mjs';

/** The question that each program answers, and what makes it quick. */
const PROGRAMS = {
  refresh: {
    question: 'CPU and wall time of a refresh, against a scrape of node_exporter and the bare reads',
    quick: ['--rounds=1', '--trees=1', '--turns=10', '--paced-turns=2', '--only=8'],
  },
  scrape: { question: 'latency and CPU of a scrape, against node_exporter and a static page', quick: ['--quick'] },
  nvidia: {
    question: 'a refresh of GPUs, against spawning a program that prints the XML, and the library called from C',
    quick: ['--rounds=1', '--reads=20', '--starts=3', '--turns=2', '--pause=100'],
  },
  pods: { question: 'decoding and joining a List, against the bare decode', quick: ['--rounds=1', '--turns=10'] },
  'list-call': {
    question: 'what does one List call cost, spaced as in an agent, against the bare request',
    quick: ['--rounds=1', '--turns=10', '--warm=20', '--quiet=2'],
  },
  'fact-to-kubelet': { question: 'from a fact in a file to the kubelet', quick: ['--times=5', '--interval=1s'] },
  start: { question: 'from the start to listening and to a page with all devices, built and bundled', quick: ['--quick'] },
  memory: { question: 'RSS, against node_exporter', quick: ['--rounds=1', '--seconds=3'] },
  'in-use': {
    question: 'CPU of the whole agent at the default interval, against node_exporter',
    quick: ['--interval=1', '--settle=3', '--seconds=5'],
  },
  flat: { question: '100,000 refreshes: heap, RSS, descriptors', quick: ['--refreshes=1000'] },
  hang: {
    question: 'what devices cost that do not answer, one to seven of eight: the others, memory, the way back',
    quick: ['--rounds=1', '--hold=5', '--only=4 of 8 HCAs'],
  },
};

const { values, positionals } = parseArgs({ options: { quick: { type: 'boolean', default: false } }, allowPositionals: true });
const unknown = positionals.filter((name) => !(name in PROGRAMS));
if (unknown.length > 0) throw new Error(`no benchmark is called ${unknown.join(', ')}; there are ${Object.keys(PROGRAMS).join(', ')}`);

/** What takes longer hangs. */
const LIMIT_MS = values.quick ? 120_000 : 3_600_000;
const failed = [];
for (const [name, { question, quick }] of Object.entries(PROGRAMS)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  console.log(`\n${name}: ${question}`);
  const program = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
  const { status, ms } = await runContained(process.execPath, [program, ...(values.quick ? quick : [])], LIMIT_MS);
  console.log(`${name}: ${status === 0 ? 'done' : `failed with ${status}`} after ${Math.round(ms / 1_000)} s`);
  if (status !== 0) failed.push(name);
}
if (failed.length > 0) console.error(`failed: ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
