import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { keepableDescriptors, OpenFiles, parseSoftLimit } from '../../../src/host/fs/open-files.ts';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { Tree } from '../../../src/host/fs/tree.ts';
import { canLimitDescriptors, withDescriptors } from '../../support/descriptor-limit.ts';
import { WatchedGuard } from '../../support/guarded.ts';
import { removeAsKernel } from '../../support/kernel-files.ts';
import { unless } from '../../support/skipped.ts';

let root: string;
let tree: Tree;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-open-files-'));
  mkdirSync(join(root, 'port'));
  tree = new Tree(root);
});
afterEach(() => {
  tree.forget('port');
  rmSync(root, { recursive: true, force: true });
});

const put = (path: string, text: string): void => writeFileSync(join(root, path), text);
/** Names of this test's files that are open in this process. */
const open = (): readonly string[] =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return '';
      }
    })
    .filter((path) => path.startsWith(root))
    .map((path) => path.slice(root.length + 1))
    .sort();
const noLimits = unless(canLimitDescriptors(), 'no prlimit');

describe('a file that is read again', () => {
  it('stays open, and each read returns the present content', () => {
    for (const text of ['1\n', '22\n', '3\n']) {
      put('port/a', text);
      expect(tree.reread('port/a')).toEqual({ text });
      expect(open()).toEqual(['port/a']);
    }
  });

  it.each([
    ['is removed', () => removeAsKernel(join(root, 'port/a')), { error: 'ENOENT' }],
    [
      'turns into a directory',
      () => {
        removeAsKernel(join(root, 'port/a'));
        mkdirSync(join(root, 'port/a'));
      },
      { error: 'EISDIR' },
    ],
    [
      'is made anew',
      () => {
        removeAsKernel(join(root, 'port/a'));
        put('port/a', '2\n');
      },
      { text: '2\n' },
    ],
    ['loses its directory', () => removeAsKernel(join(root, 'port')), { error: 'ENOENT' }],
    ['is empty', () => put('port/a', ''), { text: '' }],
    ['is too large', () => put('port/a', 'x'.repeat(65_536)), { error: 'ETOOLARGE' }],
  ])('tells nothing old when it %s', (_, change, expected) => {
    put('port/a', '1\n');
    for (let n = 0; n < 2; n += 1) expect(tree.reread('port/a')).toEqual({ text: '1\n' });
    change();
    for (let n = 0; n < 2; n += 1) expect(tree.reread('port/a')).toEqual(expected);
  });

  it('is read again when its name exists again', () => {
    expect(tree.reread('port/a')).toEqual({ error: 'ENOENT' });
    put('port/a', '5\n');
    expect(tree.reread('port/a')).toEqual({ text: '5\n' });
  });

  it('follows its directory to another name until that name is forgotten', () => {
    put('port/a', '1\n');
    tree.reread('port/a');
    renameSync(join(root, 'port'), join(root, 'old'));
    mkdirSync(join(root, 'port'));
    put('port/a', '2\n');
    expect(tree.reread('port/a')).toEqual({ text: '1\n' });
    tree.forget('port');
    expect(tree.reread('port/a')).toEqual({ text: '2\n' });
    expect(open()).toEqual(['port/a']);
  });

  it('is recorded by the guard while it is read, opened or not', () => {
    put('port/a', '1\n');
    const guard = new WatchedGuard();
    const entered: string[] = [];
    guard.enter = (path, kind) => {
      entered.push(path.slice(root.length + 1));
      return WatchedGuard.prototype.enter.call(guard, path, kind);
    };
    const guarded = new Tree(root, guard);
    for (const path of ['port/a', 'port/a', 'port/none']) guarded.reread(path);
    expect(entered).toEqual(['port/a', 'port/a', 'port/none']);
    expect(guard.current).toBeUndefined();
    guarded.forget('port');
  });

  it('is not read below a place in which something hangs', () => {
    put('port/a', '1\n');
    put('b', '2\n');
    const guard = new StepGuard([join(root, 'port')]);
    const guarded = new Tree(root, guard);
    expect([guarded.reread('port/a'), guarded.reread('b')]).toEqual([{ error: 'EHUNG' }, { text: '2\n' }]);
    guard.leftOut = [];
    expect(guarded.reread('port/a')).toEqual({ text: '1\n' });
    guarded.forget('port');
  });

  const isSysfs = existsSync('/sys/class/net/lo/mtu');
  it.skipIf(!isSysfs)(`tells the same in sysfs${unless(isSysfs, 'no sysfs')}`, () => {
    const sys = new Tree('/sys');
    for (let n = 0; n < 3; n += 1) expect(sys.reread('class/net/lo/mtu')).toEqual(sys.read('class/net/lo/mtu'));
    for (let n = 0; n < 2; n += 1) expect(sys.reread('class/net/lo/speed')).toEqual({ error: 'EINVAL' });
    sys.forget('class/net/lo');
  });
});

