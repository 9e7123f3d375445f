import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { folderInMemory } from '../../support/folder-in-memory.ts';
import { buildMachine } from '../../support/machine.ts';
import { declaredFamily, lookAt } from './support.ts';

function machine(files: Readonly<Record<string, string>>): string {
  const built = buildMachine({ about: '', files });
  onTestFinished(() => built.remove());
  return built.root;
}

const codes = ({ problems }: Collection): readonly string[] => [...new Set(problems.map(({ code }) => code))];
const HEAD = `family: bomb
summary: Many series
`;
const CARD = `devices:
  - { kind: card, find: { sysfs: 'class/bomb/bomb#' }, id: '{name}' }
`;

describe('a declaration that names too much', () => {
  it('reads 256 of 100,000 files that its glob matches, as values, names and devices', async () => {
    const root = folderInMemory('device-agent-many-');
    onTestFinished(() => rmSync(root, { recursive: true }));
    const many = join(root, 'sys/class/bomb/bomb0/many');
    mkdirSync(many, { recursive: true });
    for (let n = 0; n < 100_000; n += 1) writeFileSync(join(many, `v${n}`), '1\n');
    const family = await declaredFamily(`${HEAD}${CARD}readings:
  - { metric: device_bomb_value, help: A value., file: 'many/v#', labels: { n: '{1}' } }
  - { metric: device_bomb_name, help: A name., entry: 'many/v#', labels: { n: '{1}' } }
conditions:
  - { type: Odd, severity: info, meaning: Odd., remedy: none, source: test, file: 'many/v*', above: 0 }
`);
    const values = await lookAt(family, root);
    expect(values.reports[0]?.read?.readings).toHaveLength(512);
    expect(values.reports[0]?.read?.findings).toHaveLength(256);
    expect(values.problems.map(({ code, message }) => `${code} ${message.split('/').at(-1)}`)).toEqual([
      'too-many-values v# has more than 256 values',
      'too-many-values v# has more than 256 values',
      'too-many-values v* has more than 256 values',
    ]);
    const devices = await lookAt(
      await declaredFamily(`${HEAD}devices:\n  - { kind: card, find: { sysfs: 'class/bomb/bomb0/many/v#' }, id: '{name}' }\n`),
      root,
    );
    expect([devices.reports.length, devices.listing, codes(devices)]).toEqual([1_024, 'partial', ['too-many-devices']]);
  });

  it('says that lines, cells and rows are left out', async () => {
    const rows = Array.from({ length: 1_100 }, (_, n) => ({
      id: `r${n}`,
      cells: n === 0 ? Array.from({ length: 300 }, (__, m) => m) : [],
    }));
    const root = machine({
      'sys/class/bomb/bomb0/lines': Array.from({ length: 300 }, (_, n) => `k${n} 1\n`).join(''),
      'bin/rows.json': JSON.stringify(rows),
      'bin/rows': '#!/bin/sh\nexec cat "$0.json"\n',
    });
    const lines = await lookAt(
      await declaredFamily(`${HEAD}${CARD}readings:
  - { metric: device_bomb_value, help: A value., file: lines, each: line, labels: { key: '{key}' } }
`),
      root,
    );
    expect([lines.reports[0]?.read?.readings.length, codes(lines)]).toEqual([256, ['too-many-values']]);
    const cells = await lookAt(
      await declaredFamily(`${HEAD}commands: { ls: { path: ${root}/bin/rows, format: json } }
devices:
  - { kind: card, find: { command: ls }, id: { command: ls, pointer: /id } }
conditions:
  - { type: Odd, severity: info, meaning: Odd., remedy: none, source: test, command: ls, pointer: /cells, above: 0 }
`),
      root,
    );
    expect([cells.reports.length, cells.listing]).toEqual([1_024, 'partial']);
    expect(codes(cells)).toEqual(expect.arrayContaining(['too-many-devices', 'too-many-values']));
  });
});
