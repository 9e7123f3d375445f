import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadFamilies } from '../../src/config/sections.ts';
import { everyMetric } from '../../src/metrics/series/every-metric.ts';
import { createCatalogue } from '../../src/metrics/series/reading-metrics.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { type ChangelogVersion, parseChangelog } from '../support/changelog.ts';
import { markProblem } from '../support/deprecations.ts';
import { contractLine, contractOf, contractProblems, type PromisedMetric } from './contract.ts';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

/** Each metric that the agent can export. */
async function declared(): Promise<readonly PromisedMetric[]> {
  return everyMetric(createCatalogue(await loadFamilies(familyLoaders)))
    .map(({ name, type, labels, deprecated }) => ({
      name,
      type,
      labels,
      ...(deprecated === undefined ? {} : { deprecated: deprecated.since }),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

describe('the contract of metric names', () => {
  const promised = contractOf(read('contract.txt'));

  it('keeps every name with its type, its labels and its mark', async () => {
    const now = new Map((await declared()).map((metric) => [metric.name, metric]));
    const broken = [...promised.values()].filter(({ name, type, labels, deprecated }) => {
      const is = now.get(name);
      return is?.type !== type || is.deprecated !== deprecated || !labels.every((label) => is.labels.includes(label));
    });
    expect(broken).toEqual([]);
  });

  it('has every metric that is declared (a new one: add its line to contract.txt)', async () => {
    const known = new Set(read('contract.txt').trim().split('\n'));
    expect((await declared()).map(contractLine).filter((line) => !known.has(line))).toEqual([]);
  });

  it('follows the naming rules of Prometheus', async () => {
    for (const { name, type } of await declared()) {
      expect(name).toMatch(/^(?:container_)?device_[a-z0-9_]+$|^(?:container|pod)_exclusive_[a-z_]+$/);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    }
  });
});

describe('a change of the contract since the last release', () => {
  const { versions } = parseChangelog(readFileSync('CHANGELOG.md', 'utf8'));
  const { version: working } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
  const released = versions.flatMap(({ name, date }) => (date === undefined ? [] : [name]));

  it('is told in the changelog, and nothing goes that was not marked for two minor versions', () => {
    const [before, after] = [contractOf(read('contract-released.txt')), contractOf(read('contract.txt'))];
    expect(contractProblems(before, after, versions[0], { released, working })).toEqual([]);
  });

  it('marks metrics with a version, and only until they must go', async () => {
    const marks = [
      ...everyMetric(createCatalogue(await loadFamilies(familyLoaders))).flatMap(({ name, deprecated }) =>
        deprecated === undefined ? [] : [{ name, ...deprecated }],
      ),
    ];
    const lines = versions.flatMap(({ sections }) => sections.get('Deprecated') ?? []);
    const problems = marks.flatMap(({ name, since }) => [
      ...[markProblem(since, released, working)].filter((problem) => problem !== undefined).map((problem) => `${name}: ${problem}`),
      ...(lines.some((line) => line.includes(`\`${name}\``)) ? [] : [`${name}: no line below Deprecated`]),
    ]);
    expect(problems).toEqual([]);
  });
});

describe('what the comparison finds', () => {
  const BEFORE =
    'device_a gauge device\ndevice_b_total counter device,kind\ndevice_b_info gauge device\ndevice_old gauge device deprecated=0.2';
  const history = { released: ['0.3.0', '0.2.1', '0.2.0', '0.1.0'], working: '0.4.0' };
  const later = { released: ['0.4.0', ...history.released], working: '0.5.0' };
  /** The problems when `now` follows, and these lines are in the changelog. */
  const found = (now: string, lines: Readonly<Record<string, string>> = {}, at = history): readonly string[] => {
    const unreleased: ChangelogVersion = {
      name: 'Unreleased',
      sections: new Map(Object.entries(lines).map(([name, line]) => [name, [line]])),
    };
    return contractProblems(contractOf(BEFORE), contractOf(now), unreleased, at);
  };
  const without = (name: string): string =>
    BEFORE.split('\n')
      .filter((line) => !line.startsWith(`${name} `))
      .join('\n');
  const untold = (name: string, what: string, place: string): string =>
    `${name} ${what}: no line of CHANGELOG.md has it in backquotes below ${place}`;

  it('is nothing without a change', () => {
    expect(found(BEFORE)).toEqual([]);
  });

  it('is a new name without a line, and no line has it that only begins alike', () => {
    const now = `${BEFORE}\ndevice_new gauge`;
    expect(found(now, { Added: 'x: `device_new_total`, device_new.' })).toEqual([untold('device_new', 'is new', 'Unreleased')]);
    expect(found(now, { Added: 'x: `device_new{kind}`.' })).toEqual([]);
  });

  it('is a removed name that was not marked, or not for long enough, or whose line is elsewhere', () => {
    const early = 'device_a is gone: it was not marked as deprecated before';
    expect(found(without('device_a'), { Removed: 'x: `device_a`.' })).toEqual([early]);
    expect(found(without('device_old'), { Removed: 'x: `device_old`.' })).toEqual(['device_old is gone: it was marked only in 0.2']);
    expect(found(without('device_old'), { Changed: 'x: `device_old`.' }, later)).toEqual([untold('device_old', 'is gone', 'Removed')]);
    expect(found(without('device_old'), { Removed: 'x: `device_old`.' }, later)).toEqual([]);
  });

  it.each([
    ['another type', BEFORE.replace('device_a gauge', 'device_a counter'), 'device_a', 'is a counter', 'Changed'],
    ['a label that is gone', BEFORE.replace('device,kind', 'device'), 'device_b_total', 'has the labels device', 'Changed'],
    [
      'a further label',
      BEFORE.replace('device_a gauge device', 'device_a gauge device,x'),
      'device_a',
      'has the labels device,x',
      'Changed',
    ],
    [
      'a mark',
      BEFORE.replace('device_a gauge device', 'device_a gauge device deprecated=0.4'),
      'device_a',
      'is marked otherwise',
      'Deprecated',
    ],
  ])('is %s whose line is not in its section', (_name, now, name, what, section) => {
    expect(found(now, { Added: `x: \`${name}\`.` })).toEqual([untold(name, what, section)]);
    expect(found(now, { [section]: `x: \`${name}\`.` })).toEqual([]);
  });

  it('is a further label of an info metric only without any line', () => {
    const now = BEFORE.replace('device_b_info gauge device', 'device_b_info gauge device,x');
    expect(found(now)).toEqual([untold('device_b_info', 'has the labels device,x', 'Unreleased')]);
    expect(found(now, { Added: 'x: `device_b_info`.' })).toEqual([]);
  });

  it('is a mark that is no version, that is not known, or that is too old', () => {
    const problem = (since: string, { released, working } = history) => markProblem(since, released, working);
    expect(['0.2', '0.4', '0.5', '1.0'].map((since) => problem(since))).toEqual([undefined, undefined, undefined, undefined]);
    for (const since of ['', '0.2.0', 'v0.2', '00.2', '0']) expect(problem(since)).toMatch(/is no minor version/);
    for (const since of ['0.6', '2.0']) expect(problem(since)).toBe(`there is no version ${since}`);
    expect(problem('0.1')).toMatch(/must go$/);
    expect(problem('0.2', later)).toMatch(/must go$/);
    // Over a major version, too: the versions count, not the difference of their numbers.
    expect(problem('0.3', { released: ['0.4.0', ...history.released], working: '1.0.0' })).toBeUndefined();
    expect(problem('0.2', { released: ['0.4.0', ...history.released], working: '1.0.0' })).toMatch(/must go$/);
  });
});
