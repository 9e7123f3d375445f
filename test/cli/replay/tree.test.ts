import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CapturedRead, Entry } from '../../../src/capture/format.ts';
import { writeTree } from '../../../src/cli/replay/tree.ts';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { openKmsg } from '../../../src/host/kernel-log/reader.ts';
import { EMPTY_READ } from '../../support/one-capture.ts';

let outer: string;
let root: string;
beforeEach(() => {
  outer = mkdtempSync(join(tmpdir(), 'device-agent-player-'));
  root = join(outer, 'root');
  mkdirSync(root);
  before = {};
});
afterEach(() => rmSync(outer, { recursive: true }));

let before: CapturedRead['tree'] = {};
function write(tree: Readonly<Record<string, Entry>>, read: Partial<CapturedRead> = {}, laterMs = 0): readonly string[] {
  const pipes = writeTree(root, { ...EMPTY_READ, tree, ...read }, 'dev/kmsg', { laterMs, before });
  before = tree;
  return pipes;
}

describe('the files of a replay', () => {
  it('are whole again after a directory was something else, or had no entry of its own', () => {
    const first: Record<string, Entry> = {
      'sys/a': { directory: true },
      'sys/a/b': { file: 'b' },
      'sys/c/d': { file: 'd' },
      'sys/e': { file: '1' },
    };
    write(first);
    write({ ...first, 'sys/a': { directory: true }, 'sys/e': { file: '2' } });
    expect(readFileSync(join(root, 'sys/e'), 'utf8')).toBe('2');
    write({ 'sys/a': { file: 'x' }, 'sys/c/d': { file: 'd' } });
    write(first);
    expect(['a/b', 'c/d', 'e'].map((path) => readFileSync(join(root, 'sys', path), 'utf8'))).toEqual(['b', 'd', '1']);
  });

  it.each([
    ['an absolute target', '/etc'],
    ['a target above the root', '../..'],
    ['a target that climbs behind a name', 'b/../../..'],
    ['an empty target', ''],
  ])('refuses a link with %s', (_, link) => {
    expect(() => write({ 'sys/a': { link } })).toThrow(/leads out of the capture/);
    expect(readdirSync(outer)).toEqual(['root']);
  });

  it('never writes through a link', () => {
    expect(() => write({ 'sys/a': { directory: true }, 'sys/link': { link: 'a' }, 'sys/link/x': { file: '1' } })).toThrow(
      /below something that is no directory/,
    );
    expect(readdirSync(join(root, 'sys/a'))).toEqual([]);
  });

  it('are those of the read: what it does not have is gone, and an open file has the new content', () => {
    write({ 'sys/real': { file: 'real' }, 'sys/link': { link: 'real' }, 'sys/gone/a': { file: 'x' }, 'sys/same': { file: '1' } });
    const [gone, same] = ['sys/gone/a', 'sys/same'].map((path) => openSync(join(root, path), 'r')) as [number, number];
    writeFileSync(join(root, 'library.json'), 'of the replay');
    write({ 'sys/real': { file: 'real' }, 'sys/link': { file: 'other' }, 'sys/same': { base64: 'Mg==' } });
    expect(readFileSync(join(root, 'sys/real'), 'utf8')).toBe('real');
    expect(readFileSync(join(root, 'sys/link'), 'utf8')).toBe('other');
    expect(readdirSync(join(root, 'sys'))).toEqual(['link', 'real', 'same']);
    expect(readdirSync(root)).toEqual(['library.json', 'sys']);
    expect([readFileSync(gone, 'utf8'), readFileSync(same, 'utf8')]).toEqual(['', '2']);
    for (const fd of [gone, same]) closeSync(fd);
  });

  it('let reads fail as they failed, also through a link and in a listing, and name device nodes as a machine does', () => {
    write({
      'sys/d/rate': { error: 'EINVAL' },
      'sys/c': { link: 'd' },
      'sys/closed': { error: 'EACCES' },
      'proc/7/fd/4': { link: '../../../dev/dri/renderD128' },
    });
    const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), isReplay: true } as const;
    const { sys, proc } = createHost(roots, systemClock);
    const errors = [sys.read('d/rate'), sys.reread('c/rate'), sys.listing('closed')].map(({ error }) => error);
    expect(errors).toEqual(['EINVAL', 'EINVAL', 'EACCES']);
    expect([sys.bytes('d/rate', 10), sys.exists('d/rate'), sys.link('c')]).toEqual([undefined, true, 'd']);
    expect(proc.link('7/fd/4')).toBe('/dev/dri/renderD128');
  });

  it('have the records of the kernel log, its error, and the boot as long ago as it was', () => {
    const kernelLog = ['6,1,1,-;one', '6,2,2,-;two\n SUBSYSTEM=pci\n'];
    write({ 'dev/kmsg': { file: '' }, 'proc/stat': { file: 'cpu 1\nbtime 1000\n' } }, { kernelLog }, 5_000);
    expect(readFileSync(join(root, 'dev/kmsg'), 'utf8')).toBe('6,1,1,-;one\n6,2,2,-;two\n SUBSYSTEM=pci\n');
    expect(readFileSync(join(root, 'proc/stat'), 'utf8')).toBe('cpu 1\nbtime 1005\n');
    write({ 'dev/kmsg': { error: 'EPERM' } });
    const reader = openKmsg({ path: join(root, 'dev/kmsg'), clock: systemClock, onRecord: () => {} });
    reader.poll();
    expect(reader.status().problem?.code).toBe('kmsg-denied');
    reader.close();
  });
});
