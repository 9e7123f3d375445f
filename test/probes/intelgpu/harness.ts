import { mkdtempSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { family } from '../../../src/probes/intelgpu/index.ts';
import { CAPTURES } from '../../support/captures.ts';
import type { Answer } from '../../support/guarded.ts';
import { hardwareOf } from '../../support/hardware.ts';
import { buildMachine, type MachineFile } from '../../support/machine.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type ProbedMachine, placeCard, probedMachine } from '../../support/probed-machine.ts';
import type { Told } from '../../support/told.ts';

/** Captured cards. */
export const CARDS = join(CAPTURES, 'intel-gpu');

export { reportOf, seriesOf } from '../../support/probed-machine.ts';
export type { ProbedMachine };

export const probeOn = (root: string, options: Readonly<Record<string, string>> = {}, answer?: Answer): ProbedMachine =>
  probedMachine(root, (host) => family.createProbe(host, probeOptions(family, options)), { answer });

/** Machine of the simulated node, without processes. */
export function simulatedMachine(count: number, options: Readonly<Record<string, string>> = {}, answer?: Answer): ProbedMachine {
  const hardware = hardwareOf(family, { intelgpu: count });
  const { root } = buildMachine({ about: '', ...hardware, options: {} } as MachineFile);
  return probeOn(root, options, answer);
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

/** Puts a captured card into a machine. */
export const placeCapture = (root: string, capture: string): string => placeCard(root, join(CARDS, capture));

/** Status of each finding that has one, as `Type` or `Type/instance`. */
export function statusOf({ findings }: Pick<Told, 'findings'>): Readonly<Record<string, boolean | 'unknown'>> {
  return Object.fromEntries(
    findings.flatMap(({ type, instance, status }) =>
      status === undefined ? [] : [[instance === undefined ? type : `${type}/${instance}`, status]],
    ),
  );
}
