import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PseudoTerminal } from '../../support/pseudo-terminal.ts';
import { MAIN } from '../command-line.ts';

const SIZE = { columns: 160, rows: 40 };
const ENVIRONMENT = { TERM: 'xterm-256color', LANG: 'C.UTF-8', NO_COLOR: '1' };

let folder: string;
let demo: ChildProcessByStdio<null, Readable, Readable>;
let told = '';
const terminals: PseudoTerminal[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-top-'));
  const small = ['--sim.devices=nvidia=2,infiniband=2,infiniband.vf=2,fpga=1', '--sim.pods=4', '--refresh.interval=500ms'];
  demo = spawn(process.execPath, [MAIN, 'demo', ...small, `--web.listen-address=${folder}/web.sock`, '--log.level=error'], {
    env: { PATH: process.env.PATH, TMPDIR: folder, DEVICE_AGENT_STATE_FILE: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await new Promise<void>((resolve, reject) => {
    demo.stdout.setEncoding('utf8').on('data', (text: string) => {
      told += text;
      if (told.includes('Ctrl-C')) resolve();
    });
    demo.once('exit', () => reject(new Error(told)));
  });
});
afterAll(() => {
  for (const terminal of terminals) terminal.kill();
  demo.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

function top(...flags: string[]): PseudoTerminal {
  const terminal = new PseudoTerminal(SIZE, [process.execPath, MAIN, 'top', ...flags], { DEVICE_AGENT_STATE_FILE: '', ...ENVIRONMENT });
  terminals.push(terminal);
  return terminal;
}

/** Names of the rows. States, holders and readings change from moment to moment. */
const DEVICES = [/GPU 0 /, /GPU 1 /, /mlx5_0 /, /mlx5_1 /, /└ mlx5_2 /, /└ mlx5_3 /];

describe('top on the demo', () => {
  it('shows what the agent has, and what happened when the agent ends', async () => {
    const terminal = top(`--web.listen-address=${folder}/web.sock`);
    const screen = await terminal.until(/^kubelet answers · .*nvidia works?[\s\S]*GPU 0 +\S+\/[\s\S]* Busy /m);
    expect(screen).toMatch(/^.+ \S+ · \d\d:\d\d:\d\d UTC, [\d.]+ s ago$/m);
    expect(screen).toMatch(/^\d+ devices: .+\nkubelet answers · .* · agent at .*\/web\.sock/m);
    for (const name of DEVICES) expect(screen).toMatch(name);
    expect(screen).toMatch(/GPU 0 +\S+\/\S+ +\S+ Busy +[\d.]+ %/);
    terminal.type('/GPU\r\r');
    await terminal.until(/^ {2}UUID +GPU-/m);
    demo.kill('SIGINT');
    await terminal.until(/! The agent does not answer since/);
    terminal.type('q');
    expect(await terminal.ended).toEqual({ how: 'exit', number: 0, areModesRestored: true });
  });
});
