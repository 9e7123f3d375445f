import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { KEYS } from '../../../src/cli/top/frame.ts';

describe('docs/page.md', () => {
  it('has the keys of the help', () => {
    const text = readFileSync('docs/page.md', 'utf8');
    const rows = [...text.slice(text.indexOf('### Keys')).matchAll(/^\| (`.*?) \| (.*?) \|$/gm)];
    expect(rows.map(([, keys = '', what = '']) => [keys.replaceAll('`', ''), what])).toEqual(KEYS);
  });
});
