import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createLineLog, type LineLogOptions } from '../../../src/host/fs/line-log.ts';
import { repetitions } from '../../support/repetitions.ts';

const DAY_MS = 86_400_000;
const NOON_MS = Date.parse('2026-11-23T12:00:00Z');
let directory: string;
let nowMs: number;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'line-log-'));
  nowMs = NOON_MS;
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const logOf = (options: Partial<LineLogOptions> = {}) =>
  createLineLog({
    directory,
    name: 'notes',
    version: 1,
    keepMs: 30 * DAY_MS,
    maxBytes: 1_048_576,
    clock: { ...systemClock, now: () => nowMs },
    ...options,
  });
type Log = ReturnType<typeof logOf>;

async function read(log: Log, fromMs = 0) {
  const records: Readonly<Record<string, unknown>>[] = [];
  return { ...(await log.read(fromMs, (record) => records.push(record))), records };
}
const files = (): readonly string[] => readdirSync(directory).sort();
const pathOf = (file: string | undefined): string => join(directory, file as string);
const bytesOnDisk = (): number => files().reduce((sum, file) => sum + statSync(pathOf(file)).size, 0);
const numbered = (count: number, from = 0): object[] =>
  Array.from({ length: count }, (_, at) => ({ number: from + at, text: 'x'.repeat(80) }));

