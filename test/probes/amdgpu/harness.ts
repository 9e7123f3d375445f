import { cpSync, existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { family } from '../../../src/probes/amdgpu/index.ts';
import { CAPTURES } from '../../support/captures.ts';
import type { Answer } from '../../support/guarded.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { capturedCard as cardIn, type ProbedMachine, placeCard, probedMachine } from '../../support/probed-machine.ts';

/** Captured cards. */
export const CARDS = join(CAPTURES, 'amdgpu');

export { holding, reportOf, seriesOf } from '../../support/probed-machine.ts';
export type { ProbedMachine };

export const probeOn = (root: string, options: Readonly<Record<string, string>> = {}, guard?: StepGuard, answer?: Answer): ProbedMachine =>
  probedMachine(root, (host) => family.createProbe(host, probeOptions(family, options)), { kmsg: '', guard, answer });

/** Machine of the simulated node. */
export function simulatedMachine(count: number, options: Readonly<Record<string, string>> = {}): ProbedMachine {
  const hardware = hardwareOf(family, { amdgpu: count });
  return probeOn(buildMachine({ about: '', ...hardware, options: {} } as MachineFile).root, options);
}

/** An empty machine. */
export const emptyMachine = (options: Readonly<Record<string, string>> = {}): ProbedMachine =>
  probeOn(mkdtempSync(join(tmpdir(), 'device-agent-amdgpu-')), options);

/** Path of a captured card. */
export const capturedCard = (capture: string): string => cardIn(join(CARDS, capture));

/** Puts a captured card into a machine. */
export function placeCapture(root: string, capture: string): string {
  const address = placeCard(root, join(CARDS, capture));
  const kfd = join(CARDS, capture, 'kfd');
  if (existsSync(kfd)) cpSync(kfd, join(root, 'sys/class/kfd/kfd'), { recursive: true });
  return address;
}
