import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { crashFolders, crashLines } from '../../src/incidents/crash-log.ts';
import type { KernelLog } from '../../src/incidents/kernel-log.ts';
import { hours, minutes } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';

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
const log = (path: string): KernelLog =>
  new Built({ path, procfs: join(root, 'proc'), crashes: crashFolders(join(root, 'sys')) }, systemClock);

describe('the search of the kernel log', () => {
  it('gives the lines of a simulated node their times, so that they have a place on the axis of an incident', async () => {
    const node = new SimulatedNode(simulatedFamilies, { ...defaultValues(simulationOptions), pods: 0, story: 'off' });
    try {
      const beganMs = Date.now();
      node.step();
      node.begin('xid79', node.faults.list().find(({ name }) => name === 'xid79')?.devices[0]);
      const paths = { path: join(node.root, 'dev/kmsg'), procfs: join(node.root, 'proc'), crashes: [] };
      const { lines } = await new Built(paths, systemClock).linesOf({ ports: [], names: ['NVRM'] });
      expect(lines.length).toBeGreaterThan(0);
      for (const { time = '' } of lines) expect(Date.parse(time)).toBeGreaterThanOrEqual(beganMs - 1);
    } finally {
      await node.stop();
    }
  });

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

describe('the messages of a kernel that crashed', () => {
  const BOOT_MS = 1_700_000_000_000;
  const put = (path: string, text: string, atMs = BOOT_MS): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    utimesSync(join(root, path), atMs / 1_000, atMs / 1_000);
  };
  const lines = (nowMs = BOOT_MS + minutes(10)): readonly string[] => crashLines(crashFolders(join(root, 'sys')), BOOT_MS, nowMs);

  it('are those of pstore and of systemd, in their order and each once', () => {
    put('sys/fs/pstore/dmesg-efi-170000000002', 'Panic#1 Part2\n<6>[   10.000001] mlx5_0: up\n');
    put('sys/fs/pstore/dmesg-efi-170000000001', 'Panic#1 Part1\n<3>[ 8130.500000] mlx5_0: down\n<0>[ 8131.000000] Kernel panic\n');
    put('sys/fs/pstore/dmesg-erst-1.enc.z', '<3>[ 9.000000] mlx5_0: packed\n');
    put('sys/fs/pstore/console-ramoops-0', '<3>[ 9.000000] mlx5_0: console\n');
    put('var/lib/systemd/pstore/1700000000/001/dmesg.txt', 'Panic#1 Part1\n<3>[ 8130.500000] mlx5_0: down\n<6>[ 8129.000000] eth0: up\n');
    put('var/lib/systemd/pstore/1600000000/dmesg.txt', '<3>[ 1.000000] mlx5_0: long ago\n', BOOT_MS - hours(25));
    expect(lines()).toEqual([
      '[   10.000001] mlx5_0: up',
      '[ 8129.000000] eth0: up',
      '[ 8130.500000] mlx5_0: down',
      '[ 8131.000000] Kernel panic',
    ]);
    expect(lines(BOOT_MS + hours(2))).toEqual([]);
    expect(crashLines(['absent'], BOOT_MS, BOOT_MS)).toEqual([]);
    expect(crashLines(crashFolders(join(root, 'sys')), undefined, BOOT_MS)).toEqual([]);
  });

  it('stand in the record of a device that they name', async () => {
    const nowMs = Date.now();
    writeFileSync(join(root, 'proc/stat'), `btime ${Math.floor((nowMs - minutes(10)) / 1_000)}\n`);
    put('sys/fs/pstore/dmesg-efi-3', '<3>[ 5.000000] mlx5_0: dead\n<3>[ 6.000000] eth0: dead\n', nowMs - minutes(12));
    const kernel = log(join(root, 'log'));
    const [own, other] = await Promise.all([kernel.linesOf(marks), kernel.linesOf({ ports: [], names: ['eth7'] })]);
    expect([own.crash, own.lines.length, other.crash]).toEqual([['[ 5.000000] mlx5_0: dead'], 2, undefined]);
  });
});
