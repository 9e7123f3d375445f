import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ACME, acmeFiles } from '../probes/declared/support.ts';
import { buildMachine, type Machine } from '../support/machine.ts';
import { PROGRAM } from '../support/program.ts';
import { DEADLINE_MS } from '../support/until.ts';

let directory: string;
let machine: Machine;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-family-'));
  machine = buildMachine({ about: '', ...acmeFiles(2), directories: ['proc', 'dev', 'commands'] });
  writeFileSync(join(directory, 'acme.yaml'), ACME);
});
afterAll(() => {
  machine.remove();
  rmSync(directory, { recursive: true });
});

interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const run = (...args: string[]): Ended => spawnSync(process.execPath, [PROGRAM, ...args], { encoding: 'utf8', timeout: DEADLINE_MS });
const roots = (root: string): string[] => [`--path.sysfs=${root}/sys`, `--path.procfs=${root}/proc`, `--path.dev=${root}/dev`];

describe('device-agent family check', () => {
  it('shows the devices of a tree, their values and the metrics', () => {
    const { status, stdout, stderr } = run('family', 'check', join(directory, 'acme.yaml'), `--root=${machine.root}`);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(/device_temperature_celsius +sensor="core" +45\.3/);
    expect(stdout).toMatch(/CardFailed +- +does not hold +acme0\/state is ok/);
    expect(stdout).toMatch(/device_acme_jobs_total\{device="X1A1",queue="1"\} 101/);
    const json = JSON.parse(run('family', 'check', join(directory, 'acme.yaml'), '--root', machine.root, '-o', 'json').stdout);
    expect(json.devices.map(({ id, isRead, characterDevices }: Record<string, unknown>) => [id, isRead, characterDevices])).toEqual([
      ['X1A0', true, ['/dev/acme0']],
      ['X1A1', true, ['/dev/acme1']],
    ]);
  });

  it('ends with 1 without a device, and with 2 and the line for a wrong file', () => {
    mkdirSync(join(directory, 'empty'));
    expect(run('family', 'check', join(directory, 'acme.yaml'), `--root=${directory}/empty`).status).toBe(1);
    const wrong = join(directory, 'wrong.yaml.txt');
    writeFileSync(wrong, ACME.replace('scale: 0.001', 'scale: tiny'));
    const line = ACME.split('\n').findIndex((text) => text.includes('scale: 0.001')) + 1;
    const { status, stderr } = run('family', 'check', wrong, `--root=${machine.root}`);
    expect(status).toBe(2);
    expect(stderr).toContain(`${wrong}:${line}:12: readings[0].scale must be a number, not "tiny"`);
    expect(run('family', 'check').status).toBe(2);
  });

  it('reads the captured output of a command, and runs no program', () => {
    const file = join(directory, 'tool.yaml.txt');
    const marker = join(directory, 'ran');
    const program = join(directory, 'tool');
    writeFileSync(program, `#!/bin/sh\ntouch ${marker}\n`, { mode: 0o755 });
    writeFileSync(
      file,
      `family: tool
summary: Devices of a tool
commands: { ls: { path: ${program}, format: csv } }
devices:
  - { kind: card, find: { command: ls }, id: { command: ls, column: id } }
readings:
  - { metric: device_power_watts, command: ls, column: power, unit: W, labels: { sensor: card } }
`,
    );
    writeFileSync(join(machine.root, 'commands/ls.txt'), 'id,power\nA1,12.5 W\nA2,unknown W\n');
    const { status, stdout } = run('family', 'check', file, `--root=${machine.root}`, '-o', 'json');
    const { devices, problems } = JSON.parse(stdout);
    expect(devices.map(({ readings }: { readings: { value: number }[] }) => readings.map(({ value }) => value))).toEqual([[12.5], []]);
    expect(problems.map(({ code, device }: Record<string, string>) => [code, device])).toEqual([['value-invalid', 'A2']]);
    expect(status).toBe(1);
    expect(() => execFileSync('test', ['-e', marker])).toThrow();
  });
});

