// Gives hostile inputs to every parser and format: npm run fuzz -- [--only=NAME,…] [--inputs=10000] [--seed=1]
// Each target runs in a process of its own, which a hang or a crash ends. The same seed repeats the same inputs. A failing input is kept in
// test/fuzz/cases, and from then on the tests replay it.
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { targets } from './targets.mjs';

const { values } = parseArgs({
  options: { only: { type: 'string' }, inputs: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});
const names = values.only?.split(',') ?? Object.keys(targets);
/** An input that takes longer hangs. */
const DEADLINE_MS = 20_000;
/** The memory limit of deploy/kustomize/base/manifests.yaml. */
const LIMIT_MIB = 256;
const MOST_FAILURES = 20;

console.log(`seed ${values.seed}, ${values.inputs} inputs for each target`);
console.log('| target | inputs | failures | seconds | highest RSS MiB |\n|---|---|---|---|---|');
let failures = 0;
for (const name of names) {
  if (targets[name] === undefined) throw new Error(`no target ${name}; there are ${Object.keys(targets).join(', ')}`);
  failures += await run(name);
}
process.exitCode = failures === 0 ? 0 : 1;

async function run(name) {
  const startedMs = performance.now();
  let [from, count, highest] = [0, 0, 0];
  while (from < Number(values.inputs)) {
    const end = await runFrom(name, from);
    highest = Math.max(highest, end.rssMiB);
    from = end.next;
    if (end.failure === undefined) continue;
    count += 1;
    keep(name, end.failure);
    if (count === MOST_FAILURES) break;
  }
  if (highest > LIMIT_MIB) {
    console.log(`${name}: memory above ${LIMIT_MIB} MiB`);
    count += 1;
  }
  console.log(`| ${name} | ${from} | ${count} | ${((performance.now() - startedMs) / 1_000).toFixed(0)} | ${highest.toFixed(0)} |`);
  return count;
}

/** Runs a target until its inputs or its process end. */
function runFrom(name, from) {
  const child = fork(new URL('child.mjs', import.meta.url), [name, values.seed, String(from), values.inputs], {
    execArgv: ['--max-old-space-size=400', '--expose-gc'],
  });
  return new Promise((resolve) => {
    let current;
    let rssMiB = 0;
    let timer = setTimeout(() => late(), DEADLINE_MS);
    const end = (failure) => {
      clearTimeout(timer);
      child.removeAllListeners();
      child.kill('SIGKILL');
      resolve({
        next: (current?.at ?? Number(values.inputs)) + 1,
        rssMiB,
        ...(failure === undefined ? {} : { failure: { ...current, reason: failure } }),
      });
    };
    const late = () => end(`no end within ${DEADLINE_MS} ms`);
    child.on('message', (message) => {
      clearTimeout(timer);
      timer = setTimeout(late, DEADLINE_MS);
      rssMiB = Math.max(rssMiB, message.rssMiB ?? 0);
      if (message.failure !== undefined) end(message.failure);
      else if (message.done) {
        if (message.summary !== undefined) console.log(`${name}: ${message.summary}`);
        current = { at: Number(values.inputs) - 1, input: '' };
        end();
      } else current = message;
    });
    child.once('exit', (code, signal) => {
      if (current === undefined) throw new Error(`the target ${name} cannot start`);
      end(`the process ended with ${signal ?? code}`);
    });
  });
}

function keep(target, { at, input, reason }) {
  const text = JSON.stringify({ target, reason: reason.split('\n')[0], input }, null, 2);
  const file = `test/fuzz/cases/${target}-${createHash('sha256').update(input).digest('hex').slice(0, 12)}.json`;
  mkdirSync('test/fuzz/cases', { recursive: true });
  writeFileSync(file, `${text}\n`);
  console.log(`${target}, seed ${values.seed}, input ${at}: ${reason.split('\n').slice(0, 12).join('\n')}\n  kept in ${file}`);
}
