import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHost } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { hours, seconds } from '../../../src/model/duration.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { declaredFinding } from '../../../src/probes/kit/finding.ts';
import { conditions } from '../../../src/probes/nvidia/conditions.ts';
import { KernelLogProbe } from '../../../src/probes/nvidia/kernel-log.ts';

const BOOT_MS = Date.parse('2026-01-01T00:00:00Z');
const GPU: Device = { family: 'nvidia', id: 'GPU-1', kind: 'gpu', aliases: [], pciAddress: '0000:17:00.0' };

let root: string;
let wallMs: number;
let monotonicMs: number;
let seq: number;
/** Whether the driver asks for a reset. */
let isAsked: boolean;
let probe: KernelLogProbe;

const gpus: Probe = {
  collect(): Collection {
    const message = isAsked ? 'the driver asks for a reset' : 'the driver asks for nothing';
    const findings = [declaredFinding(conditions.RecoveryAction, 'GpuReset', { status: isAsked, message })];
    return { reports: [{ device: GPU, read: { readings: [], findings } }], problems: [], listing: 'complete' };
  },
};

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-stepped-clock-'));
  mkdirSync(join(root, 'proc'));
  writeFileSync(join(root, 'proc/stat'), `btime ${BOOT_MS / 1_000}\n`);
  writeFileSync(join(root, 'kmsg'), '6,0,0,-;Linux version 6.8.0\n');
  [wallMs, monotonicMs, seq, isAsked] = [BOOT_MS + hours(1), hours(1), 1, false];
  const clock = { now: () => wallMs, monotonic: () => monotonicMs, after: () => () => {} };
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') };
  probe = new KernelLogProbe(gpus, createHost(roots, clock), join(root, 'kmsg'));
});
afterEach(async () => {
  await probe.close();
  rmSync(root, { recursive: true, force: true });
});

function fallOff(): void {
  appendFileSync(
    join(root, 'kmsg'),
    `3,${seq},${monotonicMs * 1_000},-;NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\n`,
  );
  seq += 1;
}

interface Told {
  readonly isFaulty: boolean | undefined;
  /** Wall clock of the last Xid, milliseconds. */
  readonly atMs: number | undefined;
}

async function read(): Promise<Told> {
  [wallMs, monotonicMs] = [wallMs + seconds(15), monotonicMs + seconds(15)];
  const [report] = (await probe.collect()).reports;
  const { findings = [], readings = [] } = report?.outOfBand ?? {};
  const at = [...readings].find(({ metric }) => metric === 'device_nvidia_xid_last_timestamp_seconds')?.value;
  const about = findings.filter(({ type }) => type === 'Xid');
  return { isFaulty: about.some(({ status }) => status === true), atMs: at === undefined ? undefined : Number(at) * 1_000 };
}

describe.each([-2, 3])('a wall clock that was set by %i hours while the agent runs', (byHours) => {
  it('neither hides an Xid that comes later, nor keeps one that the driver forgets', async () => {
    expect(await read()).toEqual({ isFaulty: false, atMs: undefined });
    wallMs += hours(byHours);
    await read();
    fallOff();
    isAsked = true;
    expect(await read()).toEqual({ isFaulty: true, atMs: wallMs });
    const seenMs = wallMs;
    expect(await read()).toEqual({ isFaulty: true, atMs: seenMs });
    isAsked = false;
    await read();
    expect(await read()).toEqual({ isFaulty: false, atMs: seenMs });
  });

  it('does not change the order of an Xid and the answers around it', async () => {
    fallOff();
    isAsked = true;
    const toldMs = BOOT_MS + hours(1);
    expect(await read()).toEqual({ isFaulty: true, atMs: toldMs });
    wallMs += hours(byHours);
    expect(await read()).toEqual({ isFaulty: true, atMs: toldMs });
    isAsked = false;
    await read();
    expect(await read()).toEqual({ isFaulty: false, atMs: toldMs });
  });
});