describe('createLineLog', () => {
  it('touches no disk before the first append', async () => {
    expect(await read(logOf({ directory: join(directory, 'none') }))).toEqual({ records: [], damagedLines: 0, newerFiles: 0 });
    expect(files()).toEqual([]);
  });

  it('writes one line for each record after a line that names the format', async () => {
    expect(await logOf().append([{ a: 1 }, { b: 'two\nlines' }])).toBeUndefined();
    expect(files()).toEqual(['notes-20261123T120000Z.jsonl']);
    expect(readFileSync(pathOf(files()[0]), 'utf8')).toBe('{"format":"device-agent-notes","version":1}\n{"a":1}\n{"b":"two\\nlines"}\n');
    expect((await read(logOf())).records).toEqual([{ a: 1 }, { b: 'two\nlines' }]);
  });

  it('goes on in the same file after a restart, and begins a new one each day', async () => {
    await logOf().append([{ a: 1 }]);
    await logOf().append([{ a: 2 }]);
    nowMs += DAY_MS;
    await logOf().append([{ a: 3 }]);
    expect(files()).toEqual(['notes-20261123T120000Z.jsonl', 'notes-20261124T120000Z.jsonl']);
    expect((await read(logOf())).records).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }]);
  });

  it('keeps a line that was cut off away from the next one', async () => {
    await logOf().append([{ a: 1 }, { a: 2 }]);
    const path = pathOf(files()[0]);
    truncateSync(path, statSync(path).size - 4);
    await logOf().append([{ a: 3 }]);
    expect(await read(logOf())).toMatchObject({ records: [{ a: 1 }, { a: 3 }], damagedLines: 1 });
  });

  it('skips and counts damaged lines', async () => {
    const log = logOf({ maxBytes: 67_108_864 });
    await log.append([{ a: 1 }]);
    appendFileSync(pathOf(files()[0]), `\u0000\u0000\n[1]\n"text"\n{"a":\n${'y'.repeat(3_000_000)}\n\n`);
    await log.append([{ a: 2 }]);
    expect(await read(log)).toMatchObject({ records: [{ a: 1 }, { a: 2 }], damagedLines: 5 });
  });

  it('never exceeds its size, and drops the oldest file first', async () => {
    const maxBytes = 64 * 1_024;
    const log = logOf({ maxBytes });
    let largest = 0;
    for (let from = 0; from < 3_000; from += 50) {
      nowMs += 1_000;
      expect(await log.append(numbered(50, from))).toBeUndefined();
      largest = Math.max(largest, bytesOnDisk());
    }
    expect(largest).toBeLessThanOrEqual(maxBytes);
    expect(largest).toBeGreaterThan(maxBytes * 0.7);
    const numbers = (await read(log)).records.map(({ number }) => number as number);
    expect(numbers.at(-1)).toBe(2_999);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, at) => 3_000 - numbers.length + at));
    for (const file of files()) expect(statSync(pathOf(file)).size).toBeLessThanOrEqual(maxBytes / 8);
  });

  it('begins several files in one second', async () => {
    const log = logOf({ maxBytes: 64 * 1_024 });
    await log.append(numbered(300));
    expect(files().length).toBeGreaterThan(2);
    expect((await read(log)).records).toHaveLength(300);
  });

  it('deletes files whose last line is too old', async () => {
    await logOf({ keepMs: 2 * DAY_MS }).append([{ a: 1 }]);
    utimesSync(pathOf(files()[0]), NOON_MS / 1_000, NOON_MS / 1_000);
    nowMs += 3 * DAY_MS;
    await logOf({ keepMs: 2 * DAY_MS }).append([{ a: 2 }]);
    expect(files()).toEqual(['notes-20261126T120000Z.jsonl']);
  });

  it('skips files whose last write is before the asked time', async () => {
    await logOf().append([{ a: 1 }]);
    utimesSync(pathOf(files()[0]), NOON_MS / 1_000, NOON_MS / 1_000);
    nowMs += DAY_MS;
    await logOf().append([{ a: 2 }]);
    expect((await read(logOf(), NOON_MS + 1)).records).toEqual([{ a: 2 }]);
    expect((await read(logOf(), NOON_MS)).records).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it('leaves the files of a newer version as they are, and tells of them', async () => {
    await logOf({ version: 2 }).append([{ a: 2 }]);
    const [newer] = files();
    const text = readFileSync(pathOf(newer), 'utf8');
    nowMs += 90 * DAY_MS;
    const log = logOf({ maxBytes: 8_192 });
    await log.append(numbered(200));
    expect(readFileSync(pathOf(newer), 'utf8')).toBe(text);
    const { records, newerFiles, damagedLines } = await read(log);
    expect({ newerFiles, damagedLines }).toEqual({ newerFiles: 1, damagedLines: 0 });
    expect(records.length).toBeGreaterThan(0);
    expect(records.every((record) => 'number' in record)).toBe(true);
  });

  it('leaves foreign entries of the directory alone', async () => {
    const outside = join(directory, 'outside');
    writeFileSync(outside, '{"format":"device-agent-notes","version":1}\n{"secret":1}\n');
    symlinkSync(outside, join(directory, 'notes-20261123T110000Z.jsonl'));
    symlinkSync(outside, join(directory, 'notes-20261123T120000Z.jsonl'));
    spawnSync('mkfifo', [join(directory, 'notes-20261123T100000Z.jsonl')]);
    writeFileSync(join(directory, 'notes-2026.jsonl'), '{"foreign":1}\n');
    writeFileSync(join(directory, 'others-20261123T110000Z.jsonl'), '{"foreign":1}\n');
    const before = readFileSync(outside, 'utf8');
    const log = logOf({ keepMs: 0 });
    expect(await log.append([{ a: 1 }])).toBeUndefined();
    expect((await read(log)).records).toEqual([{ a: 1 }]);
    expect(readFileSync(outside, 'utf8')).toBe(before);
    expect(files()).toHaveLength(7);
  });

  it('counts a file without a header as damaged, and never continues it', async () => {
    writeFileSync(join(directory, 'notes-20261123T130000Z.jsonl'), '{"format":"device-ag');
    await logOf().append([{ a: 1 }]);
    expect(await read(logOf())).toMatchObject({ records: [{ a: 1 }], damagedLines: 1 });
    expect(readFileSync(join(directory, 'notes-20261123T130000Z.jsonl'), 'utf8')).toBe('{"format":"device-ag');
  });

  it('keeps records that could not be written for the next append', async () => {
    const blocked = join(directory, 'file');
    writeFileSync(blocked, '');
    const log = logOf({ directory: join(blocked, 'logs') });
    expect(await log.append([{ a: 1 }])).toMatch(/ENOTDIR/);
    expect(log.waiting).toBe(1);
    rmSync(blocked);
    expect(await log.append([{ a: 2 }])).toBeUndefined();
    expect((await read(log)).records).toEqual([{ a: 1 }, { a: 2 }]);
  });

  it('bounds what waits for a disk that fails, and counts what it drops', async () => {
    const blocked = join(directory, 'file');
    writeFileSync(blocked, '');
    const log = logOf({ directory: join(blocked, 'logs'), maxBytes: 65_536 });
    for (let from = 0; from < 2_000; from += 100) await log.append(numbered(100, from));
    expect(log.waiting + log.dropped).toBe(2_000);
    expect(log.waiting * 100).toBeLessThanOrEqual(65_536 / 2);
    rmSync(blocked);
    await log.append([]);
    const { records } = await read(log);
    expect(records.map(({ number }) => number)).toEqual(Array.from({ length: records.length }, (_, at) => 2_000 - records.length + at));
    expect(await log.append([{ long: 'x'.repeat(65_536) }])).toBeUndefined();
    expect(log.dropped).toBe(2_000 - records.length + 1);
  });

  it('writes after a call without records', async () => {
    const log = logOf();
    expect(await log.append([])).toBeUndefined();
    expect(files()).toEqual([]);
    expect(await log.append([{ a: 1 }])).toBeUndefined();
    expect((await read(log)).records).toEqual([{ a: 1 }]);
  });

  it('writes calls that overlap in their order', async () => {
    const log = logOf();
    await Promise.all(Array.from({ length: 100 }, (_, at) => log.append([{ at }])));
    expect((await read(log)).records).toEqual(Array.from({ length: 100 }, (_, at) => ({ at })));
  });

  it('tells of a file that it cannot read', async ({ skip }) => {
    skip(process.getuid?.() === 0, 'root reads all files');
    await logOf().append([{ a: 1 }]);
    chmodSync(directory, 0);
    expect((await read(logOf())).error).toMatch(/EACCES/);
    chmodSync(directory, 0o700);
  });
});

