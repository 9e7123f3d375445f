import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { applied, difference } from '../../../src/host/fs/saved-change.ts';
import { type SavedSections, SavedStateFile } from '../../../src/host/fs/saved-state.ts';
import { type Choose, seeded } from '../../support/seeded.ts';

const FORMAT = { format: 'test-state', version: 5, name: 'test state' };
const MIB = 1_048_576;

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'device-agent-saved-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = (): string => join(folder, 'state.json');
const file = (maxBytes = 16 * MIB): SavedStateFile => new SavedStateFile(path(), FORMAT, 'boot', maxBytes);
const bodyOf = async (): Promise<unknown> => (await file().read()).body;
const inode = (): number => statSync(path()).ino;

/** 500 entries, of which a few count. Random digits do not compress. */
function large(turn: number): SavedSections {
  const pick = seeded(3);
  const entries = Array.from({ length: 500 }, (_, at) => [`entry ${at}`, { fixed: `${pick(1e9)}${pick(1e9)}`, count: at < 3 ? turn : 0 }]);
  return { entries: Object.fromEntries(entries), times: { atMs: turn } };
}

/** Texts that do not compress. */
function seededTexts(count: number): readonly string[] {
  const pick = seeded(5);
  return Array.from({ length: count }, () => `${pick(1e9)}${pick(1e9)}`);
}

function randomValue(pick: Choose, depth = 3): unknown {
  const kind = pick(depth === 0 ? 5 : 8);
  if (kind < 5) return [null, pick(3), `text ${pick(3)}`, pick(2) === 0, pick(9) / 7][kind];
  const members = Array.from({ length: pick(4) }, () => randomValue(pick, depth - 1));
  return kind === 5 ? members : Object.fromEntries(members.map((one, at) => [`name/${at} ${pick(2)}`, one]));
}

describe('a difference', () => {
  it('makes the second of any two JSON values of the first', () => {
    const pick = seeded(11);
    for (let turn = 0; turn < 3_000; turn += 1) {
      const [before, after] = [randomValue(pick), randomValue(pick)];
      const changed = difference(before, after);
      const copy: unknown = JSON.parse(JSON.stringify(before));
      expect(changed === undefined ? copy : applied(copy, JSON.parse(JSON.stringify(changed)))).toEqual(after);
      expect(difference(after, JSON.parse(JSON.stringify(after)))).toBeUndefined();
    }
  });

  it('takes an undefined member as absent, and keeps a null', () => {
    expect(difference({ a: 1 }, { a: 1, b: undefined })).toBeUndefined();
    expect(difference({ a: 1, b: 2 }, { a: null, b: undefined })).toEqual({ a: [null], b: [] });
  });

  it('changes no prototype', () => {
    const hostile = JSON.parse('{"__proto__":{"polluted":[1]},"constructor":{"prototype":{"polluted":[1]}}}');
    applied({}, hostile);
    expect({}).not.toHaveProperty('polluted');
  });
});

