import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import type { Probe } from '../../../src/probes/family.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { WatchedGuard } from '../../support/guarded.ts';
import { probeOptions } from '../../support/probe-options.ts';
import { type Told, toldOf } from '../../support/told.ts';
import { until } from '../../support/until.ts';
import { documentOf } from './scripted-document.ts';
import { type LiveNode, liveNode, plainHost } from './scripted-machine.ts';
import { hopper, MIB, type ScriptedGpu, type ScriptedNode } from './scripted-script.ts';

const nodes: LiveNode[] = [];
const probes: Probe[] = [];
afterEach(async () => {
  for (const probe of probes.splice(0)) await probe.close?.();
  for (const node of nodes.splice(0)) node.remove();
});

function live(node: ScriptedNode, hostOf = plainHost): LiveNode {
  const made = liveNode(node, hostOf);
  nodes.push(made);
  writeFileSync(join(made.root, 'dev/kmsg'), '');
  return made;
}

function byLibrary(node: LiveNode, more: Readonly<Record<string, string>> = {}): Probe {
  const probe = family.createProbe(node.host, probeOptions(family, { source: 'nvml', 'nvml-library': node.library, ...more }));
  probes.push(probe);
  return probe;
}

const withLines = (gpu: ScriptedGpu, ...lines: string[]): ScriptedGpu => ({ ...gpu, lines });
const reportOf = ({ reports }: Collection, index = 0): Told =>
  toldOf(reports.find(({ device }) => device.id.endsWith(String(index + 1).padStart(12, '0'))) as DeviceReport);
const readingOf = (report: Told, metric: string, label = ''): number | bigint | undefined =>
  report.readings.find((reading) => reading.metric === metric && Object.values(reading.labels ?? {}).join() === label)?.value;
const holding = ({ findings }: Told): string[] => findings.filter(({ status }) => status === true).map(({ type }) => type);

const NO_VALUE = [2, 3, 4, 5, 6, 7, 10, 13, 19, 20, 21, 22, 23, 24, 25, 26, 27, 29, 30];
const NODE: Readonly<Record<number, string>> = {
  1: 'driver-unreachable',
  9: 'driver-not-loaded',
  12: 'library-not-found',
  17: 'no-permission',
  18: 'driver-library-mismatch',
  28: 'no-devices',
};

