import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ReadGuard } from '../../src/host/fs/read-guard.ts';
import { Tree } from '../../src/host/fs/tree.ts';
import { nativeFiles } from '../../src/host/native-files.ts';
import { PciFunctions } from '../../src/host/pci-functions.ts';
import { canLimitDescriptors, withDescriptors } from '../support/descriptor-limit.ts';
import { foreignReads } from '../support/foreign-reads.ts';
import { unless } from '../support/skipped.ts';

const ADDRESS = '0000:18:00.0';
const PLACE = 'bus/pci/devices';
const DEVICE = `${PLACE}/${ADDRESS}`;

let root: string;
let functions: PciFunctions;
let round = 0;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-functions-'));
  makeFunction(DEVICE, 1);
});
afterEach(() => {
  functions.close();
  rmSync(root, { recursive: true, force: true });
});

const put = (path: string, content: string | Buffer): void => writeFileSync(join(root, path), content);
const growOld = (): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
const header = (byte: number): Buffer => Buffer.concat([Buffer.from([byte, 0x10]), Buffer.alloc(62, 0xff)]);
/** Paths of this test's files that this process has open. */
const openFiles = (): readonly string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(root) ? [path.slice(root.length + 1)] : [];
    } catch {
      return [];
    }
  });

function makeFunction(directory: string, rxErrors: number): void {
  mkdirSync(join(root, directory), { recursive: true });
  put(`${directory}/power_state`, 'D0\n');
  put(`${directory}/config`, header(0xde));
  put(`${directory}/aer_dev_correctable`, `RxErr ${rxErrors}\nTOTAL_ERR_COR ${rxErrors}\n`);
  put(`${directory}/aer_dev_fatal`, 'DLP 0\nTOTAL_ERR_FATAL 0\n');
}

/** As a probe reads; the count of the first correctable error and whether the function answers. */
function reader(
  keepable = 100,
  guard?: ReadGuard,
  native = nativeFiles,
): () => readonly [count: number | undefined, answers: boolean | undefined] | undefined {
  functions = new PciFunctions(new Tree(root, guard), { keepable, native });
  return () => {
    const errors = functions.read(ADDRESS, ++round);
    return errors && [errors.aer.errors[0] && Number(errors.aer.errors[0].count), errors.answers];
  };
}

const noLimits = unless(canLimitDescriptors(), 'no prlimit');

