import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StepGuard } from '../../../src/host/fs/step-guard.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { family } from '../../../src/probes/nvme/index.ts';
import { NvmeProbe } from '../../../src/probes/nvme/probe.ts';
import { type IoctlLibrary, SmartReader } from '../../../src/probes/nvme/smart-reader.ts';
import type { Answer } from '../../support/guarded.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type ProbedMachine as Probed, probedMachine, reportOf } from '../../support/probed-machine.ts';

export { holding, reportOf, seriesOf } from '../../support/probed-machine.ts';
export type ProbedMachine = Probed<NvmeProbe>;

export interface ProbeParts {
  readonly guard?: StepGuard;
  readonly answer?: Answer;
  /** Replaces the C library of the process. */
  readonly loadIoctl?: () => IoctlLibrary;
  /** Wall clock at the start; the epoch when absent. */
  readonly startMs?: number;
}

export function probeOn(root: string, options: Readonly<Record<string, string>> = {}, parts: ProbeParts = {}): ProbedMachine {
  const texts = Object.fromEntries(Object.entries(options).map(([name, text]) => [name, text.replaceAll('{root}', root)]));
  const values = probeOptions(family, texts);
  return probedMachine(root, (host) => new NvmeProbe(host, values, new SmartReader(host, values, parts.loadIoctl)), { ...parts, kmsg: '' });
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

export const devicesOf = ({ reports }: Collection): readonly Device[] => reports.map(({ device }) => device);

/** Status of one condition of a device. */
export const statusOf = (collection: Collection, id: string, type: string): unknown =>
  reportOf(collection, id).findings.find((finding) => finding.type === type)?.status;