describe('a code in the place of the clocks', () => {
  it.each(NO_VALUE)('%i omits the value without a problem', async (code) => {
    const node = live({ gpus: [withLines(hopper(0), `fail.nvmlDeviceGetClockInfo = ${code}`)] });
    const collection = await byLibrary(node).collect();
    const report = reportOf(collection);
    expect(readingOf(report, 'device_clock_hertz', 'sm')).toBeUndefined();
    expect(readingOf(report, 'device_temperature_celsius', 'gpu')).toBe(41);
    expect(holding(report)).toEqual([]);
    expect(collection.problems).toEqual([]);
    expect(collection.listing).toBe('complete');
  });

  it.each([11, 999, 77])('%i is a failure of the driver, with the text of nvidia-smi', async (code) => {
    const node = live({ gpus: [withLines(hopper(0), `fail.nvmlDeviceGetClockInfo = ${code}`)] });
    const collection = await byLibrary(node).collect();
    expect(readingOf(reportOf(collection), 'device_clock_hertz', 'sm')).toBeUndefined();
    expect(collection.problems).toEqual([
      {
        code: 'value-unreadable',
        device: reportOf(collection).device.id,
        message: 'clocks/graphics_clock: Unknown Error, clocks/sm_clock: Unknown Error, clocks/mem_clock: Unknown Error and 1 more',
      },
    ]);
  });

  it.each([
    ['nvmlDeviceGetMemoryErrorCounter', 'ecc_errors/volatile/sram_correctable: Unknown Error'],
    ['nvmlDeviceGetPerformanceState', 'performance_state: Unknown Error'],
    ['nvmlDeviceGetGpuFabricInfoV', 'fabric/state: Unknown Error, fabric/health/summary: Unknown Error'],
  ])('999 of %s is said too, where the value is none by itself', async (symbol, said) => {
    const collection = await byLibrary(live({ gpus: [withLines(hopper(0), `fail.${symbol} = 999`)] })).collect();
    expect(collection.problems).toMatchObject([{ code: 'value-unreadable', message: expect.stringContaining(said) }]);
    expect(holding(reportOf(collection))).toEqual([]);
  });

  it.each([
    ['nvmlDeviceGetRemappedRows', 'RowRemapFailure'],
    ['nvmlDeviceGetSramEccErrorStatus', 'SramThresholdExceeded'],
    ['nvmlDeviceGetFieldValues', 'RecoveryAction'],
    ['nvmlDeviceGetGpuFabricInfoV', 'FabricUnhealthy'],
  ])('999 of %s leaves unknown whether the GPU has %s', async (symbol, type) => {
    const collection = await byLibrary(live({ gpus: [withLines(hopper(0), `fail.${symbol} = 999`)] })).collect();
    expect(reportOf(collection).findings).toContainEqual(expect.objectContaining({ type, status: 'unknown' }));
  });

  it('14 is a damaged infoROM', async () => {
    const collection = await byLibrary(live({ gpus: [withLines(hopper(0), 'fail.nvmlDeviceGetClockInfo = 14')] })).collect();
    expect(holding(reportOf(collection))).toEqual(['InforomCorrupted']);
  });

  it('the library checks the infoROM of a GPU that answers everything', async () => {
    const collection = await byLibrary(live({ gpus: [hopper(0, { inforom: 14 }), hopper(1)] })).collect();
    expect(holding(reportOf(collection, 0))).toEqual(['InforomCorrupted']);
    expect(holding(reportOf(collection, 1))).toEqual([]);
  });

  it.each([
    [0, false],
    [3, undefined],
    [10, undefined],
    [13, undefined],
    [16, 'unknown'],
    [999, 'unknown'],
  ])('%i of the check of the infoROM says whether it is sound: %s', async (inforom, status) => {
    const collection = await byLibrary(live({ gpus: [hopper(0, { inforom })] })).collect();
    expect(reportOf(collection).findings.find(({ type }) => type === 'InforomCorrupted')?.status).toBe(status);
  });

  it('16 asks for a reset', async () => {
    const collection = await byLibrary(live({ gpus: [withLines(hopper(0), 'fail.nvmlDeviceGetClockInfo = 16')] })).collect();
    const asked = reportOf(collection).findings.find(({ type }) => type === 'RecoveryAction');
    expect(asked).toMatchObject({ status: true, reason: 'GpuReset' });
  });

  it('8 is a cable that is missing', async () => {
    const collection = await byLibrary(live({ gpus: [withLines(hopper(0), 'fail.nvmlDeviceGetClockInfo = 8')] })).collect();
    expect(collection.problems.map(({ code }) => code)).toContain('insufficient-power');
  });
});

const IDENTITY = ['Name', 'Serial', 'VbiosVersion', 'MinorNumber', 'Architecture'].map((what) => `nvmlDeviceGet${what}`);

describe('the identity of a board', () => {
  it.each([999, 10, 11])('is read later when the first read fails with %i', async (code) => {
    const whole = await byLibrary(live({ gpus: [hopper(0)] })).collect();
    const refused = IDENTITY.map((symbol) => `fail.${symbol} = ${code}`);
    const node = live({ gpus: [withLines(hopper(0), ...refused)] });
    const probe = byLibrary(node, { 'nvml-facts-every': '0s' });
    const { device } = reportOf(await probe.collect());
    expect([device.model, device.serial, device.firmware]).toEqual([undefined, undefined, undefined]);
    node.write({ gpus: [hopper(0)] });
    const late = reportOf(await probe.collect());
    expect(late.device).toEqual(reportOf(whole).device);
    expect(late.readings.find(({ metric }) => metric === 'device_nvidia_info')).toEqual(
      reportOf(whole).readings.find(({ metric }) => metric === 'device_nvidia_info'),
    );
  });

  it('is not read again after a success', async () => {
    const node = live({ gpus: [hopper(0)] });
    const probe = byLibrary(node, { 'nvml-facts-every': '0s' });
    const before = reportOf(await probe.collect());
    node.write({ gpus: [withLines(hopper(0), ...IDENTITY.map((symbol) => `fail.${symbol} = 999`))] });
    const collection = await probe.collect();
    expect(reportOf(collection).device).toEqual(before.device);
    expect(collection.problems).toEqual([]);
  });
});

