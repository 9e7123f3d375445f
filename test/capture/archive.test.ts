import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { packCapture, unpackCapture } from '../../src/capture/archive.ts';
import { captureOf, EMPTY_READ } from '../support/one-capture.ts';

const capture = captureOf({ tree: { 'sys/a/rate': { file: '41\n' }, 'sys/b': { link: 'a' } }, wallMs: 1_700_000_000_000 });
const whole = packCapture(capture);
/** The archive with another value at a place of its first read. */
const reading = (read: object): Buffer => gzipSync(JSON.stringify({ ...capture, reads: [{ ...EMPTY_READ, ...read }, EMPTY_READ] }));
const withPath = (path: string): Buffer => reading({ tree: { [path]: { file: '' } } });
/** The head of a tar archive, as versions before the first release wrote them. */
const film = Buffer.alloc(1_024);
film.write('manifest.json', 0, 'latin1');
film.write('ustar\u000000', 257, 'latin1');

describe('an archive', () => {
  it('is read as it was written, and each file is a text in it', () => {
    expect(unpackCapture(whole)).toEqual(capture);
    expect(gunzipSync(whole).toString()).toContain('"sys/a/rate": {\n     "file": "41\\n"\n');
  });

  it.each([
    ['a path above', withPath('sys/../../etc/passwd'), /path "sys\/..\/..\/etc\/passwd" is not allowed/],
    ['an absolute path', withPath('/etc/passwd'), /is not allowed/],
    ['a program', withPath('bin/nvidia-smi'), /is not allowed/],
    ['a place of the replay', withPath('kubelet/kubelet.sock'), /is not allowed/],
    ['an empty part of a path', withPath('sys//b'), /is not allowed/],
    ['a backslash in a path', withPath('sys\\..\\b'), /is not allowed/],
    ['a line break in a path', withPath('sys/a\nb'), /is not allowed/],
    ['a path that turns its text around', withPath('sys/a\u202eb'), /is not allowed/],
    ['a name that no file can have', withPath(`sys/${'x'.repeat(256)}`), /is not allowed/],
    ['a path that is too long', withPath(`sys/${'a/'.repeat(2_049)}b`), /is not allowed/],
    ['an entry of two kinds', reading({ tree: { sys: { file: '', link: 'a' } } }), /damaged/],
    ['an error that is no name', reading({ tree: { 'sys/a': { error: 'E\nEIO' } } }), /damaged: capture\/reads\/0\/tree/],
    ['a signal that is none', reading({ commands: [{ program: 'a', args: [], stdout: '', stderr: '', signal: 'TERM; x' }] }), /damaged/],
    ['one read', gzipSync(JSON.stringify({ ...capture, reads: [EMPTY_READ] })), /damaged: capture\/reads/],
    ['another version', gzipSync(JSON.stringify({ ...capture, format: 3 })), /has format 3, and this version .* reads format 2/],
    ['the films of earlier versions', gzipSync(film), /has format 1, and this version .* reads format 2; capture the node again/],
    ['another document', gzipSync('{"reads":[]}'), /no capture of device-agent/],
    ['a cut end', whole.subarray(0, 100), /cut off/],
    ['another file', Buffer.from('hello'), /damaged, or no capture/],
    ['a text without compression', gunzipSync(whole), /damaged, or no capture/],
    ['too many levels', gzipSync('['.repeat(100_000)), /no capture/],
  ])('is refused with %s', (_, archive, problem) => {
    expect(() => unpackCapture(archive)).toThrow(problem);
  });

  it('is refused when it would fill the memory', () => {
    const bomb = gzipSync(Buffer.alloc(129 * 2 ** 20), { level: 1 });
    expect(bomb.length).toBeLessThan(2 ** 22);
    expect(() => unpackCapture(bomb)).toThrow(/larger than \d+ bytes/);
  });
});
