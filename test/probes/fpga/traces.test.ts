import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { family } from '../../../src/probes/fpga/index.ts';
import { Surroundings } from '../../../src/supervisor/surroundings.ts';
import { readMachine } from '../../support/machine.ts';
import { folder, probeMachine } from './machines.ts';

/** Boards by the class that their driver brings them into. */
describe.each([
  ['port-on-virtual-function', 'sys/class/fpga_region/'],
  ['legacy-opae-a10', 'sys/class/fpga/'],
  ['zynqmp-manager-only', 'sys/class/fpga_manager/'],
])('a driver that is there and gets hold of a board, as on %s', (name, directory) => {
  it('leaves a trace in a directory that is looked at', () => {
    const { machine, collect } = probeMachine(name);
    const links = Object.entries(readMachine(join(folder, name, 'machine.yaml')).links ?? {}).filter(([path]) =>
      path.startsWith(directory),
    );
    let nowMs = 0;
    const clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} };
    const roots = { sysfs: join(machine.root, 'sys'), procfs: join(machine.root, 'proc') };
    const surroundings = new Surroundings(roots, clock, family.traces);
    for (const [path] of links) rmSync(join(machine.root, path));
    const before = surroundings.look();
    for (const [path, target] of links) symlinkSync(target, join(machine.root, path));
    nowMs += 1_000;
    expect(links).not.toEqual([]);
    expect(collect().reports).not.toEqual([]);
    expect(surroundings.look()).not.toBe(before);
    machine.remove();
  });
});
