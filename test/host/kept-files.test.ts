import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepableDescriptors, parseSoftLimit } from '../../src/host/descriptors.ts';
import { ReadGuard } from '../../src/host/fs/read-guard.ts';
import { Tree } from '../../src/host/fs/tree.ts';
import { KeptFiles } from '../../src/host/kept-files.ts';
import type { KeptGroup } from '../../src/host/kept-group.ts';
import { nativeFiles } from '../../src/host/native-files.ts';
import { isSysfs } from '../../src/host/sysfs.ts';
import { canLimitDescriptors, withDescriptors } from '../support/descriptor-limit.ts';
import { foreignReads } from '../support/foreign-reads.ts';
import { unless } from '../support/skipped.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-kept-'));
  mkdirSync(join(root, 'port'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const put = (path: string, text: string): void => writeFileSync(join(root, path), text);
/** Long enough for what was just made to count as having been there for a while. */
const growOld = (): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
const openFiles = (): number => readdirSync('/proc/self/fd').length;

function reader(capacity = 100, guard?: ReadGuard, native = nativeFiles): { keeper: KeptFiles; group: KeptGroup } {
  const keeper = new KeptFiles(new Tree(root, guard), capacity, native);
  return { keeper, group: keeper.group('port', ['port']) };
}

/** As a probe reads: first whether something changed, then the file. */
function told(group: KeptGroup, path: string): () => string | undefined {
  const file = group.file(path);
  return () => {
    group.hasChanged();
    const { text, error } = group.text(file);
    return text ?? error;
  };
}

const isRoot = process.getuid?.() === 0;
const noRoot = unless(isRoot, 'needs root');
const noLimits = unless(canLimitDescriptors(), 'no prlimit');

describe('a file that is kept open', () => {
  it('tells what it says now, each time', () => {
    put('port/a', '1\n');
    const read = told(reader().group, 'port/a');
    expect(read()).toBe('1\n');
    put('port/a', '22\n');
    expect(read()).toBe('22\n');
    put('port/a', '3\n');
    expect(read()).toBe('3\n');
  });

  it('is opened once', () => {
    put('port/a', '1\n');
    const { keeper, group } = reader();
    const file = group.file('port/a');
    growOld();
    group.hasChanged();
    for (let n = 0; n < 5; n += 1) {
      group.hasChanged();
      group.read(file);
    }
    expect(keeper.opened).toBe(1);
    expect(keeper.kept).toBe(1);
  });

  it('is read without Node in between where that is possible', () => {
    put('port/a', '1\n');
    const native = nativeFiles();
    expect(native, 'koffi and its native part are installed').toBeDefined();
    const into = native?.memory(8);
    const fd = openSync(join(root, 'port/a'), 'r');
    expect(into && native?.read(fd, into, 8)).toBe(2);
    expect(into?.bytes.toString('utf8', 0, 2)).toBe('1\n');
    closeSync(fd);
    expect(into && native?.read(fd, into, 8), 'of a descriptor that is closed').toBe(-1);
  });

  it('gives the same object while it says the same', () => {
    put('port/a', 'x\n');
    const { group } = reader();
    const file = group.file('port/a');
    const first = group.text(file);
    expect(group.text(file)).toBe(first);
  });

  it.each([
    ['is removed', () => rmSync(join(root, 'port/a')), 'ENOENT'],
    [
      'turns into a directory',
      () => {
        rmSync(join(root, 'port/a'));
        mkdirSync(join(root, 'port/a'));
      },
      'EISDIR',
    ],
    [
      'is replaced by another of its name',
      () => {
        put('port/b', '2\n');
        renameSync(join(root, 'port/b'), join(root, 'port/a'));
      },
      '2\n',
    ],
    [
      'loses its directory to another one',
      () => {
        renameSync(join(root, 'port'), join(root, 'port-old'));
        mkdirSync(join(root, 'port'));
        put('port/a', '3\n');
      },
      '3\n',
    ],
    [
      'loses its directory to another one with the same number',
      () => {
        rmSync(join(root, 'port'), { recursive: true });
        mkdirSync(join(root, 'port'));
        put('port/a', '4\n');
      },
      '4\n',
    ],
    ['loses its directory', () => rmSync(join(root, 'port'), { recursive: true }), 'ENOENT'],
  ])('tells nothing old when it %s', (_, change, expected) => {
    const ways = [
      { capacity: 0, native: nativeFiles },
      { capacity: 100, native: nativeFiles },
      { capacity: 100, native: () => undefined },
    ];
    for (const { capacity, native } of ways) {
      for (const path of ['port', 'port-old']) rmSync(join(root, path), { recursive: true, force: true });
      mkdirSync(join(root, 'port'));
      put('port/a', '1\n');
      const read = told(reader(capacity, undefined, native).group, 'port/a');
      expect(read()).toBe('1\n');
      growOld();
      expect(read()).toBe('1\n');
      expect(read()).toBe('1\n');
      change();
      expect(read(), `room for ${capacity}, ${native === nativeFiles ? 'directly' : 'through Node'}`).toBe(expected);
      expect(read()).toBe(expected);
    }
  });

  it('comes back when its name does', () => {
    const read = told(reader().group, 'port/a');
    expect(read()).toBe('ENOENT');
    put('port/a', '5\n');
    expect(read()).toBe('5\n');
  });

  it('is told of while it is read', () => {
    put('port/a', '1\n');
    const guard = new ReadGuard();
    const { keeper, group } = reader(100, guard);
    const file = group.file('port/a');
    expect(group.text(file)).toEqual({ text: '1\n' });
    expect(guard.current(), 'opened, read, and done with').toBeUndefined();
    expect(group.text(file)).toEqual({ text: '1\n' });
    const step = guard.current();
    expect(step, 'of files that are kept, the directory they share').toMatchObject({ kind: 'file', path: join(root, 'port') });
    group.text(file);
    expect(guard.current(), 'one step for all of them').toEqual(step);
    keeper.rest();
    expect(guard.current()).toBeUndefined();
    group.text(file);
    expect(guard.current()?.number, 'another round').toBeGreaterThan(step?.number ?? 0);
    keeper.rest();
  });

  it('is read by another while something hangs, and kept open again afterwards', () => {
    put('port/a', '1\n');
    put('other', '2\n');
    put('large', 'x'.repeat(5_000));
    const guard = new ReadGuard();
    const { keeper, group } = reader(100, guard);
    const elsewhere = keeper.group('.', []);
    const [file, other, large, none] = [group.file('port/a'), elsewhere.file('other'), elsewhere.file('large'), elsewhere.file('none')];
    const outcomes = (): readonly unknown[] => [group.text(file), ...[other, large, none].map((one) => elsewhere.text(one))];
    const readAlone = outcomes();
    expect(readAlone).toEqual([{ text: '1\n' }, { text: '2\n' }, { error: 'ETOOLARGE' }, { error: 'ENOENT' }]);
    const opened = keeper.opened;
    guard.foreign = foreignReads(join(root, 'port'));
    expect(outcomes()).toEqual([{ error: 'EHUNG' }, ...readAlone.slice(1)]);
    expect([keeper.opened, keeper.kept], 'nothing is opened here').toEqual([opened, 0]);
    guard.foreign = undefined;
    put('port/a', '3\n');
    expect(outcomes()).toEqual([{ text: '3\n' }, ...readAlone.slice(1)]);
    expect(keeper.kept).toBe(2);
    for (const each of [group, elsewhere]) each.close();
  });
});

describe('descriptors', () => {
  it('stay within their number, shared fairly by the groups', () => {
    const keeper = new KeptFiles(new Tree(root), 10);
    const groups = Array.from({ length: 5 }, (_, g) => {
      mkdirSync(join(root, `port/${g}`));
      for (let n = 0; n < 6; n += 1) put(`port/${g}/${n}`, `${g}${n}\n`);
      return keeper.group('port', []);
    });
    const files = groups.map((group, g) => Array.from({ length: 6 }, (_, n) => group.file(`port/${g}/${n}`)));
    const before = openFiles();
    for (let round = 0; round < 4; round += 1) {
      for (const [g, group] of groups.entries()) {
        for (const [n, file] of (files[g] as (typeof files)[number]).entries()) expect(group.text(file)).toEqual({ text: `${g}${n}\n` });
      }
      expect(openFiles() - before).toBe(10);
      expect(keeper.kept).toBe(10);
    }
    expect(groups.map((group) => group.kept)).toEqual([2, 2, 2, 2, 2]);
    for (const group of groups) group.close();
    expect(openFiles()).toBe(before);
    expect(keeper.kept).toBe(0);
  });

  it.skipIf(!canLimitDescriptors())(`are given up when the process runs out of them, and everything is read on${noLimits}`, () => {
    const keeper = new KeptFiles(new Tree(root), 1_000);
    const group = keeper.group('port', []);
    const names = Array.from({ length: 200 }, (_, n) => String(n));
    for (const name of names) put(`port/${name}`, `${name}\n`);
    const files = names.map((name) => group.file(`port/${name}`));
    const read = (): (string | undefined)[] => files.map((file) => group.text(file).text);
    const expected = names.map((name) => `${name}\n`);
    withDescriptors(60, () => {
      for (let round = 0; round < 3; round += 1) expect(read()).toEqual(expected);
      expect(keeper.kept).toBeGreaterThan(10);
      expect(keeper.kept).toBeLessThan(50);
      expect(() => closeSync(openSync(join(root, 'port/0'), 'r')), 'room is left for others').not.toThrow();
    });
    const kept = keeper.kept;
    expect(read()).toEqual(expected);
    expect(keeper.kept, 'it stays modest').toBe(kept);
    group.close();
  });

  it('are given back by a group that ends, those of directories too', () => {
    put('port/a', '1\n');
    const before = openFiles();
    const { group } = reader();
    group.text(group.file('port/a'));
    group.hasChanged();
    expect(openFiles()).toBeGreaterThan(before);
    group.close();
    expect(openFiles()).toBe(before);
  });

  it.each([
    [64, 0],
    [256, 0],
    [512, 256],
    [1_024, 512],
    [1_048_576, 65_536],
  ])('of a process that may have %i: %i are kept', (limit, kept) => {
    expect(keepableDescriptors(limit)).toBe(kept);
  });

  it('are counted by the soft limit', () => {
    const line = (soft: string): string => `Limit  Soft Limit  Hard Limit  Units\nMax open files            ${soft}      524288   files\n`;
    expect([line('1024'), line('unlimited'), 'nothing'].map(parseSoftLimit)).toEqual([1_024, 131_072, undefined]);
  });
});

describe('sysfs', () => {
  const isThere = existsSync('/sys/class/net/lo/mtu') && isSysfs('/sys');
  it.skipIf(!isThere)(`is told from other file systems, and needs no look at directories${unless(isThere, 'no sysfs')}`, () => {
    const keeper = new KeptFiles(new Tree('/sys'), 10);
    const group = keeper.group('class/net/lo', ['class/net/lo']);
    const file = group.file('class/net/lo/mtu');
    expect(keeper.invalidates).toBe(true);
    expect(group.hasChanged()).toBe(false);
    expect(group.text(file).text).toMatch(/^\d+\n$/);
    expect(group.text(file)).toBe(group.text(file));
    expect(keeper.opened).toBe(1);
    group.close();
  });

  it('is no directory of files', () => expect(isSysfs(tmpdir())).toBe(false));
});

describe('the time at which a file was last read', () => {
  /** Older than its content, which makes the kernel note the next read. */
  const grown = (): void => {
    put('port/state', '4: ACTIVE\n');
    utimesSync(join(root, 'port/state'), 1_000, 2_000);
    chmodSync(root, 0o755);
    chmodSync(join(root, 'port'), 0o755);
  };
  const readAtMs = (): number => statSync(join(root, 'port/state')).atimeMs;

  it('is left as it was', () => {
    grown();
    const read = told(reader().group, 'port/state');
    expect([read(), read(), readAtMs()]).toEqual(['4: ACTIVE\n', '4: ACTIVE\n', 1_000_000]);
  });

  it.skipIf(!isRoot)(`is noted where another owner may not leave it out, and the file is read all the same${noRoot}`, () => {
    grown();
    const { group } = reader();
    process.seteuid?.(65_534);
    try {
      const read = told(group, 'port/state');
      expect([read(), read()]).toEqual(['4: ACTIVE\n', '4: ACTIVE\n']);
    } finally {
      process.seteuid?.(0);
    }
  });
});
