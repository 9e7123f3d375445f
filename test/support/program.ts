import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import type { Mutant } from '../oracle/mutation.ts';

/** Bundles of earlier sources are kept for runs that still use them. */
const KEPT = 3;
const FOLDER = 'node_modules/.cache/device-agent-programs';

/** The program that tests start: bundled, because that starts in half the time, and is what an image has. Outside of a run of tests: what was built. */
export const PROGRAM = process.env.TEST_PROGRAM ?? 'dist/cli/main.js';

/** What the bundle depends on, by size and time. */
function stateOfSources(): string {
  const names = ['src', 'docs', 'scripts'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
  const hash = createHash('sha256');
  for (const name of [...names, 'package-lock.json', 'package.json'].toSorted()) {
    const { size, mtimeMs } = statSync(name);
    hash.update(`${name} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex').slice(0, 16);
}

/** A copy of this checkout with a known mistake. */
function mistaken({ name, changes }: Mutant): string {
  const copy = resolve(FOLDER, `mistake-${name}`);
  rmSync(copy, { recursive: true, force: true });
  const isLeftOut = /^(?:node_modules|\.git|dist.*|test)$/;
  for (const one of readdirSync('.').filter((each) => !isLeftOut.test(each))) cpSync(one, join(copy, one), { recursive: true });
  symlinkSync(resolve('node_modules'), join(copy, 'node_modules'));
  for (const { file, find, replace } of changes) {
    writeFileSync(
      join(copy, file),
      readFileSync(join(copy, file), 'utf8').replace(find, () => replace),
    );
  }
  execFileSync(process.execPath, ['scripts/bundle.mjs', `${copy}/made`], { cwd: copy, stdio: ['ignore', 'ignore', 'inherit'] });
  return join(copy, 'made/main.js');
}

/** Bundles these sources, unless an earlier run did. */
function bundled(): string {
  const wanted = process.env.ORACLE_MUTANT;
  if (wanted !== undefined) {
    const mutants: readonly Mutant[] = JSON.parse(readFileSync('test/oracle/mutants.json', 'utf8'));
    const mutant = mutants.find(({ name }) => name === wanted);
    if (mutant !== undefined) return mistaken(mutant);
  }
  const target = join(FOLDER, stateOfSources());
  if (!existsSync(target)) {
    mkdirSync(FOLDER, { recursive: true });
    const made = join(FOLDER, `new-${process.pid}`);
    execFileSync(process.execPath, ['scripts/bundle.mjs', made], { stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      renameSync(made, target);
    } catch {
      // Another run was faster.
      rmSync(made, { recursive: true, force: true });
    }
    const times = readdirSync(FOLDER).map((name) => ({ path: join(FOLDER, name), atMs: statSync(join(FOLDER, name)).mtimeMs }));
    for (const { path } of times.toSorted((a, b) => b.atMs - a.atMs).slice(KEPT)) rmSync(path, { recursive: true, force: true });
  }
  return join(target, 'main.js');
}

/** Prepares a run of tests: the program. */
export function setup(): void {
  process.env.TEST_PROGRAM ??= bundled();
}
