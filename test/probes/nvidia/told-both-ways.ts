import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import type { Finding } from '../../../src/model/health.ts';
import type { Reading } from '../../../src/model/metric.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { documentOf, listingOf, topologyOf } from './scripted-document.ts';
import { type LiveNode, liveNode, plainHost } from './scripted-machine.ts';
import type { ScriptedNode } from './scripted-script.ts';

/** Metrics that only the library provides. */
const LIBRARY_ONLY = new Set([
  'device_energy_joules_total',
  'device_nvidia_fabric_fault',
  'device_link_up',
  'device_transmitted_bytes_total',
  'device_received_bytes_total',
  'device_nvidia_nvlink_errors_total',
  'device_nvidia_nvlink_peer_access',
]);
const LIBRARY_ONLY_REASONS = new Set(['board_limit', 'low_utilization', 'reliability']);

const isShared = ({ metric, labels }: Reading): boolean =>
  !LIBRARY_ONLY.has(metric) && !(metric === 'device_throttled_seconds_total' && LIBRARY_ONLY_REASONS.has(labels?.reason ?? ''));

const nodes: LiveNode[] = [];
afterEach(() => {
  for (const node of nodes.splice(0)) node.remove();
});

/** A node with the files around its GPUs. It is removed after the test. */
export function live(node: ScriptedNode, hostOf = plainHost): LiveNode {
  const made = liveNode(node, hostOf);
  nodes.push(made);
  writeFileSync(join(made.root, 'dev/kmsg'), '');
  for (const pid of [4711, 4712, 815]) {
    mkdirSync(join(made.root, `proc/${pid}`), { recursive: true });
    writeFileSync(
      join(made.root, `proc/${pid}/cgroup`),
      `0::/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_00000000${pid}.slice/x.scope\n`,
    );
  }
  return made;
}

export const byLibrary = (node: LiveNode, more: Readonly<Record<string, string>> = {}): Probe =>
  family.createProbe(node.host, probeOptions(family, { source: 'nvml', 'nvml-library': node.library, ...more }));

/** A command that prints the same machine. */
export function byCommand(node: LiveNode, machine: ScriptedNode): Probe {
  const program = join(node.root, 'nvidia-smi');
  writeFileSync(join(node.root, 'document'), documentOf(machine));
  writeFileSync(join(node.root, 'listing'), listingOf(machine));
  writeFileSync(join(node.root, 'topology'), topologyOf(machine));
  const file = 'case "$1" in -L) file=listing ;; topo) file=topology ;; *) file=document ;; esac';
  writeFileSync(program, `#!/bin/sh\n${file}\nexec cat "${node.root}/$file"\n`);
  chmodSync(program, 0o755);
  return family.createProbe(node.host, probeOptions(family, { source: 'smi', 'smi-path': program }));
}

/** These counts are of earlier reads, which no fresh probe has. */
const isOfThisRead = ({ type }: Finding): boolean => !['NvLinkErrors', 'NvLinkRecoveries', 'FabricCliqueChanged'].includes(type);
/** The command does not print the state of links. */
const isSharedFinding = ({ type }: Finding): boolean => type !== 'NvLinkDown' && type !== 'NvLinkPeerLost';

/** Sorts the values without their times, and removes those that only one source provides, unless both sources are the library. */
export function comparable({ reports, problems, listing }: Collection, isCompared: (reading: Reading) => boolean = isShared): object {
  const text = (value: unknown): string =>
    JSON.stringify(value, (name, each) => (name === 'readMs' ? undefined : typeof each === 'bigint' ? `${each}n` : each));
  return {
    listing,
    problems,
    reports: reports.map((report) => ({
      device: report.device,
      readings: [...(report.read?.readings ?? [])].filter(isCompared).map(text).sort(),
      findings: report.read?.findings
        .filter((finding) => isOfThisRead(finding) && (isCompared !== isShared || isSharedFinding(finding)))
        .map(text)
        .sort(),
      asideReadings: report.outOfBand && [...report.outOfBand.readings].map(text).sort(),
      outOfBand: report.outOfBand?.findings.map(text).sort(),
      processes: report.read?.processes ?? [],
    })),
  };
}

const PAST = new Set(['Xid', 'GpuFallenOffBus']);

/** Removes findings that need earlier reads: earlier faults may have ended. */
export const withoutPast = (collection: Collection): Collection => ({
  ...collection,
  reports: collection.reports.map(
    ({ outOfBand, ...report }): DeviceReport =>
      outOfBand === undefined
        ? report
        : { ...report, outOfBand: { ...outOfBand, findings: outOfBand.findings.filter(({ type }) => !PAST.has(type)) } },
  ),
});
