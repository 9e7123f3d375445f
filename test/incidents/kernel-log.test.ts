import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import type { KernelLog } from '../../src/incidents/kernel-log.ts';

const marks = { ports: [], names: ['mlx5_0'] };
let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-kernel-'));
  mkdirSync(join(root, 'proc'));
  writeFileSync(join(root, 'proc/stat'), 'btime 1700000000\n');
  writeFileSync(join(root, 'log'), '6,1,1000000,-;mlx5_0: up\n6,2,2000000,-;eth0: up\n3,3,3500000,-;mlx5_0: down\n');
});
afterAll(() => rmSync(root, { recursive: true }));

/** The build, because the runtime starts no thread from a source. */
let Built: typeof KernelLog;
beforeAll(async () => {
  Built = ((await import('../../dist/incidents/kernel-log.js' as string)) as { KernelLog: typeof KernelLog }).KernelLog;
});
const log = (path: string): KernelLog => new Built({ path, procfs: join(root, 'proc') }, systemClock);

describe('the search of the kernel log', () => {
  it('gives each device its lines with wall time, in a thread that ends', async () => {
    const kernel = log(join(root, 'log'));
    const [own, other] = await Promise.all([kernel.linesOf(marks), kernel.linesOf({ ports: [], names: ['eth0'] })]);
    expect(own.lines).toEqual([
      { time: '2023-11-14T22:13:21.000Z', text: 'mlx5_0: up' },
      { time: '2023-11-14T22:13:23.500Z', text: 'mlx5_0: down' },
    ]);
    expect(other.lines.map(({ text }) => text)).toEqual(['eth0: up']);
    expect((await kernel.linesOf(marks)).lines, 'a search after the first thread').toHaveLength(2);
  });

  it.each([
    ['absent', /cannot be read: ENOENT/],
    ['', /is a directory/],
    ['pipe', /is a device or pipe other than the kernel log/],
  ])('says why a log at "%s" gives no lines', async (name, problem) => {
    if (name === 'pipe') execFileSync('mkfifo', [join(root, 'pipe')]);
    expect(await log(join(root, name)).linesOf(marks)).toEqual({ lines: [], problem: expect.stringMatching(problem) });
  });

  it('answers those who wait when the agent ends', async () => {
    const kernel = log(join(root, 'log'));
    const waiting = kernel.linesOf(marks);
    kernel.close();
    expect(await waiting).toMatchObject({ lines: [], problem: expect.stringContaining('the agent ended') });
    expect(await kernel.linesOf(marks)).toMatchObject({ problem: expect.stringContaining('the agent ended') });
  });
});
