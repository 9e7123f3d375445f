import { type ChildProcessByStdio, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { familyLoaders } from '../../src/probes/families.ts';
import { PseudoTerminal } from '../support/pseudo-terminal.ts';
import { MAIN, run } from './command-line.ts';

let folder: string;
let flags: string[];
const children: ChildProcessByStdio<null, Readable, null>[] = [];
const terminals: PseudoTerminal[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-list-'));
  for (const path of ['sys/class/infiniband', 'proc', 'dev']) mkdirSync(join(folder, path), { recursive: true });
  flags = [
    ...['sysfs', 'procfs', 'dev'].map((path, at) => `--path.${path}=${folder}/${['sys', 'proc', 'dev'][at]}`),
    `--podresources.socket=${folder}/kubelet.sock`,
    '--podresources.checkpoint=',
    '--log.level=error',
    '--refresh.interval=1s',
    ...Object.keys(familyLoaders)
      .filter((family) => family !== 'infiniband')
      .map((family) => `--no-probe.${family}`),
  ];
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const terminal of terminals.splice(0)) terminal.kill();
  rmSync(folder, { recursive: true, force: true });
});

/** An HCA as sysfs shows it. */
function makePort(name: string): string {
  const port = join(folder, 'sys/class/infiniband', name, 'ports/1');
  mkdirSync(port, { recursive: true });
  writeFileSync(join(folder, 'sys/class/infiniband', name, 'node_type'), '1: CA\n');
  writeFileSync(join(port, 'state'), '4: ACTIVE\n');
  return port;
}

describe('list -o', () => {
  it('yaml has what json has', async () => {
    makePort('mlx5_0');
    const [json, yaml] = await Promise.all([run(['list', '-o', 'json', ...flags]), run(['list', '-o', 'yaml', ...flags])]);
    const times = /"?(now|takenAt|readAt|since|startedAt|lastSuccessAt)"?: "?\d{4}-[^",\n]*"?/g;
    expect(parse(yaml.stdout.replace(times, '$1: x'))).toEqual(parse(json.stdout.replace(times, '"$1": "x"')));
    expect(parse(yaml.stdout)).toMatchObject({ devices: [{ id: 'mlx5_0' }], allocations: [] });
  });

  it('wide has more columns', async () => {
    makePort('mlx5_0');
    const { stdout } = await run(['list', '-o', 'wide', ...flags]);
    expect(stdout).toMatch(/^STATE +FOR +DEVICE +HELD BY .* KIND\n.* mlx5_0 /);
    expect((await run(['list', ...flags])).stdout).not.toContain('KIND');
  });

  it.each([
    ['--by=pod', '--by'],
    ['-w', '--watch'],
  ])('json refuses %s, which shapes tables', async (flag, named) => {
    const { status, stderr } = await run(['list', '-o', 'json', flag, ...flags]);
    expect([status, stderr.split('\n')[0]]).toEqual([2, `device-agent: flag ${named}: cannot be used with -o json`]);
  });

  it('refuses a group that it does not know', async () => {
    const { status, stderr } = await run(['list', '--by=rack', ...flags]);
    expect([status, stderr.split('\n')[0]]).toEqual([
      2,
      "device-agent: option '--by <group>' argument 'rack' is invalid. Allowed choices are device, pod, placement.",
    ]);
  });
});

describe('list -w', () => {
  it('appends the table when it changed, with a line of time, and ends by a signal', async () => {
    makePort('mlx5_0');
    const child = spawn(process.execPath, [MAIN, 'list', '-w', ...flags], {
      env: { PATH: process.env.PATH },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    let text = '';
    let look = (): void => {};
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      look();
    });
    const until = (pattern: RegExp): Promise<void> =>
      new Promise((resolve) => {
        look = () => pattern.test(text) && resolve();
        look();
      });
    const ended = new Promise((resolve) => child.once('exit', (status, signal) => resolve([status, signal])));
    await until(/ mlx5_0 /);
    makePort('mlx5_1');
    await until(/ mlx5_1 /);
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(text).toMatch(
      /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z\nSTATE .*\n.* mlx5_0 .*\n[\s\S]*\nSTATE .*\n.* mlx5_[01] .*\n.* mlx5_[01] .*\n[\s\S]*\n\n$/,
    );
    expect(text).not.toContain('\u001b');
  });

  it('rewrites the table in place on a terminal, and leaves out what does not fit', async () => {
    for (let at = 0; at < 9; at += 1) makePort(`mlx5_${at}`);
    const terminal = new PseudoTerminal({ columns: 30, rows: 8 }, [process.execPath, MAIN, 'list', '-w', ...flags], { TERM: 'xterm' });
    terminals.push(terminal);
    const screen = await terminal.until(/more lines/);
    expect(screen).toMatch(/^\d{4}-.*Z\nSTATE +DEVICE +HELD BY\n(?:\w+ +mlx5_\d .*\n)+… \d+ more lines; "device-agent…\n\n$/);
    rmSync(join(folder, 'sys/class/infiniband/mlx5_0'), { recursive: true });
    expect(await terminal.until(/^Missing +mlx5_0/m)).toMatch(/^\d{4}-.*Z\nSTATE .*\nMissing +mlx5_0.*\n(?:\w+ +mlx5_\d.*\n)+… \d+ more/);
    terminal.type('\u0003');
    expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
  });
});

describe('progress', () => {
  it('is told on a terminal for what takes long, and taken away at the end', async () => {
    // Reading them never ends, and each costs a second.
    for (const name of ['mlx5_0', 'mlx5_1', 'mlx5_2', 'mlx5_3']) {
      const state = join(makePort(name), 'state');
      rmSync(state);
      execFileSync('mkfifo', [state]);
    }
    const slow = [...flags.filter((flag) => !flag.startsWith('--refresh')), '--refresh.interval=10s', '--refresh.timeout=10s'];
    const terminal = new PseudoTerminal({ columns: 100, rows: 30 }, [process.execPath, MAIN, 'list', ...slow], { TERM: 'xterm' });
    terminals.push(terminal);
    await terminal.until(/^reading the devices … [2-9] s$/m);
    expect(await terminal.ended).toMatchObject({ how: 'exit', number: 0 });
    expect(terminal.screen()).toMatch(/^STATE /);
    expect(terminal.screen()).not.toContain('reading the devices');
  });
});