describe.each([
  ['kept open and read directly', 100, nativeFiles],
  ['kept open', 100, () => undefined],
  ['opened at each read', 0, nativeFiles],
])('files of a function, %s,', (_, keepable, native) => {
  it('tell what they say now', () => {
    const read = reader(keepable, undefined, native);
    expect(read()).toEqual([1, true]);
    put(`${DEVICE}/aer_dev_correctable`, 'RxErr 22\nTOTAL_ERR_COR 22\n');
    expect(read()).toEqual([22, true]);
    put(`${DEVICE}/config`, Buffer.alloc(64, 0xff));
    expect(read()).toEqual([22, false]);
    put(`${DEVICE}/config`, header(0xde));
    expect(read()).toEqual([22, true]);
  });

  it('give the same object while they say the same', () => {
    const read = reader(keepable, undefined, native);
    read();
    growOld();
    read();
    const first = functions.read(ADDRESS, round);
    read();
    expect(functions.read(ADDRESS, round)).toBe(first);
  });

  it.each([
    ['is removed', () => rmSync(join(root, DEVICE), { recursive: true }), undefined],
    ['is removed with the whole bus', () => rmSync(join(root, 'bus'), { recursive: true }), undefined],
    ['loses its counters', () => rmSync(join(root, `${DEVICE}/aer_dev_correctable`)), [0, true]],
    ['loses its configuration', () => rmSync(join(root, `${DEVICE}/config`)), [1, undefined]],
    ['gives half a header', () => put(`${DEVICE}/config`, Buffer.alloc(32, 1)), [1, undefined]],
    [
      'has a directory in the place of its counters',
      () => {
        rmSync(join(root, `${DEVICE}/aer_dev_correctable`));
        mkdirSync(join(root, `${DEVICE}/aer_dev_correctable`));
      },
      [0, true],
    ],
    [
      'has a directory in the place of its configuration',
      () => {
        rmSync(join(root, `${DEVICE}/config`));
        mkdirSync(join(root, `${DEVICE}/config`));
      },
      [1, undefined],
    ],
    [
      'is replaced',
      () => {
        makeFunction('other', 33);
        renameSync(join(root, DEVICE), join(root, 'before'));
        renameSync(join(root, 'other'), join(root, DEVICE));
      },
      [33, true],
    ],
    [
      'is replaced with the whole bus',
      () => {
        makeFunction(`other/pci/devices/${ADDRESS}`, 44);
        renameSync(join(root, 'bus'), join(root, 'before'));
        renameSync(join(root, 'other'), join(root, 'bus'));
      },
      [44, true],
    ],
  ])('tell nothing old when it %s', (_name, change, expected) => {
    const read = reader(keepable, undefined, native);
    growOld();
    for (let n = 0; n < 3; n += 1) expect(read()).toEqual([1, true]);
    change();
    for (let n = 0; n < 3; n += 1) expect(read()).toEqual(expected);
  });

  it('are those of the function that a link leads to now', () => {
    makeFunction('devices/pci0000:00/first', 5);
    makeFunction('devices/pci0000:00/second', 6);
    rmSync(join(root, DEVICE), { recursive: true });
    symlinkSync('../../../devices/pci0000:00/first', join(root, DEVICE));
    const read = reader(keepable, undefined, native);
    growOld();
    for (let n = 0; n < 3; n += 1) expect(read()).toEqual([5, true]);
    rmSync(join(root, DEVICE));
    symlinkSync('../../../devices/pci0000:00/second', join(root, DEVICE));
    for (let n = 0; n < 3; n += 1) expect(read()).toEqual([6, true]);
  });

  it('come back when their function does', () => {
    const read = reader(keepable, undefined, native);
    renameSync(join(root, DEVICE), join(root, 'away'));
    expect(read()).toBeUndefined();
    renameSync(join(root, 'away'), join(root, DEVICE));
    expect(read()).toEqual([1, true]);
  });

  it.each(['D3cold', 'D3hot'])('are read without the configuration in %s, which waking would need', (state) => {
    const read = reader(keepable, undefined, native);
    expect(read()).toEqual([1, true]);
    put(`${DEVICE}/power_state`, `${state}\n`);
    put(`${DEVICE}/config`, Buffer.alloc(64, 0xff));
    put(`${DEVICE}/aer_dev_correctable`, 'RxErr 2\nTOTAL_ERR_COR 2\n');
    expect(read()).toEqual([2, undefined]);
    put(`${DEVICE}/power_state`, 'D0\n');
    expect(read()).toEqual([2, false]);
  });

  it('are left alone where an earlier read hangs', () => {
    const guard = new ReadGuard();
    guard.foreign = foreignReads(join(root, DEVICE));
    const read = reader(keepable, guard, native);
    expect(read()).toEqual([undefined, undefined]);
    guard.foreign = undefined;
    expect(read()).toEqual([1, true]);
  });
});

describe('descriptors of functions', () => {
  it('stay open between reads, and are given back at the end', () => {
    const read = reader();
    read();
    growOld();
    read();
    const files = openFiles().filter((path) => path.startsWith(`${DEVICE}/`));
    expect(files.map((path) => path.slice(DEVICE.length + 1)).sort()).toEqual([
      'aer_dev_correctable',
      'aer_dev_fatal',
      'config',
      'power_state',
    ]);
    functions.close();
    expect(openFiles()).toEqual([]);
  });

  it('are given back of a function that is gone', () => {
    const read = reader();
    read();
    rmSync(join(root, DEVICE), { recursive: true });
    read();
    expect(openFiles().filter((path) => path.includes(ADDRESS))).toEqual([]);
  });

  it('stay within their number', () => {
    const read = reader(3);
    for (let n = 0; n < 3; n += 1) expect(read()).toEqual([1, true]);
    growOld();
    expect(read()).toEqual([1, true]);
    expect(openFiles().filter((path) => path.startsWith(`${DEVICE}/`)).length).toBeLessThanOrEqual(3);
  });

  it.skipIf(!canLimitDescriptors())(`are given up when the process runs out of them, and everything is read on${noLimits}`, () => {
    const read = reader();
    expect(read()).toEqual([1, true]);
    makeFunction(`${PLACE}/0000:19:00.0`, 5);
    // One is left: of two functions that want to be open at the same time.
    withDescriptors(1, () => {
      for (let n = 0; n < 3; n += 1) {
        expect(functions.read('0000:19:00.0', ++round)?.aer.errors[0]?.count).toBe(5n);
        put(`${DEVICE}/aer_dev_correctable`, `RxErr ${n}\nTOTAL_ERR_COR ${n}\n`);
        expect(read()).toEqual([n, true]);
      }
    });
    expect(read()).toEqual([2, true]);
  });
});
