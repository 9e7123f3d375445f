import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../src/host/clock.ts';
import type { StepRecord } from '../../../src/host/fs/step-record.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/intelgpu/index.ts';
import { CAPTURES } from '../../support/captures.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type Told, toldOf } from '../../support/told.ts';

/** Captured cards. */
export const CARDS = join(CAPTURES, 'intel-gpu');

/** A machine with a probe and a manual clock. */
export interface ProbedMachine {
  readonly root: string;
  readonly probe: Probe;
  collect(): Collection;
  forward(ms: number): void;
  write(path: string, text: string): void;
  link(path: string, target: string): void;
  remove(path: string): void;
  /** Removes the machine. */
  end(): void;
}

export function probeOn(root: string, options: Readonly<Record<string, string>> = {}, guard?: StepRecord): ProbedMachine {
  let nowMs = 0;
  const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} };
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') };
  const probe = family.createProbe(createHost(roots, clock, guard === undefined ? {} : { guard }), probeOptions(family, options));
  const place = (path: string): string => {
    const full = join(root, path);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  };
  return {
    root,
    probe,
    collect: () => probe.collect() as Collection,
    forward: (ms) => {
      nowMs += ms;
    },
    write: (path, text) => writeFileSync(place(path), text),
    link: (path, target) => symlinkSync(target, place(path)),
    remove: (path) => rmSync(join(root, path), { recursive: true, force: true }),
    end: () => {
      probe.close?.();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Machine of the simulated node, without processes. */
export function simulatedMachine(count: number, options: Readonly<Record<string, string>> = {}, guard?: StepRecord): ProbedMachine {
  const hardware = hardwareOf(family, { intelgpu: count });
  const { root } = buildMachine({ about: '', ...hardware, options: {} } as MachineFile);
  return probeOn(root, options, guard);
}

/** Directory of a card of the simulated node. */
export function directoryOf(machine: ProbedMachine, address: string): string {
  const name = readdirSync(join(machine.root, 'sys/devices/pci0030:00')).find((bridge) =>
    readdirSync(join(machine.root, 'sys/devices/pci0030:00', bridge)).includes(address),
  );
  return `sys/devices/pci0030:00/${name}/${address}`;
}

/** An empty machine with a kernel log and the second process of a host. */
export function emptyMachine(): ProbedMachine {
  const machine = probeOn(mkdtempSync(join(tmpdir(), 'device-agent-intelgpu-')));
  machine.write('dev/kmsg', '6,1,100,-;Linux version 7.0\n');
  machine.write('proc/2/comm', 'kthreadd\n');
  return machine;
}

/** Puts a captured card into a machine, with the links that a real machine has. The capture has lost them. */
export function placeCapture(root: string, capture: string): string {
  const folder = join(CARDS, capture);
  const name = readdirSync(folder).find((entry) => /^card\d+$/.test(entry)) ?? '';
  const card = join(folder, name);
  const uevent = readFileSync(join(card, 'device/uevent'), 'utf8');
  const value = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(uevent)?.[1]?.toLowerCase() ?? '';
  const address = value('PCI_SLOT_NAME');
  const directory = join(root, `sys/devices/pci0000:00/${address}`);
  cpSync(join(card, 'device'), directory, { recursive: true });
  cpSync(card, join(directory, 'drm', name), { recursive: true, filter: (path) => !path.startsWith(join(card, 'device')) });
  const link = (path: string, target: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(target, join(root, path));
  };
  link(`sys/bus/pci/devices/${address}`, `../../../devices/pci0000:00/${address}`);
  link(`sys/bus/pci/drivers/${value('DRIVER')}/${address}`, `../../../../devices/pci0000:00/${address}`);
  link(`sys/devices/pci0000:00/${address}/driver`, `../../../bus/pci/drivers/${value('DRIVER')}`);
  link(`sys/class/drm/${name}`, `../../devices/pci0000:00/${address}/drm/${name}`);
  return address;
}

/** Returns the report of a device in a collection. */
export function reportOf(collection: Collection, id: string): Told {
  const report = collection.reports.find(({ device }) => device.id === id);
  if (report === undefined) throw new Error(`no device ${id} among ${collection.reports.map(({ device }) => device.id).join(', ')}`);
  return toldOf(report);
}

/** `metric{label=value,…}` with the labels in alphabetical order, mapped to the value. */
export function seriesOf({ readings }: Pick<Told, 'readings'>): Readonly<Record<string, number | bigint>> {
  return Object.fromEntries(
    readings.map(({ metric, labels = {}, value }) => {
      const pairs = Object.entries(labels)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, text]) => `${name}=${text}`);
      return [pairs.length === 0 ? metric : `${metric}{${pairs.join(',')}}`, value];
    }),
  );
}

/** Status of each finding that has one, as `Type` or `Type/instance`. */
export function statusOf({ findings }: Pick<Told, 'findings'>): Readonly<Record<string, boolean | 'unknown'>> {
  return Object.fromEntries(
    findings.flatMap(({ type, instance, status }) =>
      status === undefined ? [] : [[instance === undefined ? type : `${type}/${instance}`, status]],
    ),
  );
}
