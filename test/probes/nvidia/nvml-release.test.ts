import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type LiveNode, liveNode } from './scripted-machine.ts';
import { hopper } from './scripted-script.ts';

let node: LiveNode;
let probe: Probe;
let release: string;
beforeEach(() => {
  node = liveNode({ gpus: [hopper(0, { gpm: 1, 'gpm.2': 40 }), hopper(1)] });
  release = join(node.root, 'release');
  writeFileSync(join(node.root, 'dev/kmsg'), '');
});
afterEach(async () => {
  await probe.close?.();
  node.remove();
});

function started(options: Readonly<Record<string, string>>, clock = node.host.clock): Probe {
  probe = family.createProbe({ ...node.host, clock }, probeOptions(family, { 'release-file': release, ...options }));
  return probe;
}

/** Numbers of the library's files that this process has mapped. */
const mapped = (): readonly (string | undefined)[] => [
  ...new Set(
    readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .filter((line) => line.includes(node.library))
      .map((line) => line.split(/\s+/)[4]),
  ),
];
const idsOf = ({ reports }: Collection): string[] => reports.map(({ device }) => device.id);
const temperatures = ({ reports }: Collection): unknown[] =>
  reports.flatMap(
    ({ read }) =>
      [...(read?.readings ?? [])].find(({ metric, labels }) => metric === 'device_temperature_celsius' && labels?.sensor === 'gpu')
        ?.value ?? [],
  );
const codesOf = ({ problems }: Collection): string[] => problems.map(({ code }) => code);

describe('while the release file exists', () => {
  it('the library is closed, and GPUs are listed without a read', async () => {
    started({ source: 'nvml', 'nvml-library': node.library });
    expect(temperatures(await probe.collect())).toEqual([41, 42]);
    // Activity samples must also be freed: the test library ends a process that keeps one.
    await probe.collect();
    expect(mapped()).toHaveLength(1);
    writeFileSync(release, '');
    for (let n = 0; n < 2; n += 1) {
      const told = await probe.collect();
      expect([temperatures(told), codesOf(told), told.listing]).toEqual([[], ['driver-released'], 'partial']);
      expect(mapped()).toEqual([]);
    }
  });

  it('the driver can be upgraded; afterwards the new library is opened', async () => {
    started({ source: 'nvml', 'nvml-library': node.library });
    const before = await probe.collect();
    const [first] = mapped();
    writeFileSync(release, '');
    await probe.collect();
    // An upgrade replaces the file.
    copyFileSync(node.library, `${node.library}.new`);
    renameSync(`${node.library}.new`, node.library);
    rmSync(release);
    const after = await probe.collect();
    expect(idsOf(after)).toEqual(idsOf(before));
    expect(after.listing).toBe('complete');
    expect(mapped()).toHaveLength(1);
    expect(mapped()).not.toEqual([first]);
  });

  it('the command is not started', async () => {
    const program = join(node.root, 'nvidia-smi');
    const trace = join(node.root, 'trace');
    writeFileSync(program, `#!/bin/sh\ntouch '${trace}'\nexit 1\n`);
    chmodSync(program, 0o755);
    started({ source: 'smi', 'smi-path': program });
    writeFileSync(release, '');
    expect(codesOf(await probe.collect())).toEqual(['driver-released']);
    expect(existsSync(trace)).toBe(false);
    rmSync(release);
    await probe.collect();
    expect(existsSync(trace)).toBe(true);
  });
});

describe('on request', () => {
  const until = (ms: number) => ({ by: 'a test', untilMs: Date.now() + ms });
  const released = ({ reports }: Collection): unknown[] =>
    reports.map(({ outOfBand }) => outOfBand?.findings.find(({ type }) => type === 'DriverReleased')?.status);

  it('the driver is closed, its GPUs say who asked until when, and it is open again when the request is withdrawn', async () => {
    started({ source: 'nvml', 'nvml-library': node.library });
    expect(released(await probe.collect())).toEqual([false, false]);
    for (let turn = 0; turn < 20; turn += 1) {
      const request = until(600_000);
      probe.release?.(request);
      const told = await probe.collect();
      expect([released(told), mapped(), temperatures(told)]).toEqual([[true, true], [], []]);
      const [{ outOfBand } = { outOfBand: undefined }] = told.reports;
      expect([...(outOfBand?.readings ?? [])].filter(({ metric }) => metric !== 'device_kernel_log_events_total')).toEqual([
        { metric: 'device_nvidia_driver_release_end_timestamp_seconds', value: Math.floor(request.untilMs / 1_000) },
      ]);
      const message = outOfBand?.findings.find(({ type }) => type === 'DriverReleased')?.message;
      expect(message).toBe(`a test asked the agent to close the driver until ${new Date(request.untilMs).toISOString()}`);
      probe.release?.(undefined);
      expect(temperatures(await probe.collect())).toEqual([41, 42]);
    }
  });

  it('the driver is open again when the time is over, although nobody ended the release', async () => {
    started({ source: 'nvml', 'nvml-library': node.library });
    await probe.collect();
    probe.release?.(until(50));
    expect(released(await probe.collect())).toEqual([true, true]);
    await expect.poll(async () => released(await probe.collect())).toEqual([false, false]);
  });

  it.each([-7_200_000, 7_200_000])('a wall clock that is set meanwhile by %i ms does not change how long', async (byMs) => {
    let [wallMs, monotonicMs] = [Date.now(), 0];
    started({ source: 'nvml', 'nvml-library': node.library }, { now: () => wallMs, monotonic: () => monotonicMs, after: () => () => {} });
    await probe.collect();
    probe.release?.(until(600_000));
    wallMs += byMs;
    monotonicMs = 590_000;
    expect(released(await probe.collect())).toEqual([true, true]);
    monotonicMs = 610_000;
    expect(released(await probe.collect())).toEqual([false, false]);
  });
});