describe.each(Object.entries(NODE))('the code %s, which concerns the node,', (code, problem) => {
  it('is reported when the library is opened', async () => {
    const node = live({ lines: [`fail.nvmlInit_v2 = ${code}`], gpus: [hopper(0)] });
    mkdirSync(join(node.root, 'proc/driver/nvidia'), { recursive: true });
    writeFileSync(join(node.root, 'proc/driver/nvidia/version'), 'NVRM version\n');
    const collection = await byLibrary(node).collect();
    expect(collection.problems.map((each) => each.code)).toEqual([problem]);
    expect(collection.reports).toEqual([]);
  });

  it('is also reported in the middle of a round, and ends when the driver works again', async () => {
    const node = live({ gpus: [hopper(0), hopper(1)] });
    const probe = byLibrary(node);
    const before = await probe.collect();
    node.write({ gpus: [hopper(0), withLines(hopper(1), `fail.nvmlDeviceGetClockInfo = ${code}`)] });
    const during = await probe.collect();
    expect(during.problems.map((each) => each.code)).toEqual([problem]);
    expect(during.reports.every(({ read }) => read === undefined)).toBe(true);
    expect(during.listing).toBe(problem === 'no-devices' ? 'complete' : 'partial');
    if (problem === 'driver-not-loaded')
      expect(during.reports.map((report) => holding(toldOf(report)))).toEqual([['DriverUnusable'], ['DriverUnusable']]);
    node.write({ gpus: [hopper(0), hopper(1)] });
    const after = await probe.collect();
    expect(after.reports.map(({ device }) => device)).toEqual(before.reports.map(({ device }) => device));
    expect(after.problems).toEqual([]);
    expect(reportOf(after, 1).readings).toEqual(reportOf(before, 1).readings);
  });
});

describe('the place of a board', () => {
  const placeOf = async (more: Readonly<Record<string, number | string>>, without: readonly string[] = []) => {
    const { values, ...rest } = hopper(0, more);
    const told = Object.fromEntries(Object.entries(values).filter(([name]) => !without.includes(name)));
    const report = reportOf(await byLibrary(live({ gpus: [{ ...rest, values: told }] })).collect());
    return [report.device.location, report.readings.find(({ metric }) => metric === 'device_nvidia_platform_info')?.labels];
  };

  it('has the serial number of the chassis, which fills its room, and the numbers in it', async () => {
    const labels = { chassis: '1234567890123456', slot: '24', tray: '14', host: '1' };
    expect(await placeOf({ chassis: '1234567890123456' })).toEqual(['chassis 1234567890123456, slot 24, tray 14, host 1', labels]);
  });

  it('has no chassis where the platform has no number of it, and is absent where it tells none', async () => {
    expect(await placeOf({ slot: 0, tray: 0 }, ['chassis'])).toEqual([
      'slot 0, tray 0, host 1',
      { chassis: '', slot: '0', tray: '0', host: '1' },
    ]);
    expect(await placeOf({}, ['slot'])).toEqual([undefined, undefined]);
  });
});