describe('a file that did not change', () => {
  it('gives the same object while it holds the same', () => {
    put('port/0', '7\n');
    const first = tree.reread('port/0');
    expect(tree.reread('port/0')).toBe(first);
    put('port/0', '8\n');
    const second = tree.reread('port/0');
    expect(second).toEqual({ text: '8\n' });
    put('port/0', '7\n');
    expect(tree.reread('port/0')).toEqual(first);
    tree.forget('port');
  });
});

describe('descriptors', () => {
  const into = Buffer.alloc(64);
  const names = Array.from({ length: 5 }, (_, n) => `port/${n}`);

  it('stay within the limit: the files that were opened first stay open', () => {
    const files = new OpenFiles(root, 4);
    for (const name of names) put(name, `${name}\n`);
    const read = (name: string): string | undefined => files.read(name, [into])?.text;
    for (const at of [0, 1, 2, 3, 4, 0, 4]) expect(read(`port/${at}`)).toBe(`port/${at}\n`);
    expect(open()).toEqual(['port/0', 'port/1', 'port/2', 'port/3']);
    files.forget('por');
    expect(open().length).toBe(4);
    files.forget('port');
    expect(open()).toEqual([]);
  });

  it('of files that nobody reads any more go to others', () => {
    let nowMs = 0;
    const files = new OpenFiles(root, 2, () => nowMs);
    for (const name of names) put(name, 'x');
    for (const at of [0, 1, 2]) files.read(`port/${at}`, [into]);
    nowMs = 599_999;
    for (const at of [0, 3]) files.read(`port/${at}`, [into]);
    expect(open()).toEqual(['port/0', 'port/1']);
    nowMs += 60_000;
    files.read('port/3', [into]);
    expect(open()).toEqual(['port/0', 'port/3']);
    files.forget('port');
  });

  it('are not kept when the limit is 0', () => {
    const files = new OpenFiles(root, 0);
    put('port/0', 'x');
    expect([files.read('port/0', [into]), open()]).toEqual([{ text: 'x' }, []]);
  });

  it.skipIf(!canLimitDescriptors())(`give way when the process runs out of them, which is told once${noLimits}`, () => {
    const many = Array.from({ length: 200 }, (_, n) => `port/${n}`);
    for (const name of many) put(name, `${name}\n`);
    const read = (): number => many.filter((name) => tree.reread(name).text === `${name}\n`).length;
    withDescriptors(60, () => {
      expect(read()).toBeLessThan(many.length);
      const { shortages } = tree;
      expect(shortages).toBeGreaterThan(0);
      for (let round = 0; round < 3; round += 1) expect(read()).toBe(many.length);
      expect(tree.shortages).toBe(shortages);
    });
    expect(read()).toBe(many.length);
    expect(open().length).toBeGreaterThan(10);
    expect(open().length, 'it stays modest').toBeLessThan(50);
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
