import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Surroundings } from '../../src/supervisor/surroundings.ts';

let root: string;
let nowMs = 0;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-surroundings-'));
  for (const path of ['proc', 'sys/class/net', 'sys/class/infiniband', 'sys/bus/pci/devices/0000:00:00.0'])
    mkdirSync(join(root, path), { recursive: true });
  writeFileSync(join(root, 'proc/modules'), 'ib_core 425984 1 rdma_cm, Live 0x0\n');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const surroundings = (): Surroundings =>
  new Surroundings(
    { sysfs: join(root, 'sys'), procfs: join(root, 'proc') },
    { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} },
    ['class/infiniband'],
  );

describe('the surroundings', () => {
  it.each<[string, () => void]>([
    [
      'a module is loaded',
      () => writeFileSync(join(root, 'proc/modules'), 'mlx5_ib 397312 0 - Live 0x0\nib_core 425984 2 mlx5_ib, Live 0x0\n'),
    ],
    ['a module is unloaded', () => writeFileSync(join(root, 'proc/modules'), '')],
    ['a device class appears', () => mkdirSync(join(root, 'sys/class/fpga_manager'))],
    ['a device comes whose driver was there', () => mkdirSync(join(root, 'sys/class/infiniband/mlx5_0'), { recursive: true })],
    ['a PCI function is plugged in', () => mkdirSync(join(root, 'sys/bus/pci/devices/0000:3b:00.0'))],
    ['a PCI function is pulled', () => rmSync(join(root, 'sys/bus/pci/devices/0000:00:00.0'), { recursive: true })],
  ])('are others when %s', (_, happen) => {
    const here = surroundings();
    const before = here.look();
    happen();
    nowMs += 1_000;
    expect(here.look()).not.toBe(before);
  });

  it('are the same when a module is only used more, and on a machine without any of it', () => {
    const here = surroundings();
    const before = here.look();
    writeFileSync(join(root, 'proc/modules'), 'ib_core 425984 7 rdma_cm,ib_uverbs, Live 0x0\n');
    nowMs += 1_000;
    expect(here.look()).toBe(before);
    rmSync(root, { recursive: true });
    nowMs += 1_000;
    const bare = here.look();
    nowMs += 1_000;
    expect(here.look()).toBe(bare);
  });
});