describe('when the driver unbinds a GPU', () => {
  const bind = (gpus: readonly number[]): void => {
    const folder = join(node.root, 'proc/driver/nvidia/gpus');
    rmSync(folder, { recursive: true, force: true });
    for (const gpu of gpus) mkdirSync(join(folder, `0000:${(0x3b + gpu).toString(16)}:00.0`), { recursive: true });
  };
  const machine = (count: number, event: number) => ({
    lines: [`system_event = ${event} 1`],
    gpus: Array.from({ length: count }, (_, index) => hopper(index)),
  });

  it.each([
    ['the driver is unloaded and loaded again', [], [0, 1], 2],
    ['only the other GPU is left', [0], [0], 1],
  ])('the library is closed until %s', async (_name, during, after, count) => {
    bind([0, 1]);
    started({ source: 'nvml', 'nvml-library': node.library });
    expect(codesOf(await probe.collect())).toEqual([]);
    node.write(machine(2, 1));
    const first = await probe.collect();
    expect([codesOf(first), mapped()]).toEqual([['driver-released'], []]);
    expect(first.problems[0]?.message).toMatch(/^the driver, which unbinds a GPU, asked the agent to close the driver until /);
    expect(codesOf(await probe.collect())).toEqual(['driver-released']);
    bind(during);
    node.write(machine(count, 1));
    if (during.length === 0) expect(codesOf(await probe.collect())).toEqual(['driver-released']);
    bind(after);
    const back = await probe.collect();
    expect([temperatures(back).length, mapped().length]).toEqual([count, 1]);
  });

  it('the watch closes the library within seconds, and starts a read', async () => {
    bind([0, 1]);
    started({ source: 'nvml', 'nvml-library': node.library });
    await probe.collect();
    const woken = new Promise<void>((resolve) => {
      probe.watch?.(resolve);
    });
    node.write(machine(2, 1));
    await woken;
    expect(mapped()).toEqual([]);
    expect(codesOf(await probe.collect())).toEqual(['driver-released']);
  });

  it('a driver without such events is read as before', async () => {
    node.write({ lines: ['fail.nvmlSystemEventSetCreate = 3'], gpus: [hopper(0), hopper(1)] });
    started({ source: 'nvml', 'nvml-library': node.library });
    expect(codesOf(await probe.collect())).toEqual([]);
    node.write({ lines: ['fail.nvmlSystemEventSetCreate = 3', 'system_event = 1 1'], gpus: [hopper(0), hopper(1)] });
    expect(codesOf(await probe.collect())).toEqual([]);
  });
});

describe('a library with another version than the driver', () => {
  it('is opened again, so that the new library is found', async () => {
    started({ source: 'nvml', 'nvml-library': node.library });
    const before = await probe.collect();
    const [first] = mapped();
    node.write({ lines: ['fail.nvmlInit_v2 = 18'], gpus: [{ ...hopper(0), lines: ['fail.nvmlDeviceGetClockInfo = 1'] }, hopper(1)] });
    await probe.collect();
    const failing = await probe.collect();
    expect([codesOf(failing), mapped()]).toEqual([['driver-library-mismatch'], []]);
    copyFileSync(node.library, `${node.library}.new`);
    renameSync(`${node.library}.new`, node.library);
    node.write({ gpus: [hopper(0), hopper(1)] });
    expect(idsOf(await probe.collect())).toEqual(idsOf(before));
    expect(mapped()).not.toEqual([first]);
  });
});