describe('--family.dir', () => {
  it('adds a family with flags, list, schema and check of the configuration', () => {
    const dir = `--family.dir=${directory}`;
    expect(run('list', dir, ...roots(machine.root), '--podresources.socket=/none', '-o', 'json').stdout).toContain('"X1A1"');
    expect(run('family', 'list', dir, '--no-probe.acme').stdout).toMatch(/^acme +declared +no +Acme X1 accelerators$/m);
    const some = run('list', dir, ...roots(machine.root), '--podresources.socket=/none', '--device.exclude=acme/*1', '-o', 'prom').stdout;
    expect(some.match(/^device_present\{.*$/gm)).toEqual(['device_present{device="X1A0"} 1']);
    expect(run('config', 'check', dir)).toMatchObject({ status: 0, stdout: '' });
    const wrong = join(directory, 'z.yaml');
    writeFileSync(wrong, 'family: z1\nsummary: Z\n');
    const { status, stderr } = run('config', 'check', dir);
    rmSync(wrong);
    expect([status, stderr.includes(`${wrong}:1:1: `), stderr.includes('"devices"')]).toEqual([2, true, true]);
  });

  it('prints a schema that accepts the declarations of the package', async () => {
    const { default: ajv } = await import('ajv');
    const { parse } = await import('yaml');
    const { readdirSync, readFileSync } = await import('node:fs');
    const validate = new ajv.Ajv({ allowUnionTypes: true }).compile(JSON.parse(run('family', 'schema').stdout));
    for (const name of readdirSync('families').filter((one) => one.endsWith('.yaml')))
      expect([name, validate(parse(readFileSync(`families/${name}`, 'utf8')))]).toEqual([name, true]);
  });
});

describe('a declared family', () => {
  it('does not block another: a file that hangs, a program that hangs, a program without end', () => {
    const dir = join(directory, 'hostile');
    mkdirSync(dir, { mode: 0o755 });
    writeFileSync(join(dir, 'acme.yaml'), ACME);
    const tree = acmeFiles(1);
    const hostile = buildMachine({
      about: '',
      files: {
        ...tree.files,
        'sys/class/bad/bad0/id': 'B0\n',
        'bin/sleeps': '#!/bin/sh\nsleep 1000\n',
        'bin/endless': '#!/bin/sh\nexec yes\n',
      },
      links: tree.links,
      directories: ['proc', 'dev'],
      fifos: ['sys/class/bad/bad0/value'],
    });
    const commands = `commands:
  sleeps: { path: ${hostile.root}/bin/sleeps, format: json, timeout: 300ms }
  endless: { path: ${hostile.root}/bin/endless, format: json }
`;
    const bad = `family: bad
summary: Hostile devices
${commands}devices:
  - { kind: card, find: { sysfs: 'class/bad/bad#' }, id: { file: id } }
readings:
  - { metric: device_bad_value, help: A value., file: value }
`;
    writeFileSync(join(dir, 'bad.yaml'), bad, { mode: 0o644 });
    const { stdout, status } = run(
      'list',
      `--family.dir=${dir}`,
      ...roots(hostile.root),
      '--podresources.socket=/none',
      '--state.file=',
      '-o',
      'json',
    );
    hostile.remove();
    const { devices, problems } = JSON.parse(stdout);
    expect(status).toBe(0);
    expect(devices.find(({ id }: { id: string }) => id === 'X1A0')).toMatchObject({ health: { state: 'healthy' } });
    const codes = problems
      .filter(({ family }: { family: string }) => family === 'bad')
      .map(({ code, message }: Record<string, string>) => `${code} ${message?.split('/').at(-1)}`);
    expect(codes).toEqual(
      expect.arrayContaining([
        'command-failed sleeps: it took too long',
        'command-failed endless: its output is too large',
        expect.stringContaining('hung'),
      ]),
    );
    expect(problems.filter(({ family }: { family?: string }) => !['bad', undefined].includes(family))).toEqual([]);
  });

  it('leaves a declaration out when others can change it', () => {
    const dir = join(directory, 'open');
    mkdirSync(dir);
    const marker = join(directory, 'marker');
    const program = join(dir, 'tool');
    writeFileSync(program, `#!/bin/sh\ntouch ${marker}\necho '[]'\n`, { mode: 0o755 });
    const text = `family: tool
summary: Devices of a tool
commands: { ls: { path: ${program}, format: json } }
devices:
  - { kind: card, find: { command: ls }, id: { command: ls, pointer: /id } }
`;
    writeFileSync(join(dir, 'tool.yaml'), text);
    execFileSync('chmod', ['666', join(dir, 'tool.yaml')]);
    const list = (): string =>
      run('list', `--family.dir=${dir}`, ...roots(machine.root), '--podresources.socket=/none', '--state.file=', '-o', 'json').stdout;
    expect(list()).not.toContain('Devices of a tool');
    expect(() => execFileSync('test', ['-e', marker])).toThrow();
    const check = run('config', 'check', `--family.dir=${dir}`);
    expect(check).toMatchObject({
      status: 1,
      stdout: expect.stringMatching(/tool\.yaml is not used, because others can change it: .*Make root/),
    });
    const shown = run('family', 'check', join(dir, 'tool.yaml'), ...roots(machine.root));
    expect(shown).toMatchObject({ status: 2, stderr: expect.stringContaining('others can change it') });
    expect(() => execFileSync('test', ['-e', marker])).toThrow();
    writeFileSync(join(dir, 'wrong.yaml'), 'family: [');
    execFileSync('chmod', ['666', join(dir, 'wrong.yaml')]);
    const left = run('config', 'check', `--family.dir=${dir}`);
    expect([left.status, left.stdout.includes('wrong.yaml'), left.stderr.includes('is left out')]).toEqual([1, true, true]);
    execFileSync('rm', [join(dir, 'wrong.yaml')]);
    execFileSync('chmod', ['644', join(dir, 'tool.yaml')]);
    list();
    execFileSync('test', ['-e', marker]);
  });
});
