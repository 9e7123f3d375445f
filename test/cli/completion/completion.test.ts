import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commands } from '../../../src/cli/commands.ts';
import { run } from '../command-line.ts';

let folder: string;
let script: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-completion-'));
  script = join(folder, 'device-agent.bash');
  const { stdout, status } = await run(['completion', 'bash']);
  expect(status).toBe(0);
  writeFileSync(script, stdout);
  writeFileSync(join(folder, 'a-file.yaml'), '');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a real bash offers for a line whose last word is being typed. `=` is a word of its own there. */
function offered(...words: string[]): string[] {
  const line = ['device-agent', ...words].map((word) => `'${word}'`).join(' ');
  const text = `source ${script}; COMP_WORDS=(${line}); COMP_CWORD=${words.length}; _device_agent; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['--norc', '-c', text], { encoding: 'utf8', cwd: folder })
    .split('\n')
    .filter((word) => word !== '');
}

describe('completion of bash', () => {
  it('is registered for the command', () => {
    const text = `source ${script}; complete -p device-agent`;
    expect(execFileSync('bash', ['--norc', '-c', text], { encoding: 'utf8' })).toBe('complete -F _device_agent device-agent\n');
  });

  it('offers every command', () => {
    const names = [...new Set(commands.map(({ name }) => name.split(' ')[0]))];
    expect(offered('')).toEqual(names);
    expect(offered('con')).toEqual(['config']);
    expect(offered('config', '')).toEqual(['check', 'print', 'schema']);
  });

  it.each(commands.map((command) => [command.name, command] as const))('offers the flags of %s', (name, { options = [], formats }) => {
    const flags = offered(...name.split(' '), '-');
    expect(flags).toEqual(expect.arrayContaining(['--log.level=', '--no-probe.fpga', '--help']));
    if (formats !== undefined) expect(flags).toEqual(expect.arrayContaining(['-o', '--output=']));
    for (const { flags: declared } of options) {
      const [flag = ''] = /--[\w-]+/.exec(declared) ?? [];
      expect(flags.map((one) => one.replace(/=$/, ''))).toContain(flag);
    }
    expect(flags.includes('--sim.devices=')).toBe(name === 'demo');
  });

  it.each([
    [
      ['list', '--by', '=', ''],
      ['device', 'pod'],
    ],
    [
      ['list', '--by', '='],
      ['device', 'pod'],
    ],
    [
      ['list', '--by', ''],
      ['device', 'pod'],
    ],
    [['top', '--by', '=', 'n'], ['node']],
    [['list', '-o', 'w'], ['wide']],
    [
      ['health', '-o', 't'],
      ['text', 'taint-rule'],
    ],
    [['--log.level', '=', 'd'], ['debug']],
    [['--log.level', 'debug', 'to'], ['top']],
    [['--log.level', '=', 'debug', 'to'], ['top']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['list', '--config.file', '=', 'a-'], ['a-file.yaml']],
    [['family', 'check', 'a-'], ['a-file.yaml']],
    [['usage', '--by', '=', 'label'], ['label:']],
    [['list', ''], []],
    [['completion', 'bash', ''], []],
  ])('of %j offers %j', (words, expected) => {
    expect(offered(...words)).toEqual(expected);
  });
});

describe('completion of other shells', () => {
  it.each(['zsh', 'fish'])('of %s names every command and choice', async (shell) => {
    const { stdout } = await run(['completion', shell]);
    for (const { name, options = [], formats = [] } of commands) {
      for (const word of name.split(' ')) expect(stdout).toContain(word);
      for (const value of [...formats, ...options.flatMap(({ choices = [] }) => choices)]) expect(stdout).toContain(value);
    }
    expect(stdout).toContain('log.level');
  });

  it('says which shells there are', async () => {
    expect(await run(['completion'])).toMatchObject({ status: 2, stderr: expect.stringContaining('a shell is needed: bash, zsh, fish') });
    expect(await run(['completion', 'csh'])).toMatchObject({ status: 2, stderr: expect.stringContaining('no completion for "csh"') });
  });
});
