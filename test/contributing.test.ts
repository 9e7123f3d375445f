import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = readFileSync('CONTRIBUTING.md', 'utf8');
const RECIPES = ['Add a metric', 'Add a condition', 'Add an alert', 'Add a column', 'Add a family'];
/** Files at the top of `src` that start to work when they are loaded: the command, threads, the readers, scripts of the page. */
const ENTRY_POINTS = [
  'cli/main.ts',
  'host/facts-worker.ts',
  'incidents/kernel-worker.ts',
  'kubelet/document-worker.ts',
  'server/access/password-worker.ts',
  'supervisor/reader.ts',
  'web/live.ts',
];

/** The text below a heading, up to the next one. */
const section = (title: string): string => text.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';

/** Steps of a recipe: its file and the names that the file must have. */
const stepsOf = (recipe: string): { step: number; path: string; names: string[] }[] =>
  [...section(recipe).matchAll(/^\| (\d+)\. .* \| `([^`]+)` \|(.*)\|$/gm)].map(([, step, path = '', names = '']) => ({
    step: Number(step),
    path,
    names: [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name as string),
  }));

/** Names of the members of an interface, in order. */
function membersOf(path: string, name: string): string[] {
  const [, body = ''] = readFileSync(path, 'utf8').split(new RegExp(`^export interface ${name}\\b.*\\{$`, 'm'));
  return [...(body.split('\n}')[0] ?? '').matchAll(/^ {2}(?:readonly )?(\w+)\??[:(]/gm)].map(([, member]) => member as string);
}

describe('CONTRIBUTING.md', () => {
  it.each(RECIPES)('"%s" numbers its steps', (recipe) => {
    const steps = stepsOf(recipe).map(({ step }) => step);
    expect(steps.length).toBeGreaterThan(3);
    expect(steps).toEqual(steps.map((_, at) => at + 1));
    expect(section(recipe).match(/^\| \d+\./gm)).toHaveLength(steps.length);
  });

  it.each(RECIPES.flatMap((recipe) => stepsOf(recipe).map((step) => ({ recipe, ...step }))))(
    '"$recipe", step $step: $path has $names',
    ({ path, names }) => {
      expect(existsSync(path)).toBe(true);
      const content = readFileSync(path, 'utf8');
      expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(content))).toEqual([]);
    },
  );

  it('describes each member of a family, and no other', () => {
    const rows = [...section('Add a family').matchAll(/^\| (`.*?`) \| (?:data|optional|function) \|/gm)];
    const named = rows.flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
    expect(named.toSorted()).toEqual(membersOf('src/probes/family.ts', 'DeviceFamily').toSorted());
  });

  it('describes each member of a report, of a simulation and of an oracle', () => {
    const [, report = ''] = /^- A report is `\{ (.*) \}`/m.exec(text) ?? [];
    expect(report.replaceAll('?', '').split(', ')).toEqual(membersOf('src/model/collection.ts', 'DeviceReport'));
    const rowsOf = (title: string): (string | undefined)[] =>
      [...section(title).matchAll(/^\| (`.*?`) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)/g)].map(([, name]) => name));
    expect(rowsOf('The simulated node')).toEqual(membersOf('src/sim/family-simulation.ts', 'FamilySimulation'));
    expect(['family', ...rowsOf('The oracle')].toSorted()).toEqual(membersOf('test/oracle/family.ts', 'OracleFamily').toSorted());
  });

  it('lists the floors', () => {
    const [, table = ''] = /const FLOORS.*= \{\n([^}]*)\}/.exec(readFileSync('test/floors.test.ts', 'utf8')) ?? [];
    const floors = [...table.matchAll(/^ {2}'?([\w.]+)'?: (\d),$/gm)].map(([, folder, floor]) => `${folder} ${floor}`);
    const [, list = ''] = /imports point down: (.*?)\. Folders/s.exec(section('Where things go')) ?? [];
    const listed = list.split(' · ').flatMap((floor) => {
      const [, number] = / (\d)$/.exec(floor) ?? [];
      return [...floor.matchAll(/`([\w.]+)`/g)].map(([, folder]) => `${folder} ${number}`);
    });
    expect(listed.toSorted()).toEqual(floors.toSorted());
  });

  it('says which modules work at import time', () => {
    const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
    const STATEMENT =
      /^(?:await |void |for |if |try |[\w.]+\??\.?\w*\((?!\) \{)|const .* = (?:await|\w+FileSync\()|export const .* = await)/m;
    const working = files.filter((path) => {
      const code = readFileSync(`src/${path}`, 'utf8').replaceAll(/`[^`]*`/g, '``');
      return STATEMENT.test(code);
    });
    expect(working.filter((path) => !path.startsWith('generated/')).toSorted()).toEqual(ENTRY_POINTS);
  });

  it('names folders and files of tests that exist', () => {
    const named = [...section('Where tests go').matchAll(/`((?:test|scripts)\/[\w./-]+)`/g)].map(([, path]) => path as string);
    expect(named.length).toBeGreaterThan(8);
    expect(named.filter((path) => !existsSync(path))).toEqual([]);
  });
});
