import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import { PROGRAM } from '../support/program.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-path-'));
  chmodSync(directory, 0o755);
});
afterAll(() => rmSync(directory, { recursive: true }));

it('decides neither which program runs nor what a declared program finds', () => {
  const [hostile, families, machine] = ['hostile', 'families', 'machine'].map((name) => join(directory, name)) as [string, string, string];
  for (const path of [hostile, families, join(machine, 'sys/class/tool/tool0')]) mkdirSync(path, { recursive: true, mode: 0o755 });
  const marker = join(directory, 'ran');
  const names = ['nvidia-smi', 'hl-smi', 'neuron-ls', 'neuron-monitor', 'rocm-smi', 'amd-smi', 'xpu-smi', 'nvme', 'cat', 'sh', 'node'];
  for (const name of names) writeFileSync(join(hostile, name), `#!/bin/bash\necho ${name} >> ${marker}\n`, { mode: 0o755 });
  const program = join(directory, 'tool');
  // Its "cat" is the one of the system, and the variables of the agent do not reach it.
  writeFileSync(program, `#!/bin/sh\nenv > ${directory}/env\nprintf '[{"id":"t0","power":12}]' | cat\n`, { mode: 0o755 });
  writeFileSync(
    join(families, 'tool.yaml'),
    `family: tool
summary: Devices of a tool
commands: { ls: { path: ${program}, format: json } }
devices:
  - { kind: card, find: { command: ls }, id: { command: ls, pointer: /id } }
readings:
  - { metric: device_power_watts, command: ls, pointer: /power, labels: { sensor: card } }
`,
    { mode: 0o644 },
  );
  const enabled = Object.keys(familyLoaders).map((name) => `--probe.${name}`);
  const args = [
    'list',
    // Of this machine, also while an agent of somebody else runs on it.
    '--read',
    `--family.dir=${families}`,
    `--path.sysfs=${machine}/sys`,
    `--path.procfs=${machine}/proc`,
    `--path.dev=${machine}/dev`,
  ];
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [PROGRAM, ...args, ...enabled, '--podresources.socket=/none', '--state.file=', '-o', 'json'],
    { encoding: 'utf8', env: { PATH: hostile, BASH_ENV: join(hostile, 'sh'), ENV: join(hostile, 'sh'), NODE_ENV: 'x' } },
  );
  expect([status, stderr]).toEqual([0, expect.any(String)]);
  expect([status, JSON.parse(stdout).devices.map(({ id }: { readonly id: string }) => id)]).toEqual([0, ['t0']]);
  expect(existsSync(marker) ? readFileSync(marker, 'utf8') : '').toBe('');
  const given = readFileSync(join(directory, 'env'), 'utf8')
    .split('\n')
    .map((line) => line.split('=')[0]);
  expect(given.filter((name) => ['BASH_ENV', 'ENV', 'NODE_ENV'].includes(name ?? ''))).toEqual([]);
  expect(readFileSync(join(directory, 'env'), 'utf8')).toMatch(/^PATH=\/usr\/bin:/m);
});
