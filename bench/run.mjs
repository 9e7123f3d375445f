// All benchmarks one after the other: `npm run bench`, or `npm run bench -- refresh flat` for some. Each prints a table and leaves it as
// JSON in bench/results/. Nothing else should run on the machine meanwhile. With `--quick` each does the least that shows that it works;
// its numbers mean little.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** The question that each program answers, and what makes it quick. */
const PROGRAMS = {
  refresh: { question: 'CPU of a refresh, against a scrape of node_exporter', quick: ['--turns=5', '--only=8'] },
  scrape: { question: 'latency and CPU of a scrape, against node_exporter', quick: ['--turns=5', '--only=7'] },
  nvidia: { question: 'a refresh of GPUs, against starting a program that prints the XML', quick: ['--turns=5', '--only=8'] },
  nvlink: {
    question: 'a refresh of 8 GPUs with 18 NVLinks each, against the same GPUs without links',
    quick: ['--turns=1', '--warm-up=20'],
  },
  'fact-to-kubelet': { question: 'from a fact in a file to the kubelet', quick: ['--times=5'] },
  'password-storm': { question: 'scrapes while wrong passwords arrive', quick: ['--seconds=3'] },
  memory: { question: 'RSS, against node_exporter', quick: ['--seconds=3'] },
  commands: { question: 'memory and time of commands beside an agent, in one memory cgroup' },
  wakeups: { question: 'wakeups a minute while nobody asks the agent', quick: ['--settle=2', '--seconds=3'] },
  'in-use': {
    question: 'CPU of the whole agent at the default interval, against node_exporter',
    quick: ['--interval=1', '--settle=3', '--seconds=5'],
  },
  growth: {
    question: 'how the cost grows: with devices, and with the share of values that change',
    quick: ['--devices=0,2', '--shares=1', '--settle=4', '--turns=2'],
  },
  flood: { question: 'CPU in a flood of the kernel log', quick: ['--turns=1', '--seconds=2', '--settle=2'] },
  disk: { question: 'what the agent writes to the disk in a day', quick: ['--interval=1', '--settle=2', '--seconds=3', '--only=everyday'] },
  series: { question: 'series and bytes of a scrape, by the size of the node', quick: ['--only=1 GPU'] },
  flat: { question: '100,000 refreshes: heap, RSS, descriptors', quick: ['--refreshes=1000'] },
  live: {
    question: '50 open pages on 500 devices: CPU, memory, scrapes meanwhile',
    quick: ['--devices=8', '--pages=5', '--seconds=3', '--settle=2', '--interval=1'],
  },
  stalls: {
    question: '512 devices and pods, 10 scrapers, 50 open pages: longest step of the main thread, scrapes, /healthz',
    quick: ['--devices=8', '--scrapers=2', '--pages=5', '--interval=1', '--scrape=1', '--settle=3', '--seconds=5'],
  },
  documents: { question: 'a refresh with 50 CDI specs and 20 metadata files', quick: ['--turns=5', '--rounds=1'] },
  waiting: {
    question: 'CPU and memory of the search for containers that wait, 8 GPUs and 8 HCAs',
    quick: ['--interval=1', '--settle=4', '--seconds=3'],
  },
  hang: { question: 'what a hung probe costs the others', quick: ['--rounds=1', '--hold=3'] },
};

const { values, positionals } = parseArgs({ options: { quick: { type: 'boolean', default: false } }, allowPositionals: true });
const unknown = positionals.filter((name) => !(name in PROGRAMS));
if (unknown.length > 0) throw new Error(`no benchmark is called ${unknown.join(', ')}; there are ${Object.keys(PROGRAMS).join(', ')}`);

/** What takes longer hangs. */
const timeout = values.quick ? 120_000 : 3_600_000;
for (const [name, { question, quick }] of Object.entries(PROGRAMS)) {
  if (positionals.length > 0 && !positionals.includes(name)) continue;
  console.log(`\n${name}: ${question}`);
  const program = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
  const { status, signal } = spawnSync(process.execPath, [program, ...(values.quick ? quick : [])], { stdio: 'inherit', timeout });
  if (status === 0) continue;
  console.error(`${name}: failed with ${signal ?? status}`);
  process.exitCode = 1;
}
