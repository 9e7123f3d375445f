import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Clock } from '../../../src/host/clock.ts';
import type { StepRecord } from '../../../src/host/fs/step-record.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { family } from '../../../src/probes/nvme/index.ts';
import { NvmeProbe } from '../../../src/probes/nvme/probe.ts';
import { type IoctlLibrary, SmartReader } from '../../../src/probes/nvme/smart-reader.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type Told, toldOf } from '../../support/told.ts';

/** A machine with a probe and a manual clock. */
export interface ProbedMachine {
  readonly root: string;
  readonly probe: NvmeProbe;
  collect(): Collection;
  forward(ms: number): void;
  write(path: string, text: string | Buffer): void;
  link(path: string, target: string): void;
  remove(path: string): void;
  /** Removes the machine. */
  end(): void;
}

export interface ProbeParts {
  readonly guard?: StepRecord;
  /** Replaces the C library of the process. */
  readonly loadIoctl?: () => IoctlLibrary;
  /** Wall clock at the start; the epoch when absent. */
  readonly startMs?: number;
}

export function probeOn(root: string, options: Readonly<Record<string, string>> = {}, parts: ProbeParts = {}): ProbedMachine {
  let nowMs = 0;
  const { guard, loadIoctl, startMs = 0 } = parts;
  const clock: Clock = { now: () => startMs + nowMs, monotonic: () => nowMs, after: () => () => {} };
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') };
  const host = createHost(roots, clock, guard === undefined ? {} : { guard });
  const texts = Object.fromEntries(Object.entries(options).map(([name, text]) => [name, text.replaceAll('{root}', root)]));
  const values = probeOptions(family, texts);
  const probe = new NvmeProbe(host, values, new SmartReader(host, values, loadIoctl));
  const place = (path: string): string => {
    const full = join(root, path);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  };
  return {
    root,
    probe,
    collect: () => probe.collect(),
    forward: (ms) => {
      nowMs += ms;
    },
    write: (path, text) => writeFileSync(place(path), text),
    link: (path, target) => symlinkSync(target, place(path)),
    remove: (path) => rmSync(join(root, path), { recursive: true, force: true }),
    end: () => {
      probe.close();
      rmSync(root, { recursive: true, force: true });
    },
  };
}

/** Machine of the simulated node. */
export function simulatedMachine(count: number, options: Readonly<Record<string, string>> = {}, parts: ProbeParts = {}): ProbedMachine {
  const hardware = hardwareOf(family, { nvme: count }, 30_000);
  return probeOn(buildMachine({ about: '', ...hardware, options: {} } as MachineFile).root, options, parts);
}

/** Directory of the controller of a simulated drive. */
export const simulatedController = (index: number): string => `sys/class/nvme/nvme${index}`;

/** An empty machine. */
export const emptyMachine = (options: Readonly<Record<string, string>> = {}, parts: ProbeParts = {}): ProbedMachine =>
  probeOn(mkdtempSync(join(tmpdir(), 'device-agent-nvme-')), options, parts);

/** Returns the report of a device in a collection. */
export function reportOf(collection: Collection, id: string): Told {
  const report = collection.reports.find(({ device }) => device.id === id);
  if (report === undefined) throw new Error(`no device ${id} among ${collection.reports.map(({ device }) => device.id).join(', ')}`);
  return toldOf(report);
}

export const devicesOf = ({ reports }: Collection): readonly Device[] => reports.map(({ device }) => device);

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

/** Status of one condition of a device. */
export const statusOf = (collection: Collection, id: string, type: string): unknown =>
  reportOf(collection, id).findings.find((finding) => finding.type === type)?.status;
