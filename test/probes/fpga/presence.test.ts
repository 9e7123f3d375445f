import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import { family } from '../../../src/probes/fpga/index.ts';
import { folder, probeMachine } from './harness.ts';

const seesBoards = (root: string): boolean | undefined =>
  family.isPresent?.(createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock));

describe('a machine', () => {
  it.each(readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory()))(
    'has boards where the probe finds some: $name',
    ({ name }) => {
      const { machine, collect } = probeMachine(name);
      expect(seesBoards(machine.root)).toBe(collect().reports.length > 0);
      machine.remove();
    },
  );

  it('without PCI and without classes has none', () => {
    const { machine } = probeMachine('no-hardware');
    rmSync(join(machine.root, 'sys'), { recursive: true, force: true });
    expect(seesBoards(machine.root)).toBe(false);
    machine.remove();
  });
});
