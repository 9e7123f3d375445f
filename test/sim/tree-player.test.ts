import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Frame } from '../../src/capture/frame.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { TreePlayer } from '../../src/sim/replay/tree-player.ts';
import { EMPTY_FRAME } from '../support/empty-frame.ts';

let outer: string;
let root: string;
beforeEach(() => {
  outer = mkdtempSync(join(tmpdir(), 'device-agent-player-'));
  root = join(outer, 'root');
  mkdirSync(root);
});
afterEach(() => rmSync(outer, { recursive: true }));

const play = (frame: Partial<Frame>): void => new TreePlayer(root).apply({ ...EMPTY_FRAME, ...frame }, 'dev/kmsg');

describe('the files of a replay', () => {
  it.each([
    ['an absolute target', { 'sys/a': '/etc' }],
    ['a target above the root', { 'sys/a': '../..' }],
    ['a target that climbs behind a name', { 'sys/a': 'b/../../..' }],
    ['an empty target', { 'sys/a': '' }],
  ])('refuses a link with %s', (_, links) => {
    expect(() => play({ links })).toThrow(/leads out of the capture/);
    expect(readdirSync(outer)).toEqual(['root']);
  });

  it('never writes through a link', () => {
    expect(() =>
      play({ directories: ['sys', 'sys/real'], links: { 'sys/link': 'real' }, files: { 'sys/link/x': Buffer.from('1') } }),
    ).toThrow(/below something that is no directory/);
    expect(readdirSync(join(root, 'sys/real'))).toEqual([]);
  });

  it('replaces a link by a file where it stands', () => {
    play({ files: { 'sys/real': Buffer.from('real') }, links: { 'sys/link': 'real' } });
    play({ files: { 'sys/link': Buffer.from('other') } });
    expect(readFileSync(join(root, 'sys/real'), 'utf8')).toBe('real');
    expect(lstatSync(join(root, 'sys/link')).isSymbolicLink()).toBe(false);
  });

  it('lets reads fail as they failed, also through a link, until a later frame', () => {
    const bytes = Buffer.from('5');
    play({
      files: { 'sys/d/rate': bytes },
      links: { 'sys/c': 'd' },
      unread: ['sys/d/raw'],
      errors: { 'sys/d/rate': 'EINVAL', 'sys/d/raw': 'ENODATA' },
    });
    const roots = {
      sysfs: join(root, 'sys'),
      procfs: join(root, 'proc'),
      dev: join(root, 'dev'),
      'recorded-errors': join(root, 'recorded-errors'),
    };
    const { sys } = createHost(roots, systemClock);
    expect([sys.read('d/rate'), sys.reread('c/rate'), sys.read('c/raw')]).toEqual([
      { error: 'EINVAL' },
      { error: 'EINVAL' },
      { error: 'ENODATA' },
    ]);
    play({ errors: {} });
    expect(sys.reread('c/rate')).toEqual({ text: '5' });
  });

  it('appends to the kernel log, and ends a read that hangs', async () => {
    play({ kernelLog: ['6,1,1,-;one', '6,2,2,-;two\n SUBSYSTEM=pci\n'] });
    play({ kernelLog: ['6,3,3,-;three'] });
    expect(readFileSync(join(root, 'dev/kmsg'), 'utf8')).toBe('6,1,1,-;one\n6,2,2,-;two\n SUBSYSTEM=pci\n6,3,3,-;three\n');
    const player = new TreePlayer(root);
    player.apply({ ...EMPTY_FRAME, unread: ['sys/hangs'], errors: { 'sys/hangs': 'EHUNG' } }, undefined);
    expect(lstatSync(join(root, 'sys/hangs')).isFIFO()).toBe(true);
    player.release();
    expect(existsSync(join(root, 'sys/hangs'))).toBe(false);
  });
});
