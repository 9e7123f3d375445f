import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../src/host/clock.ts';
import type { StepRecord } from '../../../src/host/fs/step-record.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { CAPTURES } from '../../support/captures.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type Told, toldOf } from '../../support/told.ts';

/** Captured cards. */
export const CARDS = join(CAPTURES, 'amdgpu');

/** A machine with a probe and a manual clock. */
export interface ProbedMachine {
  readonly root: string;
  readonly probe: Probe;
  collect(): Collection;
  forward(ms: number): void;
  write(path: string, text: string | Buffer): void;
  link(path: string, target: string): void;
  remove(path: string): void;
  /** Removes the machine. */
  end(): void;
}

export function probeOn(root: string, options: Readonly<Record<string, string>> = {}, guard?: StepRecord): ProbedMachine {
  let nowMs = 0;
  const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} };
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), share: join(root, 'share') };
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

/** Machine of the simulated node. */
export function simulatedMachine(count: number, options: Readonly<Record<string, string>> = {}): ProbedMachine {
  const hardware = hardwareOf(family, { amdgpu: count });
  return probeOn(buildMachine({ about: '', ...hardware, options: {} } as MachineFile).root, options);
}

/** An empty machine. */
export const emptyMachine = (options: Readonly<Record<string, string>> = {}): ProbedMachine =>
  probeOn(mkdtempSync(join(tmpdir(), 'device-agent-amdgpu-')), options);

/** Path of a captured card: the only directory `cardN` of the capture. */
export function capturedCard(capture: string): string {
  const folder = join(CARDS, capture);
  const card = readdirSync(folder).find((name) => /^card\d+$/.test(name)) ?? '';
  return join(folder, card);
}

/** Puts a captured card into a machine, with the links that a real machine has. The capture has lost them. */
export function placeCapture(root: string, capture: string): string {
  const card = capturedCard(capture);
  const uevent = readFileSync(join(card, 'device/uevent'), 'utf8');
  const value = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(uevent)?.[1]?.toLowerCase() ?? '';
  const address = value('PCI_SLOT_NAME');
  const directory = join(root, `sys/devices/pci0000:00/${address}`);
  cpSync(join(card, 'device'), directory, { recursive: true });
  const link = (path: string, target: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    symlinkSync(target, join(root, path));
  };
  link(`sys/bus/pci/devices/${address}`, `../../../devices/pci0000:00/${address}`);
  link(`sys/devices/pci0000:00/${address}/driver`, `../../../bus/pci/drivers/${value('DRIVER')}`);
  const name = card.slice(card.lastIndexOf('/') + 1);
  link(`sys/class/drm/${name}`, `../../devices/pci0000:00/${address}/drm/${name}`);
  const kfd = join(CARDS, capture, 'kfd');
  if (existsSync(kfd)) cpSync(kfd, join(root, 'sys/class/kfd/kfd'), { recursive: true });
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

/** Conditions that hold, as `Type` or `Type/instance`, with the reason. */
export function holding({ findings }: Pick<Told, 'findings'>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    findings
      .filter(({ status }) => status === true)
      .map(({ type, instance, reason }) => [instance === undefined ? type : `${type}/${instance}`, reason]),
  );
}
