import { describe, expect, it } from 'vitest';
import { createLogger, withFields } from '../../src/log/logger.ts';
import type { LogFormat, LogLevel } from '../../src/log/options.ts';
import { formatTextLine } from '../../src/log/text-line.ts';

function capture(level: LogLevel, format: LogFormat) {
  const lines: string[] = [];
  return { lines, logger: createLogger({ level, format }, { write: (line) => lines.push(line) }) };
}

describe('logger', () => {
  it('writes one JSON object per line', () => {
    const { lines, logger } = capture('debug', 'json');
    logger.warn('socket missing', { path: '/x', tries: 3, big: 2n ** 60n });
    expect(lines).toHaveLength(1);
    const { time, ...rest } = JSON.parse((lines[0] as string).replace('1152921504606846976', '"1152921504606846976"')) as Record<
      string,
      unknown
    >;
    expect(rest).toEqual({ level: 'warn', message: 'socket missing', path: '/x', tries: 3, big: '1152921504606846976' });
    expect(Date.parse(String(time))).not.toBeNaN();
  });

  it.each<[LogLevel, number]>([
    ['debug', 4],
    ['info', 3],
    ['warn', 2],
    ['error', 1],
  ])('at level %s lets %i of four lines through', (level, count) => {
    const { lines, logger } = capture(level, 'text');
    logger.debug('d');
    logger.info('i');
    logger.warn('w');
    logger.error('e');
    expect(lines).toHaveLength(count);
  });

  it('keeps the stack of an error in JSON and only its message in text', () => {
    const error = new Error('no way');
    const json = capture('info', 'json');
    json.logger.error('failed', { error });
    expect(JSON.parse(json.lines[0] as string)).toMatchObject({ error: { type: 'Error', message: 'no way', stack: error.stack } });
    const text = capture('info', 'text');
    text.logger.error('failed', { error });
    expect(text.lines[0]).toMatch(/^\S+Z ERROR failed error="no way"\n$/);
  });

  it('adds common fields, which a line may replace', () => {
    const { lines, logger } = capture('info', 'text');
    const child = withFields(logger, { family: 'nvidia', code: 'a' });
    child.info('x');
    child.info('x', { code: 'b' });
    expect(lines.map((line) => line.replace(/^\S+ /, ''))).toEqual(['INFO  x family=nvidia code=a\n', 'INFO  x family=nvidia code=b\n']);
  });
});

describe('text line', () => {
  it.each<[Record<string, unknown>, string]>([
    [{ a: 'plain' }, 'a=plain'],
    [{ a: 'two words' }, 'a="two words"'],
    [{ a: '' }, 'a=""'],
    [{ a: 'x=y' }, 'a="x=y"'],
    [{ a: 1, b: true, c: null }, 'a=1 b=true c=null'],
    [{ a: ['x', 'y z'] }, 'a="[\\"x\\",\\"y z\\"]"'],
    [{ a: 'line\nbreak' }, 'a="line\\nbreak"'],
    [{ a: '\u001b[31mred\u009b' }, 'a="\\u001b[31mred\\u009b"'],
    [{ a: '/sys/ü' }, 'a=/sys/ü'],
  ])('shows %j', (fields, expected) => {
    expect(formatTextLine({ time: 'T', level: 'info', message: 'm', ...fields })).toBe(`T INFO  m ${expected}\n`);
  });

  it('stays one line whatever the message is', () => {
    expect(formatTextLine({ time: 'T', level: 'info', message: 'a\nT ERROR forged' })).toBe('T INFO  a\\u000aT ERROR forged\n');
  });
});