describe('a saved state', () => {
  it('costs what changed, and is the latest state after each write', async () => {
    const one = file();
    await one.write(large(0));
    const first = statSync(path());
    for (let turn = 1; turn <= 20; turn += 1) {
      expect(await one.write(large(turn))).toBeUndefined();
      expect(await bodyOf()).toEqual(large(turn));
    }
    const now = statSync(path());
    expect(now.ino, 'the same file').toBe(first.ino);
    expect(now.size - first.size).toBeLessThan(20 * 200);
    expect(now.mode & 0o777).toBe(0o600);
  });

  it('names a value once, and from then on gives it by its number, once for all that have it', async () => {
    const one = file();
    const state = (turn: number): SavedSections => ({
      all: { a: { seconds: turn, of: [turn, 'x'] }, b: { seconds: turn, word: `at ${turn}` } },
    });
    for (const turn of [0, 1, 2]) await one.write(state(turn));
    const lines = readFileSync(path(), 'utf8').trimEnd().split('\n').slice(2);
    expect(lines.map((line) => JSON.parse(line.slice(9)))).toEqual([
      { set: [], named: { all: { a: { seconds: [1], of: { 0: [1] } }, b: { seconds: [1], word: ['at 1'] } } } },
      {
        set: [
          [2, 0, 1, 2],
          ['at 2', 3],
        ],
        named: {},
      },
    ]);
  });

  it('is the latest of any states after each write', async () => {
    const pick = seeded(17);
    // Names of digits come first in an object, whatever their order was.
    const randomSections = (): SavedSections =>
      Object.fromEntries(
        ['one', 'two', '3']
          .filter(() => pick(9) > 0)
          .map((section) => {
            const names = ['b', '20', 'a', '10', 'text/5'].filter(() => pick(5) > 0);
            return [section, Object.fromEntries(names.map((name) => [name, pick(2) === 0 ? BigInt(pick(3)) : randomValue(pick)]))];
          }),
      );
    const plain = (state: SavedSections): unknown =>
      JSON.parse(JSON.stringify(state, (_, one) => (typeof one === 'bigint' ? `${one}` : one)));
    const one = file();
    let most = 0;
    const known = new Set<string>();
    for (let turn = 0; turn < 150; turn += 1) {
      const state = randomSections();
      expect(await one.write(state)).toBeUndefined();
      for (const section of Object.keys(state)) known.add(section);
      // A section without entries may stay.
      const empty = Object.fromEntries([...known].map((section) => [section, {}]));
      const body = await bodyOf();
      expect({ ...empty, ...(body as object) }).toEqual({ ...empty, ...(plain(state) as object) });
      most = Math.max(most, readFileSync(path(), 'utf8').split('\n').length);
    }
    expect(most).toBeGreaterThan(100);
  });

  it.each([
    ['names a value that has no number', '{"set":[[1,7]],"named":{}}'],
    ['names a value that is gone', '{"set":[[1,0]],"named":{}}'],
    ['has a list as value', '{"set":[[[1],0]],"named":{}}'],
    ['names no numbers', '{"times":{"turn":[2]}}'],
  ])('is damaged by a line that %s', async (_, text) => {
    const one = file();
    for (const state of [
      { gone: { a: { b: 1 } }, times: { turn: 0 } },
      { gone: { a: { b: 2 } }, times: { turn: 1 } },
      { gone: {}, times: { turn: 1 } },
    ])
      await one.write(state);
    const header = readFileSync(path(), 'utf8').split('\n', 1)[0] as string;
    const spoilt = `${crc32(text, crc32(header)).toString(16).padStart(8, '0')} ${text}\n`;
    appendFileSync(path(), spoilt);
    expect(await bodyOf(), 'the last line can be cut off').toMatchObject({ times: { turn: 1 } });
    appendFileSync(path(), spoilt);
    expect(await file().read()).toMatchObject({ ignored: 'damaged' });
  });

  it('is the state before the last line when a kill cut that off, at any byte', async () => {
    const one = file();
    for (const turn of [0, 1]) await one.write({ times: { turn } });
    const before = readFileSync(path()).length;
    await one.write({ times: { turn: 2 } });
    const whole = readFileSync(path());
    for (let length = before; length < whole.length - 1; length += 1) {
      writeFileSync(path(), whole.subarray(0, length));
      expect(await bodyOf(), `${length} bytes`).toEqual({ times: { turn: 1 } });
    }
  });

  it('is damaged when a line before the last one is', async () => {
    const one = file();
    for (const turn of [0, 1, 2]) await one.write({ times: { turn } });
    const lines = readFileSync(path(), 'utf8').split('\n');
    writeFileSync(path(), lines.with(2, `x${lines[2]}`).join('\n'));
    expect(await file().read()).toMatchObject({ ignored: 'damaged' });
  });

  it('begins a new file when the lines are long, so that its size is bounded', async () => {
    const one = file();
    const pick = seeded(5);
    await one.write(large(0));
    const first = inode();
    let most = 0;
    for (let turn = 1; turn <= 400; turn += 1) {
      const noise = Array.from({ length: 100 }, () => pick(1e9)).join('');
      await one.write({ ...large(turn), noise: { noise } });
      most = Math.max(most, statSync(path()).size);
    }
    expect(inode()).not.toBe(first);
    expect(most).toBeLessThan(300_000);
    expect(await bodyOf()).toMatchObject(large(400));
  });

  it.each([
    ['another agent replaced', () => writeFileSync(`${path()}.new`, readFileSync(path())), () => renameSync(`${path()}.new`, path())],
    ['somebody wrote to', () => undefined, () => appendFileSync(path(), 'text')],
    ['somebody truncated', () => undefined, () => truncateSync(path(), 10)],
    ['somebody deleted', () => undefined, () => rmSync(path())],
  ])('is complete again after a file that %s', async (_, prepare, spoil) => {
    const one = file();
    for (const turn of [0, 1]) await one.write(large(turn));
    prepare();
    spoil();
    expect(await one.write(large(2))).toBeUndefined();
    expect(await bodyOf()).toEqual(large(2));
  });

  it('is complete again after a write that failed', async () => {
    const one = file(50_000);
    await one.write(large(0));
    expect(await one.write({ noise: { text: Array.from({ length: 9_000 }, (_, at) => at * 7_919).join('') } })).toContain(
      'larger than 50000 bytes',
    );
    expect(await bodyOf()).toEqual(large(0));
    expect(await one.write(large(2))).toBeUndefined();
    expect(await bodyOf()).toEqual(large(2));
  });

  it('is the state before a write for which the disk had room only in part, and the next write completes it', async () => {
    const changed = (): SavedSections => ({ ...large(1), more: Object.fromEntries(seededTexts(200).map((text, at) => [`${at}`, text])) });
    await file().write(large(0));
    // The line is longer than the rest of the last block of 512 bytes that the file may have.
    const blocks = Math.floor(statSync(path()).size / 512) + 1;
    rmSync(path());
    const program = `
      const { SavedStateFile } = await import(${JSON.stringify(new URL('../../../dist/host/fs/saved-state.js', import.meta.url).href)});
      const file = new SavedStateFile(...${JSON.stringify([path(), FORMAT, 'boot', 16 * MIB])});
      console.log(JSON.stringify([await file.write(${JSON.stringify(large(0))}), await file.write(${JSON.stringify(changed())})]));`;
    const { stdout } = spawnSync(
      'sh',
      ['-c', `trap '' XFSZ; ulimit -f ${blocks}; exec "$0" --input-type=module -e "$1"`, process.execPath, program],
      { encoding: 'utf8' },
    );
    expect(JSON.parse(stdout)).toEqual([null, expect.stringContaining('EFBIG')]);
    expect(statSync(path()).size).toBe(blocks * 512);
    expect(await bodyOf()).toEqual(large(0));
    expect(await file().write(changed())).toBeUndefined();
    expect(await bodyOf()).toEqual(changed());
  });

  it('never lets the program wait for the disk: a directory that hangs stops no scrape', () => {
    const program = `
      const { openSync, closeSync } = await import('node:fs');
      const { SavedStateFile } = await import(${JSON.stringify(new URL('../../../dist/host/fs/saved-state.js', import.meta.url).href)});
      const file = new SavedStateFile(...${JSON.stringify([path(), FORMAT, 'boot', 16 * MIB])});
      await new Promise(setImmediate);
      console.error('writes');
      if (process.argv[1] === 'waits') closeSync(openSync(${JSON.stringify(folder)}, 'r'));
      for (const turn of [0, 1, 2, 3]) console.log(await file.write({ times: { turn } }, undefined, turn === 3));`;
    const told = (word: string) =>
      spawnSync(process.execPath, ['--trace-sync-io', '--input-type=module', '-e', program, word], { encoding: 'utf8' });
    const waits = ({ stdout, stderr }: ReturnType<typeof told>): readonly string[] => {
      expect(stdout).toBe('undefined\n'.repeat(4));
      return stderr.split('writes\n')[1]?.match(/\w+Sync(?= \(node:fs)/g) ?? [];
    };
    expect(waits(told('waits'))).toEqual(['openSync', 'closeSync']);
    expect(waits(told('never'))).toEqual([]);
  });

  it('has one descriptor, and none after the last write', async () => {
    const one = file();
    const isOpen = (): boolean =>
      readdirSync('/proc/self/fd').some((name) => {
        const { ino, dev } = statSync(`/proc/self/fd/${name}`, { throwIfNoEntry: false }) ?? {};
        return ino === inode() && dev === statSync(path()).dev;
      });
    for (const turn of [0, 1, 2]) await one.write(large(turn));
    expect(isOpen()).toBe(true);
    await one.write(large(3), undefined, true);
    expect(isOpen()).toBe(false);
  });

  it('is one state and no further line after the last write', async () => {
    const one = file();
    for (const turn of [0, 1, 2]) await one.write(large(turn));
    await one.write(large(3), undefined, true);
    expect(readFileSync(path(), 'utf8').trimEnd().split('\n')).toHaveLength(2);
    expect(await bodyOf()).toEqual(large(3));
  });
});
