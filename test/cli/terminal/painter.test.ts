import { describe, expect, it } from 'vitest';
import { fitText, span, wrapText } from '../../../src/cli/terminal/frame.ts';
import { clean, Painter } from '../../../src/cli/terminal/painter.ts';

const PLAIN = { colours: 0, isUtf8: true } as const;
const SIZE = { columns: 6, rows: 2 };

describe('painter', () => {
  it('sends the lines that changed, and all of them after a resize', () => {
    const painter = new Painter(PLAIN);
    const first = painter.paint([[span('one')], [span('two')]], SIZE);
    expect(first).toBe('\u001b[?2026h\u001b[2J\u001b[1;1Hone   \u001b[2;1Htwo   \u001b[?2026l');
    expect(painter.paint([[span('one')], [span('two')]], SIZE)).toBe('');
    expect(painter.paint([[span('one')], [span('2')]], SIZE)).toBe('\u001b[?2026h\u001b[2;1H2     \u001b[?2026l');
    expect(painter.paint([[span('one')], [span('2')]], { columns: 4, rows: 2 })).toContain('\u001b[1;1Hone ');
    painter.forget();
    expect(painter.paint([[span('one')], [span('2')]], { columns: 4, rows: 2 })).toContain('\u001b[2J');
  });

  it('ends each style in its line', () => {
    const painter = new Painter({ colours: 16, isUtf8: true });
    expect(painter.paint([[span('a', 'bad'), span('b')]], { columns: 2, rows: 1 })).toContain('\u001b[1;31ma\u001b[0mb');
  });
});

describe('text of a terminal', () => {
  it('has one cell for each sign, and steers nothing', () => {
    const hostile = 'a\u001b[31m\u009bb\u200b\u202ec\u0301漢😀\nd';
    expect(clean(hostile, true)).toBe('a\ufffd[31m\ufffdb\ufffd\ufffdc\ufffd\ufffd\ufffd d');
    expect(clean('61 °C … é', false)).toBe('61  C ~ ?');
    expect(clean(hostile, false)).toMatch(/^[ -~]*$/);
  });

  it('is cut, filled and wrapped by signs', () => {
    expect([fitText('abcdef', 4), fitText('ab', 4), fitText('ab', 0)]).toEqual(['abc…', 'ab  ', '']);
    expect(wrapText('one two threefour', 6)).toEqual(['one', 'two', 'threef', 'our']);
  });
});
