import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../../src/host/clock.ts';
import { kmsgProblems } from '../../../src/host/kernel-log/problems.ts';
import { type KmsgMessage, type KmsgReader, openKmsg } from '../../../src/host/kernel-log/reader.ts';

/** Only `pass` moves the time. */
class HandClock implements Clock {
  ms = 1_000_000;
  readonly timers = new Map<number, { readonly at: number; readonly run: () => void }>();
  #next = 0;

  now = (): number => this.ms;
  monotonic = (): number => this.ms;
  after(delayMs: number, run: () => void): () => void {
    const id = this.#next++;
    this.timers.set(id, { at: this.ms + delayMs, run });
    return () => this.timers.delete(id);
  }

  pass(ms: number): void {
    const end = this.ms + ms;
    for (;;) {
      const due = [...this.timers].filter(([, { at }]) => at <= end).sort(([, a], [, b]) => a.at - b.at)[0];
      if (due === undefined) break;
      this.timers.delete(due[0]);
      this.ms = due[1].at;
      due[1].run();
    }
    this.ms = end;
  }
}

const BOOT_MS = 500_000;
let directory: string;
let path: string;
let clock: HandClock;
let messages: KmsgMessage[];
let reader: KmsgReader;

const record = (seq: number, text: string): string => `3,${seq},${seq * 1_000_000},-;${text}\n`;
const texts = (): string[] => messages.map(({ text }) => text);
const open = (at = path): KmsgReader => openKmsg({ path: at, clock, bootTimeMs: BOOT_MS, onRecord: (message) => messages.push(message) });
const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

/** Drops the privileges of root for the call, because root may read everything. */
function asNobody<T>(run: () => T): T {
  if (process.geteuid?.() !== 0) return run();
  process.seteuid?.(65_534);
  try {
    return run();
  } finally {
    process.seteuid?.(0);
  }
}

function isRestricted(): boolean {
  try {
    return readFileSync('/proc/sys/kernel/dmesg_restrict', 'utf8').trim() === '1' && (statSync('/dev/kmsg').mode & 0o004) !== 0;
  } catch {
    return false;
  }
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-kmsg-'));
  path = join(directory, 'kmsg');
  clock = new HandClock();
  messages = [];
  reader = open();
});

afterEach(() => {
  reader.close();
  rmSync(directory, { recursive: true, force: true });
});

