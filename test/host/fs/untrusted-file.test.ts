import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { type FileProblemCode, readUntrustedFile, UntrustedFile } from '../../../src/host/fs/untrusted-file.ts';
import type { Observation } from '../../../src/model/observation.ts';
import { ManualClock } from '../../kubelet/support/manual-clock.ts';
import { eventually } from '../../support/until.ts';

const directory = mkdtempSync(join(tmpdir(), 'outside-'));
afterAll(() => rmSync(directory, { recursive: true }));
const MOST = 100_000;

const KINDS: readonly (readonly [string, FileProblemCode, (path: string) => void])[] = [
  ['nothing', 'absent', () => {}],
  ['a pipe', 'not-a-file', (path) => execFileSync('mkfifo', [path])],
  ['a link to an endless device', 'not-a-file', (path) => symlinkSync('/dev/zero', path)],
  ['a terminal', 'not-a-file', (path) => symlinkSync('/dev/ptmx', path)],
  ['a directory', 'not-a-file', (path) => mkdirSync(path)],
  ['a loop of links', 'unreadable', (path) => symlinkSync(path, path)],
  ['a larger file', 'too-large', (path) => writeFileSync(path, 'x'.repeat(MOST + 1))],
];

describe.each([
  ['in the background', (path: string) => new UntrustedFile(path, { mostBytes: MOST, timeoutMs: 5_000 }, systemClock).read()],
  ['once', (path: string) => readUntrustedFile(path, MOST)],
])('a file that others can touch, read %s', (name, read) => {
  it.each(KINDS)('is not read when it is %s', async (kind, problem, place) => {
    const path = join(directory, `${name} ${kind}`);
    place(path);
    const result = await read(path);
    expect(result).toMatchObject({ problem, message: `${path}: ${result.reason}` });
  });

  it.each([0, 1, 65_536, MOST])('is read whole when it has %i bytes', async (size) => {
    const path = join(directory, `${name} ${size}`);
    writeFileSync(path, 'x'.repeat(size));
    expect((await read(path)).text).toHaveLength(size);
  });
});

describe('a file that others can touch, in a capture and in its replay', () => {
  const path = join(directory, 'captured');
  const limits = { mostBytes: MOST, timeoutMs: 5_000 };

  it('tells that its time was over, and not what came later', async () => {
    writeFileSync(path, 'late');
    const clock = new ManualClock();
    const told: Observation[] = [];
    const file = new UntrustedFile(path, limits, clock, { observe: (one) => told.push(one) });
    const reading = file.read();
    clock.advance(5_000);
    expect((await reading).problem).toBe('timeout');
    await eventually(() => expect(file.isPending).toBe(false));
    expect(told).toEqual([{ kind: 'error', path, errno: 'timeout' }]);
    expect((await file.read()).text).toBe('late');
    expect(told.at(-1)).toMatchObject({ kind: 'file', path });
  });
});
