import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type EntryWatch, watchEntry } from '../../../src/host/fs/entry-watch.ts';
import { changes } from '../../kubelet/support/changes.ts';
import { ManualClock } from '../../kubelet/support/manual-clock.ts';

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

/** Watches a file by its content. Only the test moves the clock. */
function watchFile(below = 'watched/file') {
  const path = join(root, below);
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
  it('looks at the name only when that name changes, however much happens beside it', async () => {
    mkdirSync(join(root, 'watched'));
    let looks = 0;
    const path = join(root, 'watched', 'file');
    const { onChange, until } = changes();
    const fingerprint = (): string => {
      looks += 1;
      return contentOf(path);
    };
    watch = watchEntry(path, fingerprint, onChange, new ManualClock());
    const before = looks;
    for (let at = 0; at < 1_000; at++) writeFileSync(join(root, 'watched', `other-${at}`), '');
    writeFileSync(path, 'first');
    await until(() => contentOf(path) === 'first' && looks > before);
    // Creation, opening and writing of one file cause a few events.
    expect(looks - before).toBeLessThan(10);
  });

  it('detects the creation, replacement and removal of a file by events alone, without time passing', async () => {
    mkdirSync(join(root, 'watched'));
    const { path, seen, until, write } = watchFile();
    write('first');
    await until(() => seen.at(-1) === 'first');
    write('second');
    await until(() => seen.at(-1) === 'second');
    rmSync(path);
    await until(() => seen.at(-1) === 'absent');
  });

  it('detects the creation of missing parent directories by events alone, without time passing', async () => {
    for (const path of ['watched/file', 'a/b/c/watched/file']) {
      const { seen, until, write } = watchFile(path);
      write('first');
      await until(() => seen.at(-1) === 'first');
      write('second');
      await until(() => seen.at(-1) === 'second');
    }
  });

  it('detects the removal of the directory and of its parent, and their new creation', async () => {
    const { path, seen, until, write } = watchFile('above/watched/file');
    write('first');
    await until(() => seen.at(-1) === 'first');
    for (const ending of [dirname(path), dirname(dirname(path))]) {
      rmSync(ending, { recursive: true });
      await until(() => seen.at(-1) === 'absent');
      write('in the next directory');
      await until(() => seen.at(-1) === 'in the next directory');
      write('told again');
      await until(() => seen.at(-1) === 'told again');
    }
  });

  it('is not woken by other changes above an absent directory', async () => {
    let looks = 0;
    const counting = watchEntry(
      join(root, 'absent/file'),
      () => {
        looks += 1;
        return 'the same';
      },
      () => {},
      new ManualClock(),
    );
    const { seen, until, write } = watchFile('other/file');
    const before = looks;
    write('something');
    await until(() => seen.at(-1) === 'something');
    counting.close();
    expect(looks).toBe(before);
  });

  it('finds a directory that replaced the watched one without an event', async () => {
    const { path, clock, seen, until, write } = watchFile();
    write('first');
    clock.advance(15_000);
    renameSync(root, `${root}.old`);
    try {
      write('of another tree');
      clock.advance(15_000);
      expect(seen.at(-1)).toBe('of another tree');
      write('and told of');
      await until(() => contentOf(path) === seen.at(-1));
    } finally {
      rmSync(`${root}.old`, { recursive: true });
    }
  });

  it('wakes the process rarely while events work', () => {
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
    expect(looks - before).toBe(4);
    expect(clock.pendingTimers).toBe(1);
  });
});
