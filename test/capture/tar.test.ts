import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { unpackCapture } from '../../src/capture/archive.ts';
import { packTar, type TarEntry } from '../../src/capture/tar.ts';
import { unpackTar } from '../../src/capture/untar.ts';
import { EMPTY_FRAME } from '../support/empty-frame.ts';

const entry = (path: string, text: string): TarEntry => ({ path, bytes: Buffer.from(text) });
const manifest = (more: object = {}): TarEntry =>
  entry(
    'manifest.json',
    JSON.stringify({ format: 1, agentVersion: '1', node: 'n', isRedacted: true, options: {}, parts: {}, frames: 1, ...more }),
  );
// An archive has the files and the page of a frame as entries of their own.
const { files: _files, page: _page, ...EMPTY } = EMPTY_FRAME;
const frame = (more: object = {}): TarEntry => entry('frames/00000/frame.json', JSON.stringify({ ...EMPTY, ...more }));
const inDirectory = <T>(work: (directory: string) => T): T => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-tar-'));
  try {
    return work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
};
/** What tar of this machine makes of some commands in a shell. */
const tarOf = (script: string): Buffer =>
  inDirectory((directory) => {
    execFileSync('sh', ['-c', script], { cwd: directory });
    return readFileSync(join(directory, 'a.tar'));
  });

describe('an archive', () => {
  const long = `sys/${'devices/'.repeat(40)}0000:3b:00.0/${'x'.repeat(120)}`;
  const entries = [
    entry('a', ''),
    entry(`sys/${'d'.repeat(60)}/${'e'.repeat(60)}`, '1\n'),
    entry(long, 'deep'),
    entry('ä/ö', 'x'.repeat(513)),
  ];

  it('is read by tar, with every path', () => {
    const listed = inDirectory((directory) => {
      writeFileSync(join(directory, 'a.tar'), packTar(entries, 1_000_000_000_000));
      execFileSync('tar', ['xf', 'a.tar'], { cwd: directory });
      return entries.map(({ path }) => readFileSync(join(directory, path), 'utf8'));
    });
    expect(listed).toEqual(entries.map(({ bytes }) => Buffer.from(bytes).toString()));
  });

  it('is read as it was written', () => {
    const read = unpackTar(packTar(entries, 0)).map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]);
    expect(read).toEqual(entries.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()]));
  });
});

describe('an archive of somebody else', () => {
  const whole = packTar([manifest(), frame()], 0);

  it('is accepted when it is a capture', () => {
    expect(unpackCapture(gzipSync(whole)).frames).toHaveLength(1);
  });

  it.each([
    ['a path above', packTar([manifest(), frame(), entry('frames/00000/tree/../../../etc/passwd', 'x')], 0), /path .* is not allowed/],
    ['an absolute path', packTar([entry('/etc/passwd', 'x')], 0), /path "\/etc\/passwd" is not allowed/],
    ['a path above in a frame', packTar([manifest(), frame({ removed: ['../../home'] })], 0), /path "..\/..\/home" is not allowed/],
    ['an absolute path in a frame', packTar([manifest(), frame({ errors: { '/etc/passwd': 'EIO' } })], 0), /is not allowed/],
    ['a program', packTar([manifest(), frame(), entry('frames/00000/tree/bin/nvidia-smi', 'rm -rf /')], 0), /path "bin.* is not allowed/],
    ['a place of the replay', packTar([manifest(), frame({ unread: ['kubelet/kubelet.sock'] })], 0), /is not allowed/],
    ['an empty part of a path', packTar([entry('a//b', 'x')], 0), /path "a\/\/b" is not allowed/],
    ['a backslash in a path', packTar([entry('a\\..\\b', 'x')], 0), /is not allowed/],
    ['a line break in a path', packTar([entry('a\nb', 'x')], 0), /is not allowed/],
    ['a path that turns its text around', packTar([entry('a\u202eb', 'x')], 0), /is not allowed/],
    ['a name that no file can have', packTar([entry(`a/${'x'.repeat(256)}`, 'x')], 0), /is not allowed/],
    ['a path that is too long', packTar([entry('a/'.repeat(2_049), 'x')], 0), /is not allowed/],
    ['a directory above', tarOf('mkdir d; tar cf a.tar --transform "s,d,../d," -P d'), /path "\.\.\/d\/" is not allowed/],
    ['a device', tarOf('tar cf a.tar -P /dev/null --transform "s,/dev/,,"'), /"null" is no regular file/],
    ['a symbolic link', tarOf('ln -s /etc/passwd link; tar cf a.tar link'), /"link" is no regular file/],
    ['a hard link', tarOf('touch a; ln a b; tar cf a.tar a b'), /"b" is no regular file/],
    ['a pipe', tarOf('mkfifo p; tar cf a.tar p'), /"p" is no regular file/],
    ['the same file twice', packTar([manifest(), manifest()], 0), /twice/],
    ['a cut end', whole.subarray(0, 700), /cut off/],
    ['a cut compression', gzipSync(whole).subarray(0, 200), /cut off or damaged/],
    ['a changed header', Buffer.from(whole.toString('latin1').replace('manifest', 'manifesd'), 'latin1'), /no tar archive/],
    ['other files', packTar([entry('README', 'hello')], 0), /no capture of device-agent/],
    ['another version', packTar([manifest({ format: 2 }), frame()], 0), /has format 2, and this version .* reads format 1/],
    ['no frame', packTar([manifest({ frames: 0 })], 0), /no frame/],
    ['fewer frames than it says', packTar([manifest({ frames: 2 }), frame()], 0), /frames\/00001 is missing/],
    ['a frame of another shape', packTar([manifest(), frame({ links: { a: 1 } })], 0), /frames\/00000 is missing or damaged/],
    ['an error that is no name', packTar([manifest(), frame({ errors: { 'sys/a': 'E\nEIO /etc/passwd' } })], 0), /damaged/],
    ['a text file', Buffer.from('hello'), /cut off/],
  ])('is refused with %s', (_, archive, problem) => {
    expect(() => unpackCapture(archive)).toThrow(problem);
  });

  it('is refused when it would fill the memory', () => {
    const bomb = gzipSync(Buffer.alloc(257 * 2 ** 20), { level: 1 });
    expect(bomb.length).toBeLessThan(2 ** 22);
    expect(() => unpackCapture(bomb)).toThrow(/larger than \d+ bytes/);
  });
});
