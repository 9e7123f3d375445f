import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = readFileSync('docs/false-alarms.md', 'utf8');

/** A section of the page with the file that it names, and the cells of its rows. */
const sections = text.split('\n## ').flatMap((section) => {
  const file = /^`(test\/false-alarms\/[\w-]+\.test\.ts)`$/m.exec(section)?.[1];
  const rows = section
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| Source'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  return file === undefined ? [] : [{ file, rows }];
});

const namesIn = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^ {2}it\('([^']+)'/gm)].map(([, name]) => name as string);
const sourcesIn = (file: string): readonly string[] =>
  [...readFileSync(file, 'utf8').matchAll(/^describe\('([^']+)'/gm)].map(([, source]) => source as string);

describe('docs/false-alarms.md', () => {
  it('has fourteen cases or more', () => {
    expect(sections.flatMap(({ rows }) => rows).length).toBeGreaterThanOrEqual(14);
  });

  it.each(sections)('has a row for each test of $file, and a test for each row', ({ file, rows }) => {
    expect(rows.map((cells) => cells[4])).toEqual(namesIn(file));
    for (const cells of rows)
      expect(
        cells.filter((cell) => cell === ''),
        cells.join(),
      ).toEqual([]);
  });

  it.each(sections)('names the source of each test of $file', ({ file, rows }) => {
    const sources = rows.map(([source = '']) => source);
    for (const source of sourcesIn(file)) {
      const [first = ''] = source.split(' and ');
      expect(
        sources.some((cell) => cell.includes(first)),
        source,
      ).toBe(true);
    }
  });
});
