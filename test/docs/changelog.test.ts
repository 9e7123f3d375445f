import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { compareVersions, parseChangelog } from '../support/changelog.ts';

const text = readFileSync('CHANGELOG.md', 'utf8');

describe('CHANGELOG.md', () => {
  it('has the form of Keep a Changelog 1.1, with one line for each change', () => {
    expect(parseChangelog(text).problems).toEqual([]);
  });

  it('has no version that is later than what the program calls itself', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string };
    const [newest] = parseChangelog(text).versions.slice(1);
    expect(newest === undefined || compareVersions(newest.name, version) <= 0).toBe(true);
  });
});

describe('the form of a changelog', () => {
  const problemsOf = (...lines: readonly string[]): readonly string[] => parseChangelog(lines.join('\n')).problems;
  const released = (name: string, date: string): readonly string[] => [`## [${name}] - ${date}`, '### Fixed', '- x: y.'];

  it('lets versions descend', () => {
    expect(problemsOf('# C', '## [Unreleased]', ...released('0.10.0', '2027-02-01'), ...released('0.9.1', '2027-02-01'))).toEqual([]);
  });

  it.each<[string, readonly string[], string]>([
    ['an unknown section', ['## [Unreleased]', '### News', '- x: y.'], 'no section is named News'],
    ['a wrong order', ['## [Unreleased]', '### Fixed', '- x: y.', '### Added', '- x: y.'], 'Added is not in its place'],
    ['a section twice', ['## [Unreleased]', '### Fixed', '- x: y.', '### Fixed', '- x: y.'], 'Fixed is not in its place'],
    ['an empty section', ['## [Unreleased]', '### Added', '### Fixed', '- x: y.'], 'Added is empty'],
    ['a line without a subject', ['## [Unreleased]', '### Added', '- Something new.'], 'no line "- subject: text."'],
    ['an old tag', ['## [Unreleased]', '### Added', '- [FIX] cli: it works.'], 'no line "- subject: text."'],
    ['text between', ['## [Unreleased]', '### Added', '- x: y.', 'More.'], 'no line "- subject: text."'],
    ['no unreleased part', [...released('0.1.0', '2027-01-01')], 'the first version is not [Unreleased]'],
    ['a version without a date', ['## [Unreleased]', '## [0.1.0]', '### Fixed', '- x: y.'], 'not the title of a version'],
    ['a day that does not exist', ['## [Unreleased]', ...released('0.1.0', '2027-02-30')], 'not the title of a version'],
    ['a date in another form', ['## [Unreleased]', ...released('0.1.0', '1.2.2027')], 'not the title of a version'],
    ['no version', ['## [Unreleased]', ...released('0.01', '2027-02-01')], 'not the title of a version'],
    [
      'ascending versions',
      ['## [Unreleased]', ...released('0.9.0', '2027-01-01'), ...released('0.10.0', '2027-01-01')],
      '0.10.0 stands below 0.9.0',
    ],
    [
      'ascending dates',
      ['## [Unreleased]', ...released('0.2.0', '2027-01-01'), ...released('0.1.0', '2027-01-02')],
      '0.1.0 is later than 0.2.0',
    ],
  ])('does not take %s', (_name, lines, problem) => {
    expect(problemsOf('# C', ...lines)).toEqual([expect.stringContaining(problem)]);
  });
});
