// Puts each mistake back and runs histories until one fails: node scripts/test-mutants.mjs [histories] [name ...]
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const mutants = JSON.parse(readFileSync(new URL('../test/oracle/mutants.json', import.meta.url), 'utf8'));
const [histories = '1000', ...names] = process.argv.slice(2);
let missed = 0;
for (const { name, family, test = `test/probes/${family}/oracle.test.ts` } of mutants.filter(
  (one) => names.length === 0 || names.includes(one.name),
)) {
  const env = { ...process.env, ORACLE_MUTANT: name, ORACLE_HISTORIES: histories };
  const { status, stdout, stderr } = spawnSync('npx', ['vitest', 'run', '--bail=1', '--retry=0', test], {
    env,
    encoding: 'utf8',
  });
  const text = stripVTControlCharacters(stdout + stderr);
  if (family === undefined) {
    // A mistake can also end in an error of the code that meets it.
    const [found] = (status === 0 ? null : /\w*Error: [^\n]*/.exec(text.slice(text.indexOf('Failed Tests')))) ?? [];
    if (found === undefined) missed += 1;
    console.log(`${name}: ${found ?? `NOT FOUND by ${test}`}`);
    continue;
  }
  const [, seed, what, how] = /seed (\d+)(?:, pace \d+ ms)?: ([^\n]*)\n((?:.|\n)*?)(?=\n ❯)/.exec(text) ?? [];
  if (seed === undefined) missed += 1;
  console.log(
    seed === undefined
      ? `${name}: NOT FOUND in ${histories} histories`
      : `${name}: seed ${seed}: ${what}\n    ${how.replaceAll('\n', '\n    ')}`,
  );
}
process.exitCode = missed === 0 ? 0 : 1;
