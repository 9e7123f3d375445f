import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach } from 'vitest';
import type { Clock } from '../../../src/host/clock.ts';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { createHost, type Host } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/infiniband/index.ts';
import type { SimulatedHardware } from '../../../src/sim/family-simulation.ts';
import { buildMachine, type Machine, type MachineFile, readMachine } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';

export { findingIn, reportOf, valueIn } from '../../support/probed-machine.ts';

/** A clock that tests move. */
export class HandClock implements Clock {
  nowMs = 0;
  now(): number {
    return this.nowMs;
  }
  monotonic(): number {
    return this.nowMs;
  }
  after(): () => void {
    return () => {};
  }
}

/** An attribute that the kernel always fails to show, with EINVAL. */
export const EINVAL = '/sys/class/net/lo/speed';

/** A machine with the family's probe on it. */
export interface Probed {
  readonly root: string;
  readonly clock: HandClock;
  readonly host: Host;
  readonly probe: Probe;
  collect(): Collection;
  remove(): void;
}

/** Registers machines of one test file and removes them after each test. */
export function machineKeeper(): (machine: Probed) => Probed {
  const machines: Probed[] = [];
  afterEach(() => {
    for (const machine of machines.splice(0)) machine.remove();
  });
  return (machine) => {
    machines.push(machine);
    return machine;
  };
}

/** Observes every read of the probe, before and after it. */
export class WatchingGuard extends StepGuard {
  before: (path: string) => void = () => {};
  after: (path: string) => void = () => {};
  #path = '';

  override enter(path: string): string | undefined {
    this.#path = path;
    this.before(path);
    return super.enter(path);
  }

  override leave(): void {
    super.leave();
    this.after(this.#path);
  }
}

export function probeRoot(root: string, options: Readonly<Record<string, string>> = {}, guard?: StepGuard): Omit<Probed, 'remove'> {
  const clock = new HandClock();
  const roots = {
    sysfs: join(root, 'sys'),
    procfs: join(root, 'proc'),
    dev: join(root, 'dev'),
    kmsg: existsSync(join(root, 'dev/kmsg')) ? 'kmsg' : '',
  };
  const host = createHost(roots, clock, guard === undefined ? {} : { guard });
  const probe = family.createProbe(host, probeOptions(family, options));
  return { root, clock, host, probe, collect: () => probe.collect() as Collection };
}

export function probeMachine(machine: MachineFile, options: Readonly<Record<string, string>> = {}, guard?: StepGuard): Probed {
  const built: Machine = buildMachine(machine);
  return { ...probeRoot(built.root, { ...built.options, ...options }, guard), remove: built.remove };
}

/** Loads one of the machines in this folder. */
export function probeCase(name: string, options: Readonly<Record<string, string>> = {}): Probed {
  return probeMachine(readMachine(join('test/probes/infiniband', name, 'machine.yaml')), options);
}

export function placeHardware(hardware: SimulatedHardware): { readonly root: string; remove(): void } {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-infiniband-'));
  const place = (path: string): string => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    return join(root, path);
  };
  for (const [path, text] of Object.entries(hardware.files)) writeFileSync(place(path), text);
  for (const [path, target] of Object.entries(hardware.links)) symlinkSync(target, place(path));
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}

/** The smallest valid device: one port with one counter. */
export function smallMachine(files: Readonly<Record<string, string>> = {}, part: Partial<MachineFile> = {}): MachineFile {
  return {
    about: 'one sound device',
    ...part,
    files: {
      [`${DEVICE}/fw_ver`]: '28.41.1000\n',
      [`${PORT}/state`]: '4: ACTIVE\n',
      [`${PORT}/phys_state`]: '5: LinkUp\n',
      [`${PORT}/rate`]: '400 Gb/sec (4X NDR)\n',
      [`${PORT}/link_layer`]: 'InfiniBand\n',
      [`${PORT}/counters/port_rcv_data`]: '1\n',
      ...files,
    },
    links: {
      'sys/class/infiniband/mlx5_0': '../../devices/pci0000:17/0000:18:00.0/infiniband/mlx5_0',
      'sys/bus/pci/devices/0000:18:00.0': '../../../devices/pci0000:17/0000:18:00.0',
      ...part.links,
    },
  };
}

export const DEVICE = 'sys/devices/pci0000:17/0000:18:00.0/infiniband/mlx5_0';
export const PORT = `${DEVICE}/ports/1`;