describe('a process that writes and ends at any moment', () => {
  const module = pathToFileURL(resolve('dist/host/fs/line-log.js')).href;
  const clock = pathToFileURL(resolve('dist/host/clock.js')).href;
  /** Appends records with growing numbers from an argument on, and prints the number of each append that is on disk. */
  const program = `
    import { createLineLog } from ${JSON.stringify(module)};
    import { systemClock } from ${JSON.stringify(clock)};
    const [, directory, from] = process.argv;
    const log = createLineLog({ directory, name: 'notes', version: 1, keepMs: 1e9, maxBytes: 1e8, clock: systemClock });
    for (let number = Number(from); ; number += 10) {
      const error = await log.append(Array.from({ length: 10 }, (_, at) => ({ number: number + at, text: 'x'.repeat(500) })));
      process.stdout.write(error === undefined ? number + 9 + '\\n' : 'error ' + error + '\\n');
      if (error !== undefined) break;
    }`;
  const words = (from: number): string[] => ['--input-type=module', '-e', program, directory, String(from)];
  const told = (output: string): number[] =>
    output
      .split('\n')
      .filter((line) => /^\d+$/.test(line))
      .map(Number);

  async function killedAfter(child: ChildProcess, appends: number): Promise<number> {
    let output = '';
    child.stdout?.on('data', (text) => {
      output += text;
      if (told(output).length >= appends) child.kill('SIGKILL');
    });
    await once(child, 'close');
    return told(output).at(-1) as number;
  }

  const kills = repetitions(15, 50);
  // Each kill is the start of a Node, which takes seconds on a busy machine.
  it(`leaves a log that the next one reads and continues, for ${kills} kills`, async () => {
    const reader = createLineLog({ directory, name: 'notes', version: 1, keepMs: 1e9, maxBytes: 1e8, clock: systemClock });
    let from = 0;
    let acknowledged = 0;
    for (let round = 0; round < kills; round += 1) {
      const last = await killedAfter(spawn(process.execPath, words(from), { stdio: ['ignore', 'pipe', 'inherit'] }), 1 + (round % 7));
      acknowledged += last + 1 - from;
      from += 100_000;
    }
    const { records, damagedLines, error } = await read(reader);
    expect(error).toBeUndefined();
    expect(damagedLines).toBeLessThanOrEqual(kills);
    const numbers = new Set(records.map(({ number }) => number as number));
    expect(numbers.size).toBe(records.length);
    expect(records.length).toBeGreaterThanOrEqual(acknowledged);
  });

  it('loses nothing that was acknowledged when the disk is full, and goes on when it has room', async () => {
    const limited = spawnSync('bash', ['-c', 'ulimit -f 16; exec "$0" "$@"', process.execPath, ...words(0)], { encoding: 'utf8' });
    expect(limited.stdout).toMatch(/error EFBIG/);
    const last = told(limited.stdout).at(-1) as number;
    const log = createLineLog({ directory, name: 'notes', version: 1, keepMs: 1e9, maxBytes: 1e8, clock: systemClock });
    expect(await log.append([{ number: -1 }])).toBeUndefined();
    const { records, damagedLines } = await read(log);
    const numbers = new Set(records.map(({ number }) => number));
    for (let number = 0; number <= last; number += 1) expect(numbers.has(number)).toBe(true);
    expect(numbers.has(-1)).toBe(true);
    expect(damagedLines).toBe(1);
  });
});
