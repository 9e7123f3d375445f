import { fork, spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type * as Module from '../../src/supervisor/isolated-reads.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { until } from '../support/until.ts';
import { heldOpen, makeFifo, release } from './fifo.ts';

// The process runs a file of the build.
const DIST = pathToFileURL(resolve('dist')).href;
const { IsolatedReads } = (await import(`${DIST}/supervisor/isolated-reads.js`)) as typeof Module;

const LIMIT = 65_536;
/** Timeout of the first read that hangs, and of each further one. */
const [FIRST_MS, FURTHER_MS] = [500, 100];

let root: string;
let clock: ManualClock;
let reads: Module.IsolatedReads;
let changes: number;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-reads-'));
  clock = new ManualClock();
  reads = new IsolatedReads(clock);
  changes = 0;
  reads.onChange(() => {
    changes += 1;
  });
  reads.use();
});
afterEach(async () => {
  reads.close();
  await until(() => processes().length === 0);
  rmSync(root, { recursive: true, force: true });
});

const directory = (id: string | number): string => join(root, 'class/toy', `${id}`);
const stateOf = (id: string | number): string => join(directory(id), 'state');

function file(id: string | number, text = `${id}`): string {
  mkdirSync(directory(id), { recursive: true });
  writeFileSync(stateOf(id), text);
  return stateOf(id);
}

function fifo(id: string | number): string {
  mkdirSync(directory(id), { recursive: true });
  makeFifo(stateOf(id));
  return stateOf(id);
}

const text = (answer: Uint8Array | string): string => (typeof answer === 'string' ? answer : Buffer.from(answer).toString());
const read = async (path: string, limit = LIMIT): Promise<string> => text(await reads.read(path, limit));

/** Ids of the read processes of this process. */
function processes(): readonly number[] {
  const isOurs = (pid: string): boolean => {
    try {
      const parent = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1];
      return parent === `${process.pid}` && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('read-process.js');
    } catch {
      return false;
    }
  };
  return readdirSync('/proc').filter(isOurs).map(Number);
}

