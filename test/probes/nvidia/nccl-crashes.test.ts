import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../../src/health/engine/memory.ts';
import { createPolicy } from '../../../src/health/policy/policy.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import { minutes, seconds } from '../../../src/model/duration.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { KernelLogProbe } from '../../../src/probes/nvidia/kernel-log.ts';
import { logConditions } from '../../../src/probes/nvidia/log-findings.ts';
import { readAt } from '../../health/one-device.ts';

const BOOT_MS = Date.parse('2026-01-01T00:00:00Z');
const gpu = (id: string, parent?: string): Device => ({
  family: 'nvidia',
  id,
  kind: parent === undefined ? 'gpu' : 'mig',
  aliases: [],
  ...(parent === undefined ? {} : { parent }),
});
const CRASH = 'healthy: python (PID 4711) crashed in libnccl.so.2.18.5';

let root: string;
let nowMs: number;
let seq: number;
let probe: KernelLogProbe;
let engine: HealthEngine;
let polls: (() => void)[];
/** PIDs of each device; undefined for a device that is not read. */
let users: Map<Device, readonly number[] | undefined>;

const gpus: Probe = {
  collect(): Collection {
    const reports = [...users].map(([device, pids]): DeviceReport => {
      if (pids === undefined) return { device };
      return { device, read: { readings: [], findings: [], processes: pids.map((pid) => ({ pid })) } };
    });
    return { reports, problems: [], listing: 'complete' };
  },
};

function start(state?: HealthMemory): void {
  const clock = {
    now: () => nowMs,
    monotonic: () => nowMs - BOOT_MS,
    after: (_ms: number, run: () => void) => {
      polls.push(run);
      return () => {};
    },
  };
  const roots = { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') };
  probe = new KernelLogProbe(gpus, createHost(roots, clock), join(root, 'kmsg'));
  const { policy } = createPolicy({ specs: { nvidia: [logConditions.NcclSegfault] }, config: {} });
  engine = createHealthEngine({ policy, ...(state === undefined ? {} : { state }) });
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-nccl-'));
  mkdirSync(join(root, 'proc'));
  writeFileSync(join(root, 'proc/stat'), `btime ${BOOT_MS / 1_000}\n`);
  writeFileSync(join(root, 'kmsg'), '6,0,0,-;Linux version 6.8.0\n');
  nowMs = BOOT_MS + minutes(10);
  seq = 1;
  polls = [];
  users = new Map([
    [gpu('a'), [4711]],
    [gpu('b'), [5]],
  ]);
  start();
});
afterEach(async () => {
  await probe.close();
  rmSync(root, { recursive: true, force: true });
});

const line = (pid: number, file = 'libnccl.so.2.18.5'): string =>
  `python[${pid}]: segfault at 10 ip 00007f3a1c2b3d4e sp 00007ffd0e1f2a30 error 4 in ${file}[7f3a1c000000+5e00000]`;
function log(text: string, priority = 6): void {
  appendFileSync(join(root, 'kmsg'), `${priority},${seq},${(nowMs - BOOT_MS) * 1_000},-;${text}\n`);
  seq += 1;
}

/** Reads once and returns the state of each device with its conditions. */
async function read(): Promise<readonly string[]> {
  nowMs += seconds(15);
  const { reports } = await probe.collect();
  const devices = reports.map(({ device, outOfBand }) => ({
    ...readAt(device, nowMs),
    outOfBand: { findings: (outOfBand?.findings ?? []).filter(({ type }) => type === 'NcclSegfault'), readAtMs: nowMs },
  }));
  const { verdicts } = engine.judge({ devices, monotonicMs: nowMs }, nowMs);
  return [...verdicts.values()].map(({ state, conditions }) => [state, ...conditions.map(({ message }) => message)].join(': '));
}

async function readFor(ms: number): Promise<readonly string[]> {
  for (let left = ms; left > seconds(15); left -= seconds(15)) await read();
  return await read();
}

describe('a crash inside NCCL', () => {
  it('is told of the GPU whose process had the PID, and forgotten after a quiet time', async () => {
    expect(await read()).toEqual(['healthy', 'healthy']);
    log(line(4711));
    expect(await read()).toEqual([CRASH, 'healthy']);
    expect(await readFor(minutes(8))).toEqual([CRASH, 'healthy']);
    expect(await readFor(minutes(4))).toEqual(['healthy', 'healthy']);
  });

  it('is told although the process is no longer listed, or its GPU is not read', async () => {
    await read();
    log(line(4711));
    users = new Map([...users].map(([device, pids], index) => [device, index === 0 ? [] : pids]));
    expect(await read()).toEqual([CRASH, 'healthy']);
    users = new Map([...users].map(([device], index) => [device, index === 0 ? [] : undefined]));
    log(line(5));
    expect((await read())[1]).toBe(CRASH.replace('4711', '5'));
  });

  it('is told of all GPUs of the process, and of the instance instead of its GPU', async () => {
    users = new Map([
      [gpu('a'), [4711]],
      [gpu('b'), [4711, 5]],
      [gpu('b-1', 'b'), [4711]],
      [gpu('b-2', 'b'), [5]],
    ]);
    await read();
    log(line(4711));
    expect(await read()).toEqual([CRASH, 'healthy', CRASH, 'healthy']);
  });

  it('of a thread is told of the GPU of its process', async () => {
    await read();
    mkdirSync(join(root, 'proc/4799'));
    writeFileSync(join(root, 'proc/4799/status'), 'Name:\tnccl proxy\nUmask:\t0022\nTgid:\t4711\n');
    log(line(4799));
    expect(await read()).toEqual([CRASH.replace('4711', '4799'), 'healthy']);
  });

  it('wakes the probe once and not at each further crash', async () => {
    let wakes = 0;
    probe.watch(() => {
      wakes += 1;
    });
    await read();
    const poll = (): void => {
      for (const run of polls.splice(0)) run();
    };
    log(line(4711));
    poll();
    expect(wakes).toBe(1);
    for (let turn = 0; turn < 20; turn += 1) {
      log(line(4711));
      poll();
    }
    expect(wakes).toBe(1);
  });

  it('from before the start of the agent is told of nobody, because its PID may belong to another process', async () => {
    log(line(4711));
    nowMs += minutes(2);
    expect(await read()).toEqual(['healthy', 'healthy']);
  });

  it('stays reported after a restart of the agent, until the quiet time is over', async () => {
    await read();
    log(line(4711));
    await read();
    await probe.close();
    nowMs += minutes(2);
    start(engine.state());
    expect(await read()).toEqual([CRASH, 'healthy']);
    expect(await readFor(minutes(11))).toEqual(['healthy', 'healthy']);
  });
});

describe('no crash inside NCCL', () => {
  it.each([
    ['of a process that uses no GPU', line(9), 6],
    ['in another library', line(4711, 'libc.so.6'), 6],
    ['in a library with a similar name', line(4711, 'libnccl.so.2-fake'), 6],
    ['that a program wrote into the log', line(4711), 14],
    ['that a name imitates', `[4711]: segfault[9]: ${line(9).slice('python[9]: '.length)}`, 6],
  ])('%s is told of a GPU', async (_, text, priority) => {
    await read();
    log(text, priority);
    expect(await read()).toEqual(['healthy', 'healthy']);
  });
});