describe('a GPU that falls off the bus', () => {
  it('is lost with nothing but its identity, and the others go on', async () => {
    const node = live({ gpus: [hopper(0), hopper(1)] });
    const probe = byLibrary(node);
    const before = await probe.collect();
    node.write({ gpus: [hopper(0, { temperature: 55 }), withLines(hopper(1), 'lost_after = 0')] });
    for (let round = 0; round < 3; round += 1) {
      const collection = await probe.collect();
      const lost = reportOf(collection, 1);
      expect(lost.device).toEqual(reportOf(before, 1).device);
      expect(holding(lost)).toEqual(['GpuLost']);
      expect(lost.readings.map(({ metric }) => metric)).toEqual([
        'device_nvidia_info',
        'device_nvidia_platform_info',
        'device_kernel_log_events_total',
        'device_kernel_log_events_total',
      ]);
      expect(readingOf(reportOf(collection, 0), 'device_temperature_celsius', 'gpu')).toBe(55);
      expect(holding(reportOf(collection, 0))).toEqual([]);
    }
  });

  it('is lost from the first call that fails', async () => {
    const node = live({ gpus: [withLines(hopper(0), 'lost_after = 60')] });
    const probe = byLibrary(node);
    const rounds: boolean[] = [];
    for (let round = 0; round < 6; round += 1) rounds.push(holding(reportOf(await probe.collect())).includes('GpuLost'));
    expect(rounds.indexOf(true)).toBeGreaterThan(-1);
    expect(rounds.slice(rounds.indexOf(true)).every(Boolean)).toBe(true);
  });

  it('has all its values again in the first round in which it answers', async () => {
    const node = live({ gpus: [hopper(0)] });
    const probe = byLibrary(node, { 'nvml-slow-every': '1h' });
    const before = await probe.collect();
    node.write({ gpus: [withLines(hopper(0), 'lost_after = 0')] });
    await probe.collect();
    node.write({ gpus: [hopper(0)] });
    expect(reportOf(await probe.collect()).readings).toEqual(reportOf(before).readings);
  });

  it('stays listed as lost when the library is restarted and gives no handle for it', async () => {
    let nowMs = 0;
    const clock: Clock = { ...systemClock, monotonic: () => nowMs };
    const node = live({ gpus: [hopper(0), hopper(1)] }, (root) =>
      createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock),
    );
    const probe = byLibrary(node);
    const before = await probe.collect();
    node.write({ gpus: [hopper(0), withLines(hopper(1), 'lost_after = 0')] });
    await probe.collect();
    nowMs = 600_000;
    const anew = await probe.collect();
    expect(reportOf(anew, 1).device).toEqual(reportOf(before, 1).device);
    expect(holding(reportOf(anew, 1))).toEqual(['GpuLost']);
    expect(anew.problems.map(({ code }) => code)).toEqual(['gpu-unreadable']);
    expect(reportOf(anew, 0).readings).toEqual(reportOf(before, 0).readings);
  });
});

describe('the health of the fabric', () => {
  const HEALTHY = 0b0001_10_10_10_10;
  const withMask = (bits: number, clear: number): number => (HEALTHY & ~clear) | bits;
  const configured = (number: number): number => withMask(number << 8, 0xf00);

  it.each([
    ['nothing', HEALTHY, undefined, undefined, undefined],
    ['a degraded bandwidth', withMask(1, 3), 'DegradedBandwidth', 'degraded', 'inspect'],
    ['a recovery of routes', withMask(1 << 2, 3 << 2), 'RouteRecovery', 'degraded', 'inspect'],
    ['an unhealthy route', withMask(1 << 4, 3 << 4), 'RouteUnhealthy', 'fatal', 'reset'],
    ['a recovery of an access timeout', withMask(1 << 6, 3 << 6), 'AccessTimeoutRecovery', 'degraded', 'inspect'],
    ['a wrong GUID', configured(2), 'WrongConfiguration', 'fatal', 'inspect'],
    ['no partition', configured(4), 'NoPartition', 'fatal', 'inspect'],
    ['too few NVLinks', configured(5), 'TooFewNvLinks', 'fatal', 'inspect'],
    ['an unknown configuration', configured(15), 'WrongConfiguration', 'fatal', 'inspect'],
  ] as const)('is told by the mask: %s', async (_, mask, reason, severity, remedy) => {
    const judged = async (more: Readonly<Record<string, number>>): Promise<unknown> => {
      const { reports } = await byLibrary(live({ gpus: [hopper(0, { fabric_state: 3, fabric_mask: mask, ...more })] })).collect();
      return reports[0]?.read?.findings.find(({ type }) => type === 'FabricUnhealthy');
    };
    // Driver 550 has the second version of the struct, without a summary.
    const alone = await judged({ fabric_version: 2 });
    if (reason === undefined) expect(alone).toMatchObject({ status: false, reason: 'Healthy' });
    else expect(alone).toMatchObject({ status: true, reason, severity, remedy });
    const summed = await judged({ fabric_summary: reason === undefined ? 1 : 2 });
    if (reason === undefined) expect(summed).toMatchObject({ status: false, reason: 'Healthy' });
    else expect(summed).toMatchObject({ status: true, reason, severity: 'fatal', remedy });
  });

  it('is not known from a mask that supports no field', async () => {
    const gpu = hopper(0, { fabric_state: 3, fabric_mask: 0, fabric_version: 2 });
    const { reports } = await byLibrary(live({ gpus: [gpu] })).collect();
    expect(reports[0]?.read?.findings.filter(({ type }) => type === 'FabricUnhealthy')).toEqual([]);
  });
});

