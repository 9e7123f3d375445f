import { describe, expect, it } from 'vitest';
import { Places } from '../../src/capture/places.ts';
import { TreeLog } from '../../src/capture/tree-log.ts';

const log = (): TreeLog => new TreeLog(new Places([{ name: 'sys', path: '/sys' }]));
const text = (value: string): Uint8Array => Buffer.from(value);
const file = (path: string, value: string) => ({ kind: 'file', path, bytes: text(value) }) as const;

describe('the files of a capture', () => {
  it('has only what changed since the last frame', () => {
    const tree = log();
    tree.take(file('/sys/a/one', '1'));
    tree.take(file('/sys/a/two', '2'));
    expect(Object.keys(tree.cut().files)).toEqual(['sys/a/one', 'sys/a/two']);
    tree.take(file('/sys/a/one', '1'));
    tree.take(file('/sys/a/two', '3'));
    expect(Object.keys(tree.cut().files)).toEqual(['sys/a/two']);
  });

  it('says of a file that nobody read that it is unread', () => {
    const tree = log();
    tree.take({ kind: 'directory', path: '/sys/a', entries: [['b', 'file']] });
    expect(tree.cut()).toMatchObject({ unread: ['sys/a/b'], errors: { 'sys/a/b': 'ENODATA' }, directories: ['sys', 'sys/a'] });
    tree.take(file('/sys/a/b', ''));
    expect(tree.cut()).toMatchObject({ unread: [], errors: {}, files: { 'sys/a/b': text('') } });
  });

  it('keeps an error until a read succeeds, and removes what is absent', () => {
    const tree = log();
    tree.take({ kind: 'error', path: '/sys/rate', errno: 'EINVAL' });
    expect(tree.cut().errors).toMatchObject({ 'sys/rate': 'EINVAL' });
    expect(tree.cut().errors).toMatchObject({ 'sys/rate': 'EINVAL' });
    tree.take(file('/sys/rate', '400'));
    expect(tree.cut().errors).toEqual({});
    tree.take({ kind: 'absent', path: '/sys/rate' });
    expect(tree.cut().removed).toEqual(['sys/rate']);
  });

  it('removes what a directory no longer lists, with all below', () => {
    const tree = log();
    tree.take(file('/sys/class/mlx5_0/rate', '1'));
    tree.cut();
    tree.take({ kind: 'directory', path: '/sys/class', entries: [] });
    expect(tree.cut().removed).toEqual(['sys/class/mlx5_0']);
    tree.take(file('/sys/class/mlx5_0/rate', '1'));
    expect(Object.keys(tree.cut().files)).toEqual(['sys/class/mlx5_0/rate']);
  });

  it('leaves out names that would make the archive unreadable', () => {
    const tree = log();
    const names = ['a\\b', 'a\nb', '\u001b[2J', '\u202e'];
    tree.take({ kind: 'directory', path: '/sys/a', entries: [...names, 'fine'].map((name) => [name, 'file'] as const) });
    for (const name of names) tree.take(file(`/sys/a/${name}`, '1'));
    expect(tree.cut()).toMatchObject({ unread: ['sys/a/fine'], directories: ['sys', 'sys/a'], files: {} });
  });

  it('makes links relative, and keeps none that leads out', () => {
    const tree = log();
    tree.take({ kind: 'link', path: '/sys/class/a', target: '../devices/a' });
    tree.take({ kind: 'link', path: '/sys/class/b', target: '/sys/devices/b' });
    tree.take({ kind: 'link', path: '/sys/class/c', target: '/etc/passwd' });
    expect(tree.cut()).toMatchObject({ links: { 'sys/class/a': '../devices/a', 'sys/class/b': '../devices/b' }, unread: ['sys/class/c'] });
  });

  it('leaves out what is outside of its places', () => {
    const tree = log();
    tree.take(file('/etc/shadow', 'x'));
    tree.take(file('/system/x', 'x'));
    expect(tree.cut().files).toEqual({});
  });
});
