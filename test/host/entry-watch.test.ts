import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EntryWatch, watchEntry } from '../../src/host/entry-watch.ts';
import { changes } from '../kubelet/support/changes.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';

let root: string;
let watch: EntryWatch | undefined;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-watch-'));
});
afterEach(() => {
  watch?.close();
  rmSync(root, { recursive: true, force: true });
});

function contentOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return 'absent';
  }
}

/** A watch on `<root>/watched/file` by its content. The clock stands still unless the test moves it. */
function watchFile() {
  const path = join(root, 'watched/file');
  const clock = new ManualClock();
  const { onChange, until } = changes();
  const seen: string[] = [];
  watch = watchEntry(
    path,
    () => contentOf(path),
    () => {
      seen.push(contentOf(path));
      onChange();
    },
    clock,
  );
  const write = (text: string): void => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  return { path, clock, seen, until, write };
}

describe('a watch on a name in a directory', () => {
  it('is told of a file, its successor and its end by the system alone, while no time passes', async () => {
    mkdirSync(join(root, 'watched'));
    const { path, seen, until, write } = watchFile();
    write('first');
    await until(() => seen.at(-1) === 'first');
    write('second');
    await until(() => seen.at(-1) === 'second');
    rmSync(path);
    await until(() => seen.at(-1) === 'absent');
  });

  it('looks for itself where there is no directory yet, and is told again once there is one', async () => {
    const { clock, seen, until, write } = watchFile();
    write('first');
    clock.advance(500);
    expect(seen).toEqual(['first']);
    write('second');
    await until(() => seen.at(-1) === 'second');
  });

  it('looks for itself from the end of the directory on, and finds the next one', async () => {
    const { path, clock, seen, until, write } = watchFile();
    write('first');
    clock.advance(500);
    rmSync(dirname(path), { recursive: true });
    await until(() => seen.at(-1) === 'absent');
    write('in the next directory');
    // The end of the directory is told after that of the file. All turns together are less than the time between two looks while told.
    for (let turn = 0; turn < 9 && seen.at(-1) === 'absent'; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      clock.advance(500);
    }
    expect(seen.at(-1)).toBe('in the next directory');
    write('told again');
    await until(() => seen.at(-1) === 'told again');
  });

  it('finds a directory that was put in place of the watched one, of which nothing tells', async () => {
    const { path, clock, seen, until, write } = watchFile();
    write('first');
    clock.advance(500);
    renameSync(root, `${root}.old`);
    try {
      write('of another tree');
      clock.advance(10_000);
      expect(seen.at(-1)).toBe('of another tree');
      write('and told of');
      await until(() => contentOf(path) === seen.at(-1));
    } finally {
      rmSync(`${root}.old`, { recursive: true });
    }
  });

  it('leaves the process asleep while it is told', () => {
    mkdirSync(join(root, 'watched'));
    const { clock } = watchFile();
    const path = join(root, 'watched/other');
    let looks = 0;
    const counting = watchEntry(
      path,
      () => {
        looks += 1;
        return 'the same';
      },
      () => {},
      clock,
    );
    const before = looks;
    clock.advance(60_000);
    counting.close();
    expect(looks - before).toBe(6);
    expect(clock.pendingTimers).toBe(1);
  });
});
