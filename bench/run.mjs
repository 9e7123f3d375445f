// All benchmarks one after the other: `npm run bench`, or `npm run bench -- refresh flat` for some. Each compares with its peer in the
// same run, prints a table and leaves it as JSON in bench/results/. Nothing else should run on the machine meanwhile.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Name of the program, and the question that it answers. */
const QUESTIONS = {
  refresh: 'CPU and wall time of a refresh, against a scrape of node_exporter and the bare reads',
  scrape: 'latency and CPU of a scrape, against node_exporter and a static file',
  nvidia: 'a refresh of GPUs, against spawning a program that prints the XML, and the library called from C',
  pods: 'decoding and joining a List, against the bare decode',
  'fact-to-kubelet': 'from a fact in a file to the kubelet',
  memory: 'RSS, against node_exporter',
  flat: '100,000 refreshes: heap, RSS, descriptors',
};

const wanted = process.argv.slice(2);
let failed = 0;
for (const [name, question] of Object.entries(QUESTIONS)) {
  const program = fileURLToPath(new URL(`${name}.mjs`, import.meta.url));
  if ((wanted.length > 0 && !wanted.includes(name)) || !existsSync(program)) continue;
  console.log(`\n${name}: ${question}`);
  const [status] = await once(spawn(process.execPath, [program], { stdio: 'inherit' }), 'exit');
  if (status !== 0) failed += 1;
}
process.exitCode = failed === 0 ? 0 : 1;
