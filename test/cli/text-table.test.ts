import { describe, expect, it } from 'vitest';
import { textTable } from '../../src/cli/text-table.ts';

describe('text table', () => {
  it('aligns columns, counts characters and leaves no blanks at line ends', () => {
    expect(
      textTable([
        ['A', 'TEMP', 'B'],
        ['long name', '61°C', ''],
        ['x', '', 'y'],
      ]),
    ).toBe('A          TEMP  B\nlong name  61°C  -\nx          -     y\n');
  });

  it('lets no text from outside steer the terminal', () => {
    expect(textTable([['a\u001b[2Jb\nc']])).toBe('a\\u001b[2Jb\\u000ac\n');
  });

  it('is empty without rows', () => {
    expect(textTable([])).toBe('');
  });
});
