import { execFileSync } from 'node:child_process';
import { constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Liveness } from '../../src/agent/store.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { until } from '../support/until.ts';

describe('liveness', () => {
  it('is lost without snapshots, and back with the next one', () => {
    const clock = new ManualClock();
    const liveness = new Liveness(1_000, clock);
    clock.advance(60_000);
    expect(liveness.fault()).toBeUndefined();
    clock.advance(1_000);
    expect(liveness.fault()).toBe('There was no new snapshot for 61 s.');
    liveness.published();
    expect(liveness.fault()).toBeUndefined();
  });

  it('allows six intervals where the interval is long', () => {
    const clock = new ManualClock();
    const liveness = new Liveness(60_000, clock);
    clock.advance(359_000);
    expect(liveness.fault()).toBeUndefined();
    clock.advance(2_000);
    expect(liveness.fault()).toBe('There was no new snapshot for 361 s.');
  });

  it('is lost while all threads of the pool hang, and back when they return', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'liveness-'));
    const pipe = join(directory, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const clock = new ManualClock();
    const liveness = new Liveness(1_000, clock);
    // Opening a pipe for reading waits for a writer, and each wait occupies one thread of the pool.
    const hanging = Array.from({ length: Number(process.env.UV_THREADPOOL_SIZE ?? 4) }, () => open(pipe, 'r'));
    const look = (): string | undefined => {
      liveness.published();
      return liveness.fault();
    };
    expect(look()).toBeUndefined();
    clock.advance(25_000);
    expect(look()).toBe('No file operation has returned for 25 s.');
    const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
    for (const handle of await Promise.all(hanging)) await handle.close();
    await until(() => look() === undefined, 'the pool answers');
    clock.advance(25_000);
    await until(() => look() === undefined, 'it answers each time');
    rmSync(directory, { recursive: true });
    expect(writer).toBeGreaterThan(0);
  });
});
