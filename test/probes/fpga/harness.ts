import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../src/host/clock.ts';
import type { StepRecord } from '../../../src/host/fs/step-record.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/fpga/index.ts';
import { buildMachine, type Machine, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type Told, toldOf } from '../../support/told.ts';

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
  guard?: StepRecord,
): ProbedMachine {
  return probeOn(buildMachine(readMachine(join(folder, name, 'machine.yaml'))), change, more, guard);
}

export function probeOn(
  machine: Machine,
  change: (machine: Machine) => void = () => {},
  more: Readonly<Record<string, string>> = {},
  guard?: StepRecord,
): ProbedMachine {
  change(machine);
  let now = 0;
  const clock: Clock = { now: () => now, monotonic: () => now, after: () => () => {} };
  const root = (name: string): string => join(machine.root, name);
  const host = createHost({ sysfs: root('sys'), procfs: root('proc'), dev: root('dev') }, clock, guard === undefined ? {} : { guard });
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

/** Returns the report of the board in a collection. */
export function reportOf(collection: Collection, id: string): Told {
  const report = collection.reports.find(({ device }) => device.id === id);
  if (report === undefined) throw new Error(`no device ${id} among ${collection.reports.map(({ device }) => device.id).join(', ')}`);
  return toldOf(report);
}

/** The one value of a series; undefined when it is absent. */
export function seriesValue(report: Told, metric: string, labels: Readonly<Record<string, string>> = {}): number | bigint | undefined {
  const found = report.readings.filter(
    (reading) => reading.metric === metric && Object.entries(labels).every(([name, value]) => reading.labels?.[name] === value),
  );
  if (found.length > 1) throw new Error(`${found.length} series of ${metric} match`);
  return found[0]?.value;
}

/** Conditions that hold, as `Type` or `Type/instance`, with the reason. */
export function holding(report: Told): Readonly<Record<string, string>> {
  return Object.fromEntries(
    report.findings
      .filter(({ status }) => status === true)
      .map(({ type, instance, reason, severity }) => [
        instance === undefined ? type : `${type}/${instance}`,
        severity === undefined ? reason : `${reason} (${severity})`,
      ]),
  );
}
