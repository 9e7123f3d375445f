import { createHash } from 'node:crypto';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { checkDeclaration } from '../../../src/config/families/family-file.ts';
import { familyOf } from '../../../src/probes/declared/family.ts';
import { MOST_VALUES } from '../../../src/probes/declared/source-reader.ts';
import { ACME, acmeFiles, lookAt } from '../../probes/declared/support.ts';
import { buildMachine } from '../../support/machine.ts';
import { type Choose, seeded } from '../../support/seeded.ts';

/** `DECLARATIONS=100000 npx vitest run test/config/families/random-declarations.test.ts`. */
const COUNT = Number(process.env.DECLARATIONS ?? 250);

const machine = buildMachine({ about: '', ...acmeFiles(3) });
afterAll(() => machine.remove());

const shipped = readdirSync('families').filter((name) => name.endsWith('.yaml'));
const texts = [ACME, ...shipped.map((name) => readFileSync(join('families', name), 'utf8'))];
const scalars: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  2 ** 53,
  '',
  '{',
  '{1}',
  '{name}',
  '*',
  '**',
  '#',
  '../..',
  '/',
  '/dev/null',
  '/sys/kernel/debug',
  '/proc/driver/x',
  'a'.repeat(5_000),
  '0xff',
  'constructor',
  '__proto__',
  'device_acme_x_total',
  '1h',
  '999999999d',
  'X1',
  'state',
  'serial',
  'queue*/jobs',
  '\u0000',
  [],
  {},
  [[[]]],
  { file: 'state' },
  { file: 'queue*/*' },
  { link: 'subsystem' },
  { entry: '*' },
  { each: 'line', file: 'state' },
  ['{name}'],
  'class/acme/*',
  'class/*/*',
  'devices/virtual/*/*',
];

/** Changes one place of plain data: another scalar, a missing key, an unknown key, a list that is twice as long. */
function mutated(data: unknown, choose: Choose): unknown {
  if (typeof data !== 'object' || data === null || choose(6) === 0) return scalars[choose(scalars.length)];
  if (Array.isArray(data)) {
    if (data.length === 0) return [scalars[choose(scalars.length)]];
    const at = choose(data.length);
    const kind = choose(5);
    if (kind === 0) return data.filter((_, n) => n !== at);
    if (kind === 1) return [...data, ...data];
    return data.map((item, n) => (n === at ? mutated(item, choose) : item));
  }
  const keys = Object.keys(data);
  const at = keys[choose(Math.max(1, keys.length))];
  const kind = choose(8);
  if (at === undefined || kind === 0) return { ...data, [`x${choose(9)}`]: scalars[choose(scalars.length)] };
  if (kind === 1) return Object.fromEntries(Object.entries(data).filter(([key]) => key !== at));
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, key === at ? mutated(value, choose) : value]));
}

/** Changes the text: a character, a line, an indent. */
function scribbled(text: string, choose: Choose): string {
  const lines = text.split('\n');
  const at = choose(lines.length);
  const line = lines[at] ?? '';
  const column = choose(line.length + 1);
  const signs = ['\t', ':', '-', '&a', '*a', '"', "'", '{', '}', '[', '\u0000', '!!js/function', '---', '%', '|', '? '];
  const changed = [
    line.slice(0, column) + (signs[choose(signs.length)] as string) + line.slice(column + 1),
    '',
    ` ${line}`,
    line.trimStart(),
    `${line}\n${line}`,
  ][choose(5)] as string;
  return lines.map((each, n) => (n === at ? changed : each)).join('\n');
}

function makeText(seed: number): string {
  const choose = seeded(seed);
  const text = texts[choose(2) === 0 ? 0 : choose(texts.length)] as string;
  if (choose(3) === 0) return scribbled(text, choose);
  let data: unknown = parse(text);
  for (let times = 1 + choose(2); times > 0; times -= 1) data = mutated(data, choose);
  return stringify(data);
}

/** All paths, types and contents below a directory. */
function stateOf(directory: string): string {
  const hash = createHash('sha256');
  for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort()) {
    const full = join(directory, path);
    const { mode, mtimeMs } = lstatSync(full);
    hash.update(`${path} ${mode} ${mtimeMs}\n`);
    if (lstatSync(full).isFile()) hash.update(readFileSync(full));
  }
  return hash.digest('hex');
}

describe('random declarations', () => {
  it(`never crash, name the line, and give only what they declare (${COUNT})`, async () => {
    const before = stateOf(machine.root);
    let [valid, wrong] = [0, 0];
    for (let seed = 1; seed <= COUNT; seed += 1) {
      const text = makeText(seed);
      const { declaration, problems } = await checkDeclaration(text);
      if (declaration === undefined) {
        wrong += 1;
        const last = text.split('\n').length;
        expect(problems.length, `seed ${seed}`).toBeGreaterThan(0);
        for (const { line, column, message } of problems) {
          expect(line >= 1 && line <= last && column >= 1, `seed ${seed}: ${line}:${column} of ${last} lines`).toBe(true);
          expect(message, `seed ${seed}`).not.toBe('');
        }
        continue;
      }
      valid += 1;
      // No program of the machine runs: their paths are random too, and a captured output takes their place.
      const commands = Object.entries(declaration.commands ?? {}).map(([name, command]) => [name, { ...command, captured: '/none' }]);
      const family = familyOf({ declaration: { ...declaration, commands: Object.fromEntries(commands) }, origin: 'administrator' });
      const { reports, problems: told } = await lookAt(family, machine.root);
      const labels = new Map(family.metrics.map((metric) => [metric.name, metric.labels]));
      const codes = family.problems.map(({ code }) => code);
      for (const { code } of told) expect(codes, `seed ${seed}`).toContain(code);
      for (const { device, read } of reports) {
        expect(device.id.length, `seed ${seed}`).toBeLessThanOrEqual(128);
        expect(family.kinds, `seed ${seed}`).toContain(device.kind);
        expect(read?.readings.length ?? 0, `seed ${seed}`).toBeLessThanOrEqual(64 * MOST_VALUES);
        for (const { metric, labels: given = {}, value } of read?.readings ?? []) {
          expect(
            Object.keys(given).filter((label) => labels.get(metric)?.includes(label) !== true),
            `seed ${seed}: ${metric}`,
          ).toEqual([]);
          expect(typeof value === 'bigint' || Number.isFinite(value), `seed ${seed}: ${value}`).toBe(true);
        }
        for (const { type, reason } of read?.findings ?? [])
          expect(family.conditions.find((spec) => spec.type === type)?.reasons, `seed ${seed}`).toContain(reason);
      }
    }
    expect([valid > COUNT / 50, wrong > COUNT / 4], `${valid} valid, ${wrong} wrong`).toEqual([true, true]);
    expect(stateOf(machine.root), 'the tree is as it was').toBe(before);
  });
});
