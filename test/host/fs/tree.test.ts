import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { Tree } from '../../../src/host/fs/tree.ts';
import { WatchedGuard } from '../../support/guarded.ts';

const root = mkdtempSync(join(tmpdir(), 'device-agent-tree-'));
const tree = new Tree(root);

mkdirSync(join(root, 'directory/sub'), { recursive: true });
writeFileSync(join(root, 'directory/b'), 'text\n');
writeFileSync(join(root, 'directory/a'), Buffer.from([0xff, 0x00, 0x15, 0xb3]));
writeFileSync(join(root, 'empty'), '');
writeFileSync(join(root, 'large'), Buffer.alloc(70_000, 0x31));
symlinkSync('directory/b', join(root, 'link'));
symlinkSync('loop', join(root, 'loop'));
symlinkSync('nowhere', join(root, 'dangling'));

afterAll(() => rmSync(root, { recursive: true, force: true }));

describe('Tree', () => {
  it.each([
    ['directory/b', { text: 'text\n' }],
    ['link', { text: 'text\n' }],
    ['empty', { text: '' }],
    ['large', { error: 'ETOOLARGE' }],
    ['directory', { error: 'EISDIR' }],
    ['nowhere', { error: 'ENOENT' }],
    ['dangling', { error: 'ENOENT' }],
    ['loop', { error: 'ELOOP' }],
    ['empty/below', { error: 'ENOTDIR' }],
  ])('reads %s as %j', (path, result) => {
    expect(tree.read(path)).toEqual(result);
  });

  it('reads the first bytes of a binary file, or fewer if the file is shorter', () => {
    expect(tree.bytes('directory/a', 2)).toEqual(Buffer.from([0xff, 0x00]));
    expect(tree.bytes('directory/a', 64)).toEqual(Buffer.from([0xff, 0x00, 0x15, 0xb3]));
    expect(tree.bytes('empty', 64)).toEqual(Buffer.alloc(0));
    expect(tree.bytes('directory', 64)).toBeUndefined();
    expect(tree.bytes('nowhere', 64)).toBeUndefined();
  });

  it('distinguishes an absent directory from one that cannot be listed', () => {
    expect(tree.listing('directory')).toEqual({ names: ['a', 'b', 'sub'] });
    expect(tree.listing('nowhere')).toEqual({ error: 'ENOENT' });
    expect(tree.listing('empty')).toEqual({ error: 'ENOTDIR' });
    expect(tree.list('empty')).toEqual([]);
  });

  it('distinguishes a directory from another that gets its name', () => {
    mkdirSync(join(root, 'place'));
    const first = tree.identity('place');
    expect(tree.identity('place')).toBe(first);
    renameSync(join(root, 'place'), join(root, 'old'));
    expect(tree.identity('place')).toBeUndefined();
    mkdirSync(join(root, 'place'));
    expect(tree.identity('place')).not.toBe(first);
  });

  it('records each read in its guard', () => {
    const guard = new WatchedGuard();
    const entered: (string | undefined)[] = [];
    guard.enter = (path, kind) => {
      entered.push(path.slice(root.length + 1));
      return WatchedGuard.prototype.enter.call(guard, path, kind);
    };
    const guarded = new Tree(root, guard);
    guarded.read('directory/b');
    guarded.read('nowhere');
    guarded.bytes('directory/a', 4);
    guarded.bytes('nowhere', 4);
    expect(entered).toEqual(['directory/b', 'nowhere', 'directory/a', 'nowhere']);
    expect(guard.current, 'ended, whatever came of it').toBeUndefined();
  });

  it('returns EHUNG for a file in a closed place', () => {
    const guarded = new Tree(root, new StepGuard([join(root, 'directory')]));
    expect(guarded.read('directory/b')).toEqual({ error: 'EHUNG' });
    expect(guarded.bytes('directory/a', 4)).toBeUndefined();
    expect(guarded.text('link'), 'another way to the same file is another path').toBe('text');
  });
});
