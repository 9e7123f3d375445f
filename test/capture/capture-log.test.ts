import { describe, expect, it } from 'vitest';
import { CaptureLog } from '../../src/capture/capture-log.ts';
import type { CapturedRead } from '../../src/capture/format.ts';
import type { ObservedCall } from '../../src/model/observation.ts';

const TIMES = { atMs: 0, wallMs: 0 };
const treeOf = (log: CaptureLog): CapturedRead['tree'] => log.read(TIMES).tree;
const log = (): CaptureLog => new CaptureLog([{ name: 'sys', path: '/sys' }]);
const file = (path: string, value: string) => ({ kind: 'file', path, bytes: Buffer.from(value) }) as const;
const call = (code: number, rest: Partial<ObservedCall> = {}): ObservedCall => ({
  ...{ kind: 'library', symbol: 'acmeRead', types: 'u', values: ['7'], code, memory: [] },
  ...rest,
});

describe('the files of a capture', () => {
  it('are complete in each read, with the latest content', () => {
    const tree = log();
    tree.take(file('/sys/a/one', '1'));
    tree.take(file('/sys/a/two', '2'));
    const first = treeOf(tree);
    tree.take(file('/sys/a/two', '3'));
    expect(first['sys/a/two']).toEqual({ file: '2' });
    const directories = { sys: { directory: true }, 'sys/a': { directory: true } };
    expect(treeOf(tree)).toEqual({ ...directories, 'sys/a/one': { file: '1' }, 'sys/a/two': { file: '3' } });
  });

  it('say of a file that nobody read that it has no known content, and keep what is no text', () => {
    const tree = log();
    tree.take({ kind: 'directory', path: '/sys/a', entries: [['b', 'file']] });
    expect(treeOf(tree)['sys/a/b']).toEqual({ error: 'ENODATA' });
    tree.take({ kind: 'file', path: '/sys/a/b', bytes: Uint8Array.of(0xff, 0) });
    expect(treeOf(tree)['sys/a/b']).toEqual({ base64: '/wA=' });
  });

  it('have an error until a read succeeds, and nothing of what is absent', () => {
    const tree = log();
    tree.take({ kind: 'error', path: '/sys/rate', errno: 'EINVAL' });
    expect(treeOf(tree)['sys/rate']).toEqual({ error: 'EINVAL' });
    tree.take(file('/sys/rate', '400'));
    expect(treeOf(tree)['sys/rate']).toEqual({ file: '400' });
    tree.take({ kind: 'absent', path: '/sys/rate' });
    expect(treeOf(tree)).toEqual({ sys: { directory: true } });
  });

  it('lose what a directory no longer lists, with all below', () => {
    const tree = log();
    tree.take(file('/sys/class/mlx5_0/rate', '1'));
    tree.take({ kind: 'directory', path: '/sys/class', entries: [] });
    expect(Object.keys(treeOf(tree))).toEqual(['sys', 'sys/class']);
  });

  it('have no names that would make the archive unreadable, and nothing outside of the places', () => {
    const tree = log();
    const names = ['a\\b', 'a\nb', '\u001b[2J', '\u202e'];
    tree.take({ kind: 'directory', path: '/sys/a', entries: [...names, 'fine'].map((name) => [name, 'file'] as const) });
    for (const name of names) tree.take(file(`/sys/a/${name}`, '1'));
    for (const path of ['/etc/shadow', '/system/x']) tree.take(file(path, 'x'));
    expect(Object.keys(treeOf(tree))).toEqual(['sys', 'sys/a', 'sys/a/fine']);
  });

  it('have relative links, and none that leads out', () => {
    const tree = log();
    tree.take({ kind: 'link', path: '/sys/class/a', target: '../devices/a' });
    tree.take({ kind: 'link', path: '/sys/class/b', target: '/sys/devices/b' });
    tree.take({ kind: 'link', path: '/sys/class/c', target: '/etc/passwd' });
    const links = { 'sys/class/a': { link: '../devices/a' }, 'sys/class/b': { link: '../devices/b' } };
    expect(treeOf(tree)).toMatchObject({ ...links, 'sys/class/c': { error: 'ENODATA' } });
  });
});

describe('calls of a library in a capture', () => {
  it('have the latest answer of a value, and each event with its number', () => {
    const tree = log();
    for (const code of [1, 2, 2]) tree.take(call(code));
    for (const code of [0, 0]) tree.take(call(code, { isEvent: true }));
    expect(tree.read(TIMES).library.map(({ code, event }) => [code, event])).toEqual([
      [2, undefined],
      [0, 0],
      [0, 1],
    ]);
  });
});
