import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import type { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { createHost, type Host } from '../../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import type { Value } from '../../../src/model/metric.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/netdev/index.ts';
import { CAPTURES } from '../../support/captures.ts';
import { buildMachine, type MachineFile, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';

/** A machine with the family's probe on it. `at` collects at a time of the machine's clock. */
export interface Probed {
  readonly root: string;
  readonly host: Host;
  readonly probe: Probe;
  at(ms: number): Promise<Collection>;
}

const removals: (() => unknown)[] = [];
afterEach(async () => {
  for (const remove of removals.splice(0)) await remove();
});

export function probeMachine(machine: MachineFile, options: Readonly<Record<string, string>> = {}, guard?: StepGuard): Probed {
  const built = buildMachine(machine);
  const probed = probeRoot(built.root, { ...built.options, ...options }, guard);
  removals.push(() => probed.probe.close?.(), built.remove);
  return probed;
}

export function probeRoot(root: string, options: Readonly<Record<string, string>>, guard?: StepGuard, sysfs = join(root, 'sys')): Probed {
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonic: () => nowMs };
  const host = createHost(
    { sysfs, procfs: join(root, 'proc'), dev: join(root, 'dev'), kmsg: existsSync(join(root, 'dev/kmsg')) ? 'kmsg' : '' },
    clock,
    guard === undefined ? {} : { guard },
  );
  const probe = family.createProbe(host, probeOptions(family, options));
  return {
    root,
    host,
    probe,
    at: async (ms) => {
      nowMs = ms;
      return await probe.collect();
    },
  };
}

/** One of the machines in this folder. */
export const machineOf = (name: string): MachineFile => readMachine(join('test/probes/netdev', name, 'machine.yaml'));

export function reportOf({ reports }: Collection, id: string): DeviceReport {
  const report = reports.find(({ device }) => device.id === id);
  if (report === undefined) throw new Error(`no report of ${id} among ${reports.map(({ device }) => device.id).join(', ')}`);
  return report;
}

/** Value of the one series with these labels; undefined when there is none. */
export function valueIn(report: DeviceReport, metric: string, labels: Readonly<Record<string, string>> = {}): Value | undefined {
  const found = [...(report.read?.readings ?? [])].filter(
    (reading) => reading.metric === metric && Object.entries(labels).every(([name, value]) => reading.labels?.[name] === value),
  );
  if (found.length > 1) throw new Error(`${found.length} series of ${metric}`);
  return found[0]?.value;
}

/** Captures of real adapters. */
export const SRIOV = join(CAPTURES, 'sriov');

export const capture = (path: string): string => readFileSync(join(SRIOV, path), 'utf8');
