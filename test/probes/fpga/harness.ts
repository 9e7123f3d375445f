import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../src/host/clock.ts';
import type { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/fpga/index.ts';
import { buildMachine, type Machine, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';

export { holding, reportOf, valueIn as seriesValue } from '../../support/probed-machine.ts';

/** A machine with a probe and a manual clock. */
export interface ProbedMachine {
  readonly machine: Machine;
  readonly probe: Probe;
  collect(): Collection;
  forward(ms: number): void;
}

export const folder = 'test/probes/fpga';

export function probeMachine(
  name: string,
  change: (machine: Machine) => void = () => {},
  more: Readonly<Record<string, string>> = {},
  guard?: StepGuard,
): ProbedMachine {
  return probeOn(buildMachine(readMachine(join(folder, name, 'machine.yaml'))), change, more, guard);
}

export function probeOn(
  machine: Machine,
  change: (machine: Machine) => void = () => {},
  more: Readonly<Record<string, string>> = {},
  guard?: StepGuard,
): ProbedMachine {
  change(machine);
  let now = 0;
  const clock: Clock = { now: () => now, monotonic: () => now, after: () => () => {} };
  const root = (name: string): string => join(machine.root, name);
  const host = createHost(
    { sysfs: root('sys'), procfs: root('proc'), dev: root('dev'), kmsg: '' },
    clock,
    guard === undefined ? {} : { guard },
  );
  const probe = family.createProbe(host, probeOptions(family, { ...machine.options, ...more }));
  return {
    machine,
    probe,
    collect: () => probe.collect() as Collection,
    forward: (ms) => {
      now += ms;
    },
  };
}

/** Writes a file of a machine, by its path below the root. */
export function write({ root }: Machine, path: string, text: string | Buffer): void {
  const full = join(root, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, text);
}

/** Replaces a file with one that exists and whose read fails. */
export function breakFile({ root }: Machine, path: string): void {
  rmSync(join(root, path), { force: true });
  mkdirSync(join(root, path));
}