describe('an older driver', () => {
  it('has older functions and structs, which are used in their place', async () => {
    const gpu = hopper(0, { fabric_version: 2 });
    const node = live({
      lines: ['without.nvmlDeviceGetTemperatureV = 1'],
      gpus: [withLines(gpu, 'fail.nvmlDeviceGetMemoryInfo_v2 = 13')],
    });
    const report = reportOf(await byLibrary(node).collect());
    expect(readingOf(report, 'device_temperature_celsius', 'gpu')).toBe(41);
    // The first version of the struct counts what is reserved as used.
    expect(readingOf(report, 'device_memory_used_bytes')).toBe(1_551 * MIB);
    expect(readingOf(report, 'device_memory_reserved_bytes')).toBeUndefined();
    expect(readingOf(report, 'device_nvidia_fabric_state', 'completed')).toBe(1);
    expect(readingOf(report, 'device_nvidia_fabric_health', 'healthy')).toBeUndefined();
  });

  it('without the field of the present power has a function for it', async () => {
    const gpu = hopper(0);
    const { '186 0': instant, ...fields } = gpu.fields ?? {};
    expect(instant).toBe(312_340);
    const report = reportOf(await byLibrary(live({ gpus: [{ ...gpu, fields }] })).collect());
    expect(readingOf(report, 'device_power_watts', 'gpu')).toBe(312.34);
  });
});

describe('processes', () => {
  it('are all listed, however many', async () => {
    const processes = Array.from({ length: 60 }, (_, n) => `C ${1_000 + n} ${MIB}`);
    const report = reportOf(await byLibrary(live({ gpus: [{ ...hopper(0), processes }] })).collect());
    expect(report.processes?.length).toBe(60);
    expect(readingOf(report, 'device_nvidia_processes')).toBe(60);
  });

  it('of programs that share the GPU by MPS are in a list of their own', async () => {
    const sharing = (...processes: string[]): ScriptedNode => ({ gpus: [{ ...hopper(0), processes }] });
    const node = live(sharing('C 10 1048576', 'M 11 2097152'));
    const probe = byLibrary(node, { 'nvml-slow-every': '1h' });
    const report = reportOf(await probe.collect());
    expect(report.processes?.map(({ pid, memoryUsedBytes }) => [pid, memoryUsedBytes])).toEqual([
      [10, 1_048_576],
      [11, 2_097_152],
    ]);
    expect(readingOf(report, 'device_nvidia_processes')).toBe(2);
    node.write(sharing('C 10 1048576', 'M 11 4194304', 'M 12 1048576'));
    expect(reportOf(await probe.collect()).processes?.map(({ pid }) => pid)).toEqual([10, 11, 12]);
  });

  it.each([
    ['Compute', undefined],
    ['Graphics', [4711]],
    ['MPSCompute', [4711]],
  ])('are not counted while the driver fails to list them all: %s', async (kind, pids) => {
    const processes = [`C 4711 ${MIB}`];
    const node = live({ gpus: [{ ...hopper(0), processes, lines: [`fail.nvmlDeviceGet${kind}RunningProcesses_v3 = 999`] }] });
    const probe = byLibrary(node, { 'nvml-slow-every': '0s' });
    const failing = reportOf(await probe.collect());
    expect(readingOf(failing, 'device_nvidia_processes')).toBeUndefined();
    expect(failing.processes?.map(({ pid }) => pid)).toEqual(pids);
    node.write({ gpus: [{ ...hopper(0), processes }] });
    expect(readingOf(reportOf(await probe.collect()), 'device_nvidia_processes')).toBe(1);
  });

  it('are counted when the driver does not list graphics processes', async () => {
    const lines = ['fail.nvmlDeviceGetGraphicsRunningProcesses_v3 = 3'];
    const report = reportOf(await byLibrary(live({ gpus: [{ ...hopper(0), processes: [`C 4711 ${MIB}`], lines }] })).collect());
    expect(readingOf(report, 'device_nvidia_processes')).toBe(1);
  });

  it('have no memory value when the driver does not report it', async () => {
    const report = reportOf(await byLibrary(live({ gpus: [{ ...hopper(0), processes: ['C 4711 none'] }] })).collect());
    expect(report.processes).toEqual([{ pid: 4711 }]);
  });
});

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Tells whether the probe called `wake` since the last call. */
function watched(probe: Probe): () => boolean {
  let isWoken = false;
  const stop = probe.watch?.(() => {
    isWoken = true;
  });
  if (stop !== undefined) stops.push(stop);
  return () => {
    const was = isWoken;
    isWoken = false;
    return was;
  };
}