describe('a file given as kernel log', () => {
  it('is read from its beginning and then as it grows', () => {
    writeFileSync(path, record(1, 'one') + record(2, 'two'));
    reader.poll();
    expect(texts()).toEqual(['one', 'two']);
    reader.poll();
    appendFileSync(path, record(3, 'three'));
    reader.poll();
    expect(texts()).toEqual(['one', 'two', 'three']);
    expect(reader.status()).toEqual({ records: 3, lost: 0, malformed: 0 });
  });

  it('takes a piece behind the words that come before a name for a name, and a later one for a piece', () => {
    const piece = (seq: number, text: string, priority = 4, flag = 'c'): string =>
      `${priority},${seq},${seq * 1_000_000},${flag};${text}\n`;
    writeFileSync(
      path,
      piece(1, 'a') + piece(2, 'x cpuset=', 12, '-') + piece(3, 'b') + piece(4, 'oom-kill:nodemask=(null),cpuset=', 6, '-'),
    );
    reader.poll();
    appendFileSync(path, record(5, 'of another processor') + piece(14, 'c') + piece(15, 'd'));
    reader.poll();
    expect(messages.map(({ text, origin }) => [text, origin])).toEqual([
      ['a', 'piece'],
      ['x cpuset=', 'program'],
      ['b', 'piece'],
      ['oom-kill:nodemask=(null),cpuset=', 'about-process'],
      ['of another processor', 'kernel'],
      ['c', 'about-process'],
      ['d', 'piece'],
    ]);
  });

  it('dates existing records from the boot time and new records by their arrival', () => {
    writeFileSync(path, record(1, 'old') + record(900, 'of the future'));
    reader.poll();
    clock.pass(5_000);
    appendFileSync(path, record(901, 'new'));
    reader.poll();
    expect(messages.map(({ timeMs, live }) => [timeMs, live])).toEqual([
      [BOOT_MS + 1_000, false],
      [1_000_000, false],
      [1_005_000, true],
    ]);
  });

  it('gives no time for old records when the boot time is unknown', () => {
    writeFileSync(path, record(1, 'old'));
    const without = openKmsg({ path, clock, onRecord: (message) => messages.push(message) });
    without.poll();
    without.close();
    expect(messages[0]).not.toHaveProperty('timeMs');
  });

  it('delivers a line only when it is complete', () => {
    writeFileSync(path, '3,1,1,-;half');
    reader.poll();
    expect(texts()).toEqual([]);
    appendFileSync(path, ' and');
    reader.poll();
    appendFileSync(path, ' whole\n SUBSYSTEM=pci\n');
    reader.poll();
    expect(messages).toMatchObject([{ text: 'half and whole', subsystem: 'pci' }]);
  });

  it('decodes characters that are split over two reads', () => {
    const bytes = Buffer.from(record(1, '50 °C'));
    writeFileSync(path, bytes.subarray(0, bytes.indexOf(0xc2) + 1));
    reader.poll();
    appendFileSync(path, bytes.subarray(bytes.indexOf(0xc2) + 1));
    reader.poll();
    expect(texts()).toEqual(['50 °C']);
  });

  it('starts again when it was truncated', () => {
    writeFileSync(path, record(1, 'one') + record(2, 'two'));
    reader.poll();
    truncateSync(path, 0);
    reader.poll();
    appendFileSync(path, record(3, 'three'));
    reader.poll();
    expect(texts()).toEqual(['one', 'two', 'three']);
  });

  it('starts again when other records replaced the delivered ones, longer than before or not', () => {
    writeFileSync(path, record(1, 'one'));
    reader.poll();
    writeFileSync(path, record(7, 'another that is longer') + record(8, 'eight'));
    reader.poll();
    expect(texts()).toEqual(['one', 'another that is longer', 'eight']);
    writeFileSync(path, record(9, 'short'));
    reader.poll();
    expect(texts().at(-1)).toBe('short');
  });

  it('continues when the same content is rewritten with more lines', () => {
    const old = Array.from({ length: 200 }, (_, index) => record(index, `line ${index}`)).join('');
    writeFileSync(path, old);
    reader.poll();
    truncateSync(path, 0);
    reader.poll();
    writeFileSync(path, `${old}${record(200, 'new')}`);
    reader.poll();
    expect(messages).toHaveLength(201);
    expect(texts().at(-1)).toBe('new');
  });

  it('continues in a new file with the same content and more', () => {
    const old = record(1, 'one') + record(2, 'two');
    writeFileSync(path, `${old}3,3,3,-;begi`);
    reader.poll();
    writeFileSync(`${path}.new`, `${old}3,3,3,-;begin and end\n${record(4, 'four')}`);
    renameSync(`${path}.new`, path);
    reader.poll();
    expect(texts()).toEqual(['one', 'two', 'begin and end', 'four']);
  });

  it('starts again in the new file of a rotation', () => {
    writeFileSync(path, record(1, 'one'));
    reader.poll();
    renameSync(path, `${path}.1`);
    reader.poll();
    writeFileSync(path, record(2, 'first of the new'));
    reader.poll();
    expect(texts()).toEqual(['one', 'first of the new']);
    expect(reader.status()).toEqual({ records: 2, lost: 0, malformed: 0 });
  });

  it('counts gaps in the sequence, and treats a smaller number as a new sequence', () => {
    writeFileSync(path, record(10, 'a') + record(14, 'b') + record(2, 'c') + record(3, 'd'));
    reader.poll();
    expect(reader.status()).toEqual({ records: 4, lost: 3, malformed: 0 });
  });

  it('skips lines that are not records', () => {
    writeFileSync(path, `${record(1, 'one')}\nrubbish\n\0\0\0\n${record(2, 'two')}`);
    reader.poll();
    expect(texts()).toEqual(['one', 'two']);
    expect(reader.status()).toEqual({ records: 2, lost: 0, malformed: 2 });
  });

  it('skips a line without end', () => {
    writeFileSync(path, `${'x'.repeat(300_000)}`);
    reader.poll();
    appendFileSync(path, `\n${record(2, 'two')}`);
    reader.poll();
    expect(texts()).toEqual(['two']);
  });

  it('is reported as a problem when no line is a record', () => {
    writeFileSync(path, '[   12.5] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n');
    reader.poll();
    expect(reader.status().problem).toMatchObject({ code: 'kmsg-malformed' });
    appendFileSync(path, record(1, 'one'));
    reader.poll();
    expect(reader.status().problem).toBeUndefined();
  });

  it('is read completely when it is large', () => {
    const lines = Array.from({ length: 100_000 }, (_, index) => record(index + 1, `line ${index} ${'.'.repeat(150)}`));
    writeFileSync(path, lines.join(''));
    reader.poll();
    expect(messages).toHaveLength(100_000);
    expect(reader.status().lost).toBe(0);
  });

  it('can be a link whose target changes', () => {
    writeFileSync(`${path}.a`, record(1, 'a'));
    writeFileSync(`${path}.b`, record(1, 'another one'));
    symlinkSync(`${path}.a`, path);
    reader.poll();
    rmSync(path);
    symlinkSync(`${path}.b`, path);
    reader.poll();
    expect(texts()).toEqual(['a', 'another one']);
  });
});

