// Project: programs. Whole runs of tests.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cacheFolder } from './cache.ts';
import { isRunning, until } from './until.ts';

/** A test that leaves a file, a folder in memory and a process. */
const LITTERING = `
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'vitest';

it('leaves all that it makes', async () => {
  writeFileSync(join(tmpdir(), 'left'), '');
  const memory = mkdtempSync(join(process.env.TEST_MEMORY, 'left-'));
  const { pid } = spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' });
  writeFileSync('made.json', JSON.stringify({ pid, memory, folder: tmpdir() }));
  if (process.env.HOW === 'fails') throw new Error('as it should');
  if (process.env.HOW?.startsWith('SIG')) await new Promise(() => setInterval(() => {}, 1_000));
});
`;

interface Made {
  readonly pid: number;
  readonly memory: string;
  readonly folder: string;
}

/** Starts a run of that test in a folder of its own, with an own folder for temporary files. */
function run(how: string): { child: ChildProcess; ended: Promise<unknown>; temporary: string; made: () => Made | undefined } {
  const root = mkdtempSync(join(cacheFolder(), 'run-'));
  const temporary = mkdtempSync(join(tmpdir(), 'run-'));
  onTestFinished(() => {
    for (const folder of [root, temporary]) rmSync(folder, { recursive: true, force: true });
  });
  writeFileSync(join(root, 'litter.test.mjs'), LITTERING);
  const config = `import { ownRun } from '${resolve('test/support/own-run.ts')}';\nownRun();\nexport default { test: { exclude: [], pool: 'forks', testTimeout: 1e9 } };\n`;
  writeFileSync(join(root, 'vitest.config.mjs'), config);
  const { TEST_RUN: _, TEST_MEMORY: __, ...env } = process.env;
  const child = spawn(process.execPath, [resolve('node_modules/vitest/vitest.mjs'), 'run'], {
    cwd: root,
    env: { ...env, TMPDIR: temporary, HOW: how },
    stdio: 'ignore',
  });
  const file = join(root, 'made.json');
  const made = () => (existsSync(file) && readFileSync(file, 'utf8') !== '' ? (JSON.parse(readFileSync(file, 'utf8')) as Made) : undefined);
  return { child, ended: new Promise((end) => child.once('exit', end)), temporary, made };
}

describe('a run of tests', () => {
  it.each(['passes', 'fails', 'SIGINT', 'SIGTERM', 'SIGKILL'])('that ends in this way leaves nothing: %s', async (how) => {
    const { child, ended, temporary, made } = run(how);
    await until(() => made() !== undefined, 'the test has left what it leaves');
    const { pid, memory, folder } = made() as Made;
    expect(folder.startsWith(`${temporary}/t-`)).toBe(true);
    if (how.startsWith('SIG')) child.kill(how as NodeJS.Signals);
    await ended;
    if (how.startsWith('SIG')) await until(() => readdirSync(temporary).length === 0 && !existsSync(memory), 'it is removed');
    expect([readdirSync(temporary), existsSync(memory)]).toEqual([[], false]);
    await until(() => !isRunning(pid), 'the process has ended');
  });

  it('removes what a run has left that nothing could end, and nothing of one that goes on', async () => {
    const { ended, temporary } = run('passes');
    const start = readFileSync(`/proc/${process.pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[19];
    const living = `t-${process.pid.toString(36)}.${Number(start).toString(36)}`;
    const [dead, again, other] = [`t-${(4_194_305).toString(36)}.abc`, `t-${process.pid.toString(36)}.0`, 't-of-somebody'];
    for (const name of [living, dead, again, other]) mkdirSync(join(temporary, name));
    await ended;
    await until(() => readdirSync(temporary).length < 3, 'the old ones are removed');
    expect(readdirSync(temporary).toSorted()).toEqual([living, other].toSorted());
  });
});
