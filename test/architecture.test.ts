import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const text = readFileSync('docs/architecture.md', 'utf8');
const paths = [...new Set([...text.matchAll(/`(src\/[\w./-]+\.ts)`/g)].map((match) => match[1] as string))];
/** Rows of the walks: a file and the functions in it. */
const steps = [...text.matchAll(/^\| \d+\. .* \| `(src\/[^`]+)` \| (.*) \|$/gm)].flatMap(([, path = '', names = '']) =>
  [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => ({ path, name })),
);

describe('docs/architecture.md', () => {
  it.each(paths)('names %s, which exists', (path) => {
    expect(existsSync(path)).toBe(true);
  });

  it.each(steps)('names $name in $path', ({ path, name }) => {
    expect(readFileSync(path, 'utf8')).toMatch(new RegExp(`\\b${name}\\b(?:\\(|:| =|<| \\{)`));
  });

  it('has each folder of src on its floor', () => {
    const [, table = ''] = /const FLOORS.*= \{\n([^}]*)\}/.exec(readFileSync('test/floors.test.ts', 'utf8')) ?? [];
    const floors = new Map([...table.matchAll(/^ {2}'?([\w.]+)'?: (\d),$/gm)].map(([, folder, floor]) => [folder, floor]));
    const rows = [...text.matchAll(/^\| (\d) \| (.*?) \|/gm)].flatMap(([, floor, cell = '']) =>
      [...cell.matchAll(/`([\w.]+)/g)].map(([, folder]) => [folder, floor] as const),
    );
    expect(rows.filter(([folder, floor]) => floors.get(folder) !== floor)).toEqual([]);
    expect([...floors.keys()].filter((folder) => !rows.some(([listed]) => listed === folder))).toEqual([]);
  });

  it('has both walks, and fits on two pages', () => {
    expect(steps.length).toBeGreaterThan(20);
    expect(text.split(/\s+/).length).toBeLessThan(1_500);
  });
});
