import { spawn } from 'node:child_process';
import { chmodSync, closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../../src/host/process/command.ts';
import { ManualClock } from '../../kubelet/support/manual-clock.ts';
import { DEADLINE_MS, isRunning, until } from '../../support/until.ts';

const directory = mkdtempSync(join(tmpdir(), 'device-agent-command-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Creates a real program. `$0` is its path, and `$0.pid` is a file for a process id. */
function program(name: string, text: string): string {
  const path = join(directory, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

const limits = { deadlineMs: DEADLINE_MS, killAfterMs: 100 };
const short = { deadlineMs: 300, killAfterMs: 100 };

/** Runs a program that writes `$0.pid` once it does what the test is about, and lets its deadline pass then. `isStubborn`: SIGTERM does not end it. */
async function overdue(path: string, isStubborn = false): Promise<Awaited<ReturnType<typeof runCommand>>> {
  const clock = new ManualClock();
  const running = runCommand(path, [], { ...short, clock });
  await until(() => pidIn(`${path}.pid`) > 0, `${path} is at work`);
  clock.advance(short.deadlineMs);
  if (isStubborn) clock.advance(short.killAfterMs);
  return running;
}

const pidIn = (path: string): number => Number(existsSync(path) ? readFileSync(path, 'utf8') : Number.NaN);

describe('runCommand', () => {
  it('returns both outputs and the exit code', async () => {
    const path = program('speaks', 'echo "$1, $2"; echo aside >&2; exit 14');
    expect(await runCommand(path, ['a b', '$HOME'], limits)).toEqual({ stdout: 'a b, $HOME\n', stderr: 'aside\n', exitCode: 14 });
  });

  it('returns the signal that ended the program', async () => {
    expect(await runCommand(program('dies', 'kill -TERM $$'), [], limits)).toEqual({ stdout: '', stderr: '', signal: 'SIGTERM' });
  });

  it('gives the program a fixed environment and none of its own', async () => {
    process.env.OF_THE_AGENT = 'secret';
    const { stdout } = await runCommand(program('environment', 'env'), [], { ...limits, env: { MORE: 'more' } });
    delete process.env.OF_THE_AGENT;
    const names = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.replace(/=.*/, ''));
    // The shell itself adds PWD, SHLVL and _.
    expect(names.filter((name) => !['PWD', 'OLDPWD', 'SHLVL', '_'].includes(name)).sort()).toEqual(['LC_ALL', 'MORE', 'PATH']);
    expect(stdout).toContain('LC_ALL=C\n');
    expect(stdout).toContain('PATH=/usr/bin:/usr/sbin:');
  });

  it('does not search a name in the PATH of the agent', async () => {
    program('only-in-path', 'echo forged');
    program('ls', 'echo forged');
    const before = process.env.PATH;
    process.env.PATH = `${directory}:${before}`;
    const [unknown, known] = [await runCommand('only-in-path', [], limits), await runCommand('ls', ['/'], limits)];
    process.env.PATH = before;
    expect(unknown.failure).toBe('not-found');
    expect(known.stdout).toContain('usr');
  });

  it.each([
    ['a name that is on no path', 'device-agent-no-such-program', 'not-found'],
    ['a path that is not there', join(directory, 'nothing'), 'not-found'],
    ['a path through a file', join(program('a-file', ''), 'below'), 'not-found'],
    ['a directory', directory, 'permission'],
  ])('tells apart why it cannot start: %s', async (_, path, failure) => {
    expect(await runCommand(path, [], limits)).toEqual({ stdout: '', stderr: '', failure });
  });

  it('returns permission for a file that is not executable', async () => {
    const path = program('no-permission', 'exit 0');
    chmodSync(path, 0o644);
    expect(await runCommand(path, [], limits)).toMatchObject({ failure: 'permission' });
  });

  it('returns failed-to-start for a program that is being written', async () => {
    const path = program('busy', 'exit 0');
    const fd = openSync(path, 'r+');
    try {
      expect(await runCommand(path, [], limits)).toMatchObject({ failure: 'failed-to-start' });
    } finally {
      closeSync(fd);
    }
  });

  it('refuses a name with a zero byte instead of throwing', async () => {
    expect(await runCommand('a\0b', [], limits)).toMatchObject({ failure: 'failed-to-start' });
  });

  it('ends a program that sleeps forever, and keeps its output', async () => {
    const path = program('sleeps', 'echo before; echo $$ > "$0.pid"; exec sleep 1000');
    expect(await overdue(path)).toEqual({ stdout: 'before\n', stderr: '', failure: 'timeout', signal: 'SIGTERM' });
  });

  it('kills a program that ignores SIGTERM', async () => {
    const path = program('ignores', 'trap \'\' TERM; echo $$ > "$0.pid"; while :; do sleep 1000; done');
    expect(await overdue(path, true)).toMatchObject({ failure: 'timeout', signal: 'SIGKILL' });
  });

  it('ends a program that prints without end, and holds no more than the limit', async () => {
    const path = program('endless', 'exec yes');
    const result = await runCommand(path, [], { ...limits, maxOutputBytes: 100_000 });
    expect(result.failure).toBe('too-large');
    expect(result.stdout.length).toBeLessThanOrEqual(100_000);
  });

  it('limits each output separately', async () => {
    const path = program('both', 'head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2');
    const result = await runCommand(path, [], { ...limits, maxOutputBytes: 60_000 });
    expect([result.failure, result.stdout.length, result.stderr.length]).toEqual([undefined, 60_000, 60_000]);
  });

  it('returns the whole output of a program that printed much and ended at once', async () => {
    const path = program('much', 'head -c 8000000 /dev/zero');
    expect((await runCommand(path, [], limits)).stdout.length).toBe(8_000_000);
  });

  it('returns even when a grandchild holds the output, and ends the grandchild', async () => {
    const path = program('leaves-one', 'sleep 1000 & echo $! > "$0.pid"; echo done; exit 3');
    expect(await runCommand(path, [], limits)).toEqual({ stdout: 'done\n', stderr: '', exitCode: 3 });
    await until(() => !isRunning(pidIn(`${path}.pid`)));
  });

  it('kills grandchildren at the deadline, even those that ignore SIGTERM and hold no output', async () => {
    const path = program('has-one', '(trap "" TERM; exec sleep 1000) >/dev/null 2>&1 & echo $! > "$0.pid"; sleep 1000');
    expect(await overdue(path, true)).toMatchObject({ failure: 'timeout' });
    await until(() => !isRunning(pidIn(`${path}.pid`)));
  });

  it('registers the process group while it runs', async () => {
    const seen: [string, number][] = [];
    const children = { started: (pid: number) => void seen.push(['started', pid]), ended: (pid: number) => void seen.push(['ended', pid]) };
    const { stdout } = await runCommand(program('tells', 'echo $$'), [], { ...limits, children });
    expect(seen).toEqual([
      ['started', Number(stdout)],
      ['ended', Number(stdout)],
    ]);
    await runCommand(join(directory, 'nothing'), [], { ...limits, children });
    expect(seen).toHaveLength(2);
  });

  it('returns from a program that SIGKILL does not end, and reports its later end', async () => {
    // A killed process that its tracer never collects stays unreaped for its parent, like one that sleeps in the kernel.
    const path = program('unreaped', 'echo $$ > "$0.pid"; exec sleep 1000');
    const clock = new ManualClock();
    const running = runCommand(path, [], { ...short, clock });
    await until(() => pidIn(`${path}.pid`) > 0);
    const ptrace = `
      const { default: koffi } = await import('koffi');
      const ptrace = koffi.load(null).func('long ptrace(long request, int pid, void *address, void *data)');
      console.log(ptrace(0x4206, ${pidIn(`${path}.pid`)}, null, null));
      setInterval(() => {}, 1000);`;
    const tracer = spawn(process.execPath, ['--input-type=module', '-e', ptrace], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const seized = await new Promise<string>((resolve) =>
        tracer.stdout.once('data', (chunk: Buffer) => resolve(chunk.toString().trim())),
      );
      expect(seized, 'this machine lets a process trace another').toBe('0');
      clock.advance(short.deadlineMs);
      clock.advance(short.killAfterMs);
      // What it waits for then is the end of a killed process.
      const turns = setInterval(() => clock.advance(short.killAfterMs), 20);
      const result = await running.finally(() => clearInterval(turns));
      expect(result).toMatchObject({ failure: 'timeout', stillRunning: expect.any(Promise) });
      tracer.kill('SIGKILL');
      await result.stillRunning;
    } finally {
      tracer.kill('SIGKILL');
    }
  });
});