describe('an Xid from the library', () => {
  const xids = (collection: Collection): unknown[] =>
    reportOf(collection, 1)
      .findings.filter(({ type, status }) => type === 'Xid' && status === true)
      .map(({ instance, severity }) => [instance, severity]);

  it('wakes the probe, and counts when the kernel log cannot be read', async () => {
    const node = live({ gpus: [hopper(0), hopper(1)] });
    const probe = byLibrary({ ...node, host: { ...node.host, kmsg: join(node.root, 'none') } });
    const isWoken = watched(probe);
    expect(xids(await probe.collect())).toEqual([]);
    node.write({ gpus: [hopper(0), withLines(hopper(1), 'xid = 1 79')] });
    // Other wakes may come before.
    let found: unknown[] = [];
    await until(async () => {
      if (isWoken()) found = xids(await probe.collect());
      return found.length > 0;
    }, 'a wake brings the Xid');
    expect(found).toEqual([['79', 'fatal']]);
    expect(holding(reportOf(await probe.collect(), 0))).toEqual([]);
  });

  it('is ignored when the kernel log can be read', async () => {
    const node = live({ gpus: [hopper(0), hopper(1)] });
    const probe = byLibrary(node);
    const isWoken = watched(probe);
    await probe.collect();
    node.write({ gpus: [hopper(0), withLines(hopper(1), 'xid = 1 79')] });
    await until(isWoken);
    expect(xids(await probe.collect())).toEqual([]);
  });
});

