import { readdirSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const table = readFileSync('findings/README.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| ['));
const scripts = readdirSync('findings').filter((name) => name !== 'README.md');

describe('findings', () => {
  it('have a row each in the table, sorted by name', () => {
    expect(table.map((row) => /^\| \[([\w-]+)\]\(\1\.sh\) \| [^|]+ \| [^|]+ \| [^|]+ \|$/.exec(row)?.[1])).toEqual(
      scripts.map((name) => name.replace(/\.sh$/, '')).toSorted(),
    );
  });

  it.each(scripts)('%s says what is seen and why it matters, and names no address', (name) => {
    const path = `findings/${name}`;
    const text = readFileSync(path, 'utf8');
    expect(statSync(path).mode & 0o111).not.toBe(0);
    for (const part of ['One would guess', 'Versions', 'Seen', 'Why it matters']) expect(text).toContain(`\n# ${part}: `);
    expect(text).toContain('\nset -euo pipefail\n');
    expect(text).not.toMatch(/https?:\/\/(?!localhost|127\.0\.0\.1)/);
  });
});