function anonymousKilobytes(pid: number): number {
  return Number(/^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** Reads a FIFO until the read counts as hung, and returns the descriptor of its writer. */
async function hang(id: string | number, timeoutMs: number): Promise<number> {
  const answer = read(stateOf(id));
  const writer = await heldOpen(stateOf(id));
  clock.advance(timeoutMs - 1);
  await pause(20);
  expect(reads.isHung(directory(id))).toBe(false);
  clock.advance(1);
  expect(await answer).toBe('EHUNG');
  expect(reads.isHung(directory(id))).toBe(true);
  return writer;
}

describe('reads by another process', () => {
  it('give what the file says, or why it cannot be read', async () => {
    expect(await read(file('a', 'x\ny\n'))).toBe('x\ny\n');
    expect(await read(file('b', ''))).toBe('');
    expect(await read(file('c', 'z'.repeat(LIMIT + 5)))).toHaveLength(LIMIT);
    expect(await read(stateOf('c'), 3)).toBe('zzz');
    expect(await read(stateOf('none'))).toBe('ENOENT');
    expect(await read(directory('a'))).toBe('EISDIR');
    expect(await read('/proc/self/stat')).toMatch(/^\d+ \(/);
    expect([changes, reads.hungPaths]).toEqual([0, []]);
  });

  it.each([
    [1, 20],
    [7, 20],
    [20, 20],
    [60, 90],
  ])('of which %i of %i hang give all others, and wait once for all that hang', async (hanging, all) => {
    for (let id = 0; id < all; id += 1) (id < hanging ? fifo : file)(id);
    const answers = new Map<number, string>();
    const done = Array.from({ length: all }, async (_, id) => answers.set(id, await read(stateOf(id))));
    await until(() => answers.size === all - hanging);
    for (let id = 0; id < hanging; id += 1) closeSync(await heldOpen(stateOf(id)));
    await Promise.all(done);
    // A read that returned empty when its writer closed hangs again, because no other writer opens the FIFO.
    const again = Array.from({ length: hanging }, (_, id) => read(stateOf(id)));
    clock.advance(FIRST_MS);
    expect(await Promise.all(again)).toEqual(again.map(() => 'EHUNG'));
    expect(reads.hungPaths).toHaveLength(hanging);
    for (let id = 0; id < all; id += 1) expect(await read(stateOf(id))).toBe(id < hanging ? 'EHUNG' : `${id}`);
    expect(processes()).toHaveLength(1);
  });

  it('time out for the first that hangs, sooner for each further one, and at once in the same directory', async () => {
    for (const id of ['a', 'b']) fifo(id);
    writeFileSync(join(directory('a'), 'other'), 'x');
    const writers = [await hang('a', FIRST_MS), await hang('b', FURTHER_MS)];
    expect(await read(join(directory('a'), 'other'))).toBe('EHUNG');
    expect(await read(stateOf('b'))).toBe('EHUNG');
    expect(reads.hungPaths).toEqual([stateOf('a'), stateOf('b')]);
    for (const writer of writers) closeSync(writer);
  });

  it('return, and the device is read again with twice the timeout each time', async () => {
    for (const id of ['a', 'b']) fifo(id);
    const other = await hang('a', FIRST_MS);
    for (const timeoutMs of [FURTHER_MS, 200, 400, 800, 1_600, 2_000, 2_000]) {
      const writer = await hang('b', timeoutMs);
      changes = 0;
      closeSync(writer);
      await until(() => !reads.isHung(directory('b')));
      expect(changes).toBe(1);
    }
    const writer = await hang('b', 2_000);
    release(stateOf('b'), writer, 'again');
    await until(() => !reads.isHung(directory('b')));
    expect(await read(stateOf('b'))).toBe('again');
    expect(reads.isHung(directory('a'))).toBe(true);
    closeSync(other);
  });

  it('are tried in the background when one is known to hang', async () => {
    reads.markHung(fifo('a'));
    reads.markHung(file('b'));
    reads.markHung(file('b'));
    expect([changes, reads.isHung(directory('a')), reads.isHung(directory('b'))]).toEqual([2, true, true]);
    expect(await read(stateOf('a'))).toBe('EHUNG');
    await until(() => !reads.isHung(directory('b')));
    expect(await read(stateOf('b'))).toBe('b');
    release(stateOf('a'), await heldOpen(stateOf('a')), 'a');
    await until(() => !reads.isHung(directory('a')));
    expect(await read(stateOf('a'))).toBe('a');
    expect(changes).toBe(4);
  });
});

describe('the process that reads', () => {
  it('runs from the first read to the last release', async () => {
    reads.use();
    expect(processes()).toEqual([]);
    await read(file('a'));
    expect(processes()).toHaveLength(1);
    fifo('b');
    const hung = await hang('b', FIRST_MS);
    reads.release();
    await read(stateOf('a'));
    expect(processes()).toHaveLength(1);
    reads.release();
    await until(() => processes().length === 0);
    expect(reads.hungPaths).toEqual([]);
    closeSync(hung);
    reads.use();
    expect(await read(stateOf('a')), 'who uses it again gets another one').toBe('a');
    expect(processes()).toHaveLength(1);
  });

  it('is one, and takes little more memory for a hundred reads that hang', async () => {
    await read(file('a'));
    const [pid] = processes() as [number];
    const before = anonymousKilobytes(pid);
    for (let id = 0; id < 100; id += 1) fifo(id);
    const answers = Array.from({ length: 100 }, (_, id) => read(stateOf(id)));
    clock.advance(FIRST_MS);
    expect(await Promise.all(answers)).toEqual(answers.map(() => 'EHUNG'));
    expect(await read(stateOf('a'))).toBe('a');
    expect(processes()).toEqual([pid]);
    expect(before).toBeLessThan(20_000);
    expect(anonymousKilobytes(pid) - before).toBeLessThan(5_000);
  });

  it('is replaced when it was killed, and hung files are read again', async () => {
    file('a');
    fifo('b');
    await read(stateOf('a'));
    closeSync(await hang('b', FIRST_MS));
    await until(() => !reads.isHung(directory('b')));
    const [pid] = processes() as [number];
    const pending = read(stateOf('b'));
    const writer = await heldOpen(stateOf('b'));
    process.kill(pid, 'SIGKILL');
    expect(await pending).toBe('EHUNG');
    expect(reads.hungPaths).toEqual([]);
    expect(await read(stateOf('a'))).toBe('a');
    expect(processes()).toHaveLength(1);
    expect(processes()).not.toContain(pid);
    closeSync(writer);
  });

  it('leaves no directory hung when it ends together with the pending read', async () => {
    fifo('b');
    const writer = await hang('b', FIRST_MS);
    process.kill((processes() as [number])[0], 'SIGKILL');
    await until(() => !reads.isHung(directory('b')));
    expect(changes).toBe(2);
    release(stateOf('b'), writer, 'b');
    // A process that never answered is replaced after a second; one that answered is replaced at once.
    const first = await read(stateOf('b'));
    expect(['EAGAIN', 'b']).toContain(first);
    clock.advance(1_000);
    expect(await read(stateOf('b'))).toBe('b');
  });

  it('is replaced twice a minute while a read hangs, so that a new file is read where the old one is gone', async () => {
    fifo('a');
    const writer = await hang('a', FIRST_MS);
    const [pid] = processes() as [number];
    // Nobody can open the old FIFO any more, so that the read of it never returns.
    rmSync(stateOf('a'));
    file('a', 'new');
    clock.advance(30_000);
    await until(() => !reads.isHung(directory('a')));
    expect(await read(stateOf('a'))).toBe('new');
    clock.advance(5_000);
    await until(() => !processes().includes(pid));
    expect(processes()).toHaveLength(1);
    // The owner is told of the end a moment after the process has left /proc.
    await pause(100);
    clock.advance(5_000);
    expect(reads.stuckProcesses).toBe(0);
    closeSync(writer);
  });

  it('is replaced again and again while the file stays the same, and each of them ends', async () => {
    fifo('a');
    const writer = await hang('a', FIRST_MS);
    for (let trial = 0; trial < 3; trial += 1) {
      const before = processes();
      clock.advance(30_000);
      await until(() => processes().some((pid) => !before.includes(pid)));
      clock.advance(5_000);
      await until(() => before.every((pid) => !processes().includes(pid)));
      expect([reads.isHung(directory('a')), await read(stateOf('a')), processes().length]).toEqual([true, 'EHUNG', 1]);
    }
    closeSync(writer);
  });

  it('does not open the file that an earlier one cannot leave, and opens another file at its place', async () => {
    const child = fork(resolve('dist/supervisor/read-process.js'), [], { serialization: 'advanced', env: {} });
    const { dev, ino } = statSync(fifo('a'));
    const ask = async (except: string): Promise<readonly unknown[]> => {
      const answers: { readonly error?: string; readonly bytes?: Uint8Array; readonly file?: string }[] = [];
      child.on('message', (answer: (typeof answers)[number]) => void answers.push(answer));
      child.send({ id: 1, path: stateOf('a'), limit: LIMIT, except });
      await until(() => answers.some(({ file }) => file === undefined));
      child.removeAllListeners('message');
      return answers.map(({ error, bytes, file }) => error ?? file ?? text(bytes as Uint8Array));
    };
    expect(await ask(`${dev}:${ino}`)).toEqual(['EHUNG']);
    rmSync(stateOf('a'));
    writeFileSync(`${stateOf('a')}.new`, '');
    const now = statSync(file('a', 'new'));
    expect(await ask(`${dev}:${ino}`)).toEqual(now.ino === ino ? ['EHUNG'] : [`${now.dev}:${now.ino}`, 'new']);
    child.kill('SIGKILL');
  });

  it('ends with its owner in every case, even with reads that hang', async () => {
    const path = fifo('a');
    const owner = `
      import { readdirSync, readFileSync } from 'node:fs';
      import { systemClock } from '${DIST}/host/clock.js';
      import { IsolatedReads } from '${DIST}/supervisor/isolated-reads.js';
      const reads = new IsolatedReads(systemClock);
      setInterval(() => {}, 1_000);
      reads.use();
      await reads.read('${path}', 10);
      const isChild = (pid) => readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ').at(-1).split(' ')[1] === String(process.pid);
      const isOurs = (pid) => { try { return isChild(pid); } catch { return false; } };
      process.stdout.write(readdirSync('/proc').find(isOurs), () => process.kill(process.pid, 'SIGKILL'));`;
    const stdio = ['ignore', 'pipe', 'ignore'] as const;
    const { signal, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', owner], { stdio: [...stdio], encoding: 'utf8' });
    expect([signal, Number(stdout)]).toEqual(['SIGKILL', expect.any(Number)]);
    const isThere = (): boolean => existsSync(`/proc/${stdout}/cmdline`) && readFileSync(`/proc/${stdout}/cmdline`, 'utf8') !== '';
    for (let looks = 0; looks < 200 && isThere(); looks += 1) await pause(25);
    const isLeft = isThere();
    if (isLeft) process.kill(Number(stdout), 'SIGKILL');
    expect(isLeft).toBe(false);
  });

  it('that cannot be started without descriptors makes every read fail with that reason', () => {
    const owner = `
      import { openSync } from 'node:fs';
      import { systemClock } from '${DIST}/host/clock.js';
      import { IsolatedReads } from '${DIST}/supervisor/isolated-reads.js';
      const reads = new IsolatedReads(systemClock);
      const timer = setInterval(() => {}, 1_000);
      try { for (;;) openSync('/dev/null'); } catch {}
      reads.use();
      reads.markHung('${stateOf('b')}');
      const answer = await reads.read('${file('a')}', 10);
      process.stdout.write(answer + ' ' + reads.hungPaths.length);
      clearInterval(timer);`;
    const words = ['-c', 'ulimit -n 64 && exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', owner];
    const { stdout, stderr, status } = spawnSync('sh', words, { encoding: 'utf8' });
    expect(stderr).toBe('');
    expect([stdout, status]).toEqual(['EMFILE 0', 0]);
  });
});