describe('the source of values', () => {
  it('is the command when there is no library', async () => {
    const node = live({ gpus: [hopper(0)] });
    writeFileSync(join(node.root, 'document'), documentOf({ gpus: [hopper(0)] }));
    const program = join(node.root, 'nvidia-smi');
    writeFileSync(program, `#!/bin/sh\nexec cat '${node.root}/document'\n`);
    chmodSync(program, 0o755);
    const options = { source: 'auto', 'smi-path': program, 'nvml-library': join(node.root, 'none.so') };
    const probe = family.createProbe(node.host, probeOptions(family, options));
    const collection = await probe.collect();
    expect(readingOf(reportOf(collection), 'device_temperature_celsius', 'gpu')).toBe(41);
    expect(readingOf(reportOf(collection), 'device_energy_joules_total')).toBeUndefined();
    expect(collection.problems).toEqual([]);
  });

  it('is the command as long as the library does not start, and the library from then on', async () => {
    const node = live({ lines: ['fail.nvmlInit_v2 = 999'], gpus: [hopper(0)] });
    writeFileSync(join(node.root, 'document'), documentOf({ gpus: [hopper(0)] }));
    const program = join(node.root, 'nvidia-smi');
    writeFileSync(program, `#!/bin/sh\nexec cat '${node.root}/document'\n`);
    chmodSync(program, 0o755);
    const probe = byLibrary(node, { source: 'auto', 'smi-path': program });
    expect(readingOf(reportOf(await probe.collect()), 'device_energy_joules_total')).toBeUndefined();
    node.write({ gpus: [hopper(0)] });
    expect(readingOf(reportOf(await probe.collect()), 'device_energy_joules_total')).toBe(123_456.789);
  });

  it.each([
    [18, 'driver-library-mismatch', 'LibraryMismatch'],
    [9, 'driver-not-loaded', 'DriverNotLoaded'],
  ])('that answers %i has the last word where there is no command', async (code, problem, reason) => {
    const node = live({ gpus: [hopper(0)] });
    mkdirSync(join(node.root, 'proc/driver/nvidia'), { recursive: true });
    writeFileSync(join(node.root, 'proc/driver/nvidia/version'), 'NVRM version\n');
    const probe = byLibrary(node, { source: 'auto', 'smi-path': join(node.root, 'none') });
    await probe.collect();
    node.write({ lines: [`fail.nvmlInit_v2 = ${code}`], gpus: [withLines(hopper(0), 'fail.nvmlDeviceGetClockInfo = 1')] });
    await probe.collect();
    const collection = await probe.collect();
    expect(collection.problems.map((each) => each.code)).toEqual([problem]);
    const held = reportOf(collection).findings.filter(({ status }) => status === true);
    expect(held.map(({ type, reason: told }) => [type, told])).toEqual([['DriverUnusable', reason]]);
  });

  it('is the command when the library is missing, also when the command is missing too', async () => {
    const node = live({ gpus: [] });
    mkdirSync(join(node.root, 'proc/driver/nvidia'), { recursive: true });
    writeFileSync(join(node.root, 'proc/driver/nvidia/version'), 'NVRM version\n');
    const none = join(node.root, 'none');
    const probe = byLibrary(node, { source: 'auto', 'smi-path': none, 'nvml-library': `${none}.so` });
    expect((await probe.collect()).problems.map(({ code }) => code)).toEqual(['smi-not-found']);
  });

  it('is a problem when only the library may be used and it is missing', async () => {
    const node = live({ gpus: [] });
    mkdirSync(join(node.root, 'proc/driver/nvidia'), { recursive: true });
    writeFileSync(join(node.root, 'proc/driver/nvidia/version'), 'NVRM version\n');
    const probe = byLibrary(node, { 'nvml-library': join(node.root, 'none.so') });
    const [problem] = (await probe.collect()).problems;
    expect(problem?.code).toBe('library-not-found');
    expect(problem?.message).toContain('none.so');
  });
});

/** Functions of the second GPU in the order in which the guard recorded them. */
function noted(guard: StepGuard): string[] {
  const entered: string[] = [];
  const enter = guard.enter.bind(guard);
  guard.enter = (path, kind) => {
    const [, symbol] = /0000:3c:00\.0\/nvml\/(\w+)$/.exec(path) ?? [];
    if (symbol !== undefined) entered.push(`${symbol}${kind === 'call' ? '' : ' as a file'}`);
    return enter(path, kind);
  };
  return entered;
}

describe('the record of the running call', () => {
  it('shows that a lost GPU is asked one question in each round', async () => {
    const guard = new StepGuard();
    const entered = noted(guard);
    const node = live({ gpus: [hopper(0), hopper(1)] }, (root) =>
      createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock, { guard }),
    );
    const probe = byLibrary(node);
    await probe.collect();
    node.write({ gpus: [hopper(0), withLines(hopper(1), 'lost_after = 0')] });
    entered.length = 0;
    await probe.collect();
    await probe.collect();
    expect(entered).toEqual(['nvmlDeviceGetTemperatureV', 'nvmlDeviceGetTemperatureV']);
  });

  it('names GPU and function of a call that hangs, and keeps the next reader from asking that GPU', async () => {
    const shared = new WatchedGuard();
    const hostOf = (guard: StepGuard) => (root: string) =>
      createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock, { guard });
    const node = live({ gpus: [hopper(0), hopper(1)] }, hostOf(shared));
    const entered = noted(shared);
    await byLibrary(node).collect();
    expect(entered).toContain('nvmlDeviceGetMemoryInfo_v2');
    expect(shared.current).toBeUndefined();

    const successor = new StepGuard([`${node.root}/sys/bus/pci/devices/0000:3c:00.0`]);
    const other = family.createProbe(hostOf(successor)(node.root), probeOptions(family, { source: 'nvml', 'nvml-library': node.library }));
    probes.push(other);
    expect((await other.collect()).reports.map(({ device }) => device.pciAddress)).toEqual(['0000:3b:00.0']);
  });
});
