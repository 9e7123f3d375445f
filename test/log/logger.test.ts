import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createLogger, formatTextLine } from '../../src/log/logger.ts';
import type { LogFormat, LogLevel } from '../../src/log/options.ts';

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
});

/** Logs as many lines as it is told in one go, and tells how many bytes wait then. */
const LOGGING = `
  import { createLogger } from ${JSON.stringify(pathToFileURL(resolve('dist/log/logger.js')).href)};
  const logger = createLogger({ level: 'info', format: 'json' });
  for (let n = 1; n <= 3_000; n += 1) logger.info('x'.repeat(1_000), { n });
  process.stdout.write(process.stderr.writableLength + '\\n');
  process.stdin.once('data', () => process.stderr.write('', () => {
    logger.info('the last');
    process.stdin.destroy();
  }));
`;

describe('a log whose reader stands still', () => {
  it('takes a bounded share of memory, and tells how many lines it lost', async () => {
    const child = spawn(process.execPath, ['--input-type=module', '-e', LOGGING]);
    const [waiting] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
    expect(Number(waiting)).toBeGreaterThan(1_000_000);
    expect(Number(waiting)).toBeLessThan(1_100_000);
    child.stdin.write('read now');
    let text = '';
    for await (const chunk of child.stderr.setEncoding('utf8')) text += chunk;
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string; n?: number; lost?: number });
    const told = lines.filter(({ n }) => n !== undefined).map(({ n }) => n as number);
    expect(told).toEqual(told.map((_, at) => at + 1));
    expect(lines.slice(told.length)).toMatchObject([
      { message: 'log lines were lost because stderr was blocked', lost: 3_000 - told.length },
      { message: 'the last' },
    ]);
  });
});

describe('text line', () => {
  it.each<[Record<string, unknown>, string]>([
    [{ a: 'plain' }, 'a=plain'],
    [{ a: 'two words' }, 'a="two words"'],
    [{ a: '' }, 'a=""'],
    [{ a: 'x=y' }, 'a="x=y"'],
    [{ a: 1, b: true, c: null }, 'a=1 b=true c=null'],
    [{ a: ['x', 'y'] }, 'a=x,y'],
    [{ a: ['x', 'y z'] }, 'a="x,y z"'],
    [{ a: { b: 1, c: ['x', 'y'], d: undefined } }, 'a="b=1 c=x,y"'],
    [{ a: [{ b: 1, c: { d: 'x' } }, { b: 2 }] }, 'a="(b=1 c=(d=x)),(b=2)"'],
    [{ a: 'line\nbreak' }, 'a="line\\nbreak"'],
    [{ a: '\u001b[31mred\u009b' }, 'a="\\u001b[31mred\\u009b"'],
    [{ a: '/sys/ü' }, 'a=/sys/ü'],
  ])('shows %j', (fields, expected) => {
    expect(formatTextLine({ time: 'T', level: 'info', message: 'm', ...fields })).toBe(`T INFO  m ${expected}\n`);
  });

  it('leaves out lists without items', () => {
    expect(formatTextLine({ time: 'T', level: 'info', message: 'm', holders: [], a: 1 })).toBe('T INFO  m a=1\n');
  });

  it('stays one line whatever the message is', () => {
    expect(formatTextLine({ time: 'T', level: 'info', message: 'a\nT ERROR forged' })).toBe('T INFO  a\\u000aT ERROR forged\n');
  });
});