describe('a kernel log that cannot be read', () => {
  const codes: readonly string[] = kmsgProblems.map(({ code }) => code);
  const problemAt = (at: string): string | undefined => {
    const other = open(at);
    other.poll();
    const { problem } = other.status();
    other.close();
    expect(codes).toContain(problem?.code);
    expect(problem?.message).toContain(at);
    return problem?.code;
  };

  it('may be absent, and is read when it appears', () => {
    reader.poll();
    expect(reader.status().problem).toEqual({ code: 'kmsg-missing', message: `${path} cannot be read: ENOENT` });
    writeFileSync(path, record(1, 'one'));
    reader.poll();
    expect(texts()).toEqual(['one']);
    expect(reader.status().problem).toBeUndefined();
  });

  it('may be removed', () => {
    writeFileSync(path, record(1, 'one'));
    reader.poll();
    rmSync(path);
    reader.poll();
    expect(reader.status().problem).toMatchObject({ code: 'kmsg-missing' });
  });

  it('may be a directory', () => {
    mkdirSync(path);
    expect(problemAt(path)).toBe('kmsg-not-a-log');
  });

  it('may be a pipe, on which the reader does not block', () => {
    execFileSync('mkfifo', [path]);
    expect(problemAt(path)).toBe('kmsg-not-a-log');
  });

  it('may be another device, which is not opened', () => {
    expect(problemAt('/dev/zero')).toBe('kmsg-not-a-log');
    expect(problemAt('/dev/null')).toBe('kmsg-not-a-log');
  });

  it('may be below a file, or be a link to itself', () => {
    writeFileSync(path, '');
    expect(problemAt(join(path, 'kmsg'))).toBe('kmsg-missing');
    symlinkSync('loop', join(directory, 'loop'));
    expect(problemAt(join(directory, 'loop'))).toBe('kmsg-failed');
  });

  it('may be unreadable, and is read once access is allowed', () => {
    writeFileSync(path, record(1, 'one'), { mode: 0 });
    chmodSync(directory, 0o755);
    asNobody(() => reader.poll());
    expect(reader.status().problem).toEqual({ code: 'kmsg-denied', message: `${path} cannot be read: EACCES` });
    chmodSync(path, 0o644);
    asNobody(() => reader.poll());
    expect(texts()).toEqual(['one']);
  });

  it.skipIf(!isRestricted())(
    'may be forbidden by the kernel alone (where kernel.dmesg_restrict is 1 and /dev/kmsg is readable by its mode)',
    () => {
      expect(asNobody(() => problemAt('/dev/kmsg'))).toBe('kmsg-denied');
    },
  );

  it('leaves no descriptor open after many attempts', () => {
    mkdirSync(path);
    const before = openDescriptors();
    for (let attempt = 0; attempt < 50; attempt++) {
      reader.poll();
      clock.pass(2_000);
    }
    expect(openDescriptors()).toBe(before);
  });
});

describe('following', () => {
  it('polls each second until it is stopped, and leaves neither timer nor descriptor', () => {
    writeFileSync(path, '');
    const before = openDescriptors();
    let polls = 0;
    const stop = reader.follow(() => polls++);
    clock.pass(5_000);
    expect(polls).toBe(5);
    appendFileSync(path, record(1, 'one'));
    clock.pass(1_000);
    expect(texts()).toEqual(['one']);
    stop();
    expect(clock.timers.size).toBe(0);
    reader.close();
    expect(openDescriptors()).toBe(before);
    clock.pass(2_000);
    expect(polls).toBe(6);
  });

  it('looks every ten seconds for a log that was never readable, and then polls each second', () => {
    let polls = 0;
    reader.poll();
    reader.follow(() => polls++);
    clock.pass(30_000);
    expect(polls).toBe(3);
    writeFileSync(path, record(1, 'one'));
    clock.pass(10_000);
    expect(texts()).toEqual(['one']);
    rmSync(path);
    clock.pass(2_000);
    writeFileSync(path, record(2, 'two'));
    clock.pass(1_000);
    expect([polls, texts()]).toEqual([7, ['one', 'two']]);
    reader.close();
  });

  it('can be stopped during a poll', () => {
    writeFileSync(path, record(1, 'one'));
    const closing = openKmsg({ path, clock, onRecord: () => closing.close() });
    closing.follow(() => closing.close());
    clock.pass(1_000);
    expect(clock.timers.size).toBe(0);
  });

  it('started again replaces the first one', () => {
    reader.follow();
    reader.follow();
    expect(clock.timers.size).toBe(1);
  });

  it('reads a file that is rotated, rewritten and appended to a thousand times, without a leak or a lost record', () => {
    writeFileSync(path, '');
    reader.poll();
    const before = openDescriptors();
    const expected: string[] = [];
    for (let turn = 0; turn < 1_000; turn++) {
      const text = `turn ${turn}`;
      expected.push(text);
      if (turn % 3 === 0) appendFileSync(path, record(turn, text));
      else if (turn % 3 === 1) {
        renameSync(path, `${path}.1`);
        writeFileSync(path, record(turn, text));
      } else writeFileSync(path, record(turn, text));
      reader.poll();
    }
    expect(texts()).toEqual(expected);
    expect(openDescriptors()).toBe(before);
  });
});
