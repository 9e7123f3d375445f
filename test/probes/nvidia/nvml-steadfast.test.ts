import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import { toldOf } from '../../support/told.ts';
import type { LiveNode } from './scripted-machine.ts';
import { hopper, MIB, type ScriptedGpu } from './scripted-script.ts';
import { startedNode } from './started.ts';

const withLines = (gpu: ScriptedGpu, ...lines: string[]): ScriptedGpu => ({ ...gpu, lines });
const idsOf = ({ reports }: Collection): string[] => reports.map(({ device }) => device.id.slice(-2));
const codesOf = ({ problems }: Collection): string[] => problems.map(({ code }) => code);
const holding = (report: DeviceReport): string[] =>
  toldOf(report)
    .findings.filter(({ status }) => status === true)
    .map(({ type }) => type);
const isWhole = ({ listing }: Collection): boolean => listing === 'complete';

/** The first GPU, and a GPU with three instances. */
const split = (more: Readonly<Record<string, string | number>> = {}): ScriptedGpu => ({
  ...hopper(1, { mig_current: 1, mig_pending: 1, ...more }),
  instances: Object.fromEntries(
    [7, 9, 11].map((gi, at) => [
      at * 2,
      {
        uuid: `MIG-11111111-2222-4333-8444-0000000000${String(gi).padStart(2, '0')}`,
        name: 'NVIDIA H100 MIG 1g.10gb',
        gi,
        ci: 0,
        memory_total: 9_984 * MIB,
      },
    ]),
  ),
});

/** Files of the kernel driver for a GPU. */
function bind({ root }: LiveNode, index: number): void {
  const { bus_id: busId, uuid } = hopper(index).values;
  const folder = join(root, 'proc/driver/nvidia/gpus', String(busId).slice(4).toLowerCase());
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'information'), `Model: \t\t NVIDIA H100\nGPU UUID: \t ${uuid}\nDevice Minor: \t ${index}\n`);
}

describe('a library that fails to count the GPUs', () => {
  it.each([
    [999, 'driver-unreachable'],
    [9, 'driver-not-loaded'],
    [4, 'no-permission'],
  ])('by the code %i is asked again at the next read', async (code, problem) => {
    const machine = { gpus: [hopper(0)] };
    const { node, at } = startedNode(machine);
    bind(node, 0);
    expect(idsOf(await at(0))).toEqual(['01']);
    node.write({ lines: [`fail.nvmlDeviceGetCount_v2 = ${code}`], gpus: [withLines(hopper(0), 'fail.nvmlDeviceGetTemperatureV = 1')] });
    await at(1_000);
    const failing = await at(2_000);
    expect([codesOf(failing), isWhole(failing)]).toEqual([[problem], false]);
    node.write(machine);
    expect(idsOf(await at(3_000))).toEqual(['01']);
  });

  it('or to report the driver version is asked again', async () => {
    const { node, at } = startedNode({ lines: ['fail.nvmlSystemGetDriverVersion = 999'], gpus: [hopper(0)] });
    bind(node, 0);
    expect(codesOf(await at(0))).toEqual(['driver-unreachable']);
    node.write({ gpus: [hopper(0)] });
    expect((await at(1_000)).reports[0]?.device.driverVersion).toBe('590.44.01');
  });

  it('gives one problem when all handles fail for a reason of the node', async () => {
    const { node, at } = startedNode({ gpus: [0, 1].map((index) => withLines(hopper(index), 'fail.nvmlDeviceGetHandleByIndex_v2 = 17')) });
    bind(node, 0);
    expect(codesOf(await at(0))).toEqual(['no-permission']);
    node.write({ gpus: [hopper(0), hopper(1)] });
    expect(idsOf(await at(1_000))).toEqual(['01', '02']);
  });
});

describe('a GPU that cannot be read at the start', () => {
  it.each(['nvmlDeviceGetHandleByIndex_v2', 'nvmlDeviceGetUUID'])('by %s appears five minutes after the failure ends', async (symbol) => {
    const { node, at } = startedNode({ gpus: [hopper(0), withLines(hopper(1), `fail.${symbol} = 999`)] });
    const first = await at(0);
    expect([idsOf(first), codesOf(first)]).toEqual([['01'], ['gpu-unreadable']]);
    node.write({ gpus: [hopper(0), hopper(1)] });
    expect(idsOf(await at(299_000))).toEqual(['01']);
    expect(idsOf(await at(300_000))).toEqual(['01', '02']);
  });

  it('causes restarts at growing intervals, because each restart disturbs the other GPUs', async () => {
    const dead = withLines(hopper(1), 'fail.nvmlDeviceGetHandleByIndex_v2 = 15');
    const { node, at } = startedNode({ gpus: [hopper(0), dead] });
    const minutes = (count: number): Promise<Collection> => at(count * 60_000);
    for (const passed of [0, 5, 15]) expect(idsOf(await minutes(passed))).toEqual(['01']);
    node.write({ gpus: [hopper(0), hopper(1)] });
    expect(idsOf(await minutes(34))).toEqual(['01']);
    expect(idsOf(await minutes(35))).toEqual(['01', '02']);
    // A GPU that was healthy for some time causes a restart without the longer wait.
    await minutes(41);
    node.write({ gpus: [hopper(0), withLines(hopper(1), 'lost_after = 0')] });
    await minutes(42);
    node.write({ gpus: [hopper(0), dead] });
    expect(codesOf(await minutes(43))).toEqual(['gpu-unreadable']);
  });

  it.each([
    [15, 'gpu-unreadable'],
    [8, 'insufficient-power'],
  ])('with the code %i is lost under its name, as the kernel has it', async (code, problem) => {
    const { node, at } = startedNode({ gpus: [hopper(0), withLines(hopper(1), `fail.nvmlDeviceGetHandleByIndex_v2 = ${code}`)] });
    bind(node, 0);
    bind(node, 1);
    const told = await at(0);
    expect([idsOf(told), codesOf(told), isWhole(told)]).toEqual([['01', '02'], [problem], true]);
    expect(told.reports.map(holding)).toEqual([[], ['GpuLost']]);
  });

  it('because of missing permission is neither lost nor missing', async () => {
    const { node, at } = startedNode({ gpus: [hopper(0), hopper(1)] });
    await at(0);
    const closed = withLines(hopper(1), 'fail.nvmlDeviceGetHandleByIndex_v2 = 4');
    node.write({ gpus: [withLines(hopper(0), 'fail.nvmlDeviceGetTemperatureV = 1'), closed] });
    await at(1_000);
    node.write({ gpus: [hopper(0), closed] });
    const told = await at(2_000);
    expect([codesOf(told), isWhole(told)]).toEqual([['no-permission'], false]);
    expect(told.reports.flatMap(holding)).toEqual([]);
  });
});

describe('instances that the driver fails to list', () => {
  const lookups = ['MigMode', 'MaxMigDeviceCount', 'MigDeviceHandleByIndex', 'GpuInstanceId', 'ComputeInstanceId'];
  const cases = lookups.flatMap((name) => [999, 11, 27].map((code) => [`nvmlDeviceGet${name}`, code] as const));

  it.each(cases)('in %s with code %i stay unchanged', async (symbol, code) => {
    const { node, at } = startedNode({ gpus: [hopper(0), split()] });
    const before = await at(0);
    expect(idsOf(before)).toEqual(['01', '02', '07', '09', '11']);
    node.write({ gpus: [hopper(0), withLines(split({ memory_used: 1 }), `fail.${symbol} = ${code}`)] });
    for (const ms of [1_000, 30_000, 31_000, 60_000]) {
      const told = await at(ms);
      expect(idsOf(told)).toEqual(idsOf(before));
      expect(told.reports.flatMap(holding)).toEqual([]);
      expect(codesOf(told).length).toBeLessThanOrEqual(1);
    }
    node.write({ gpus: [hopper(0), split()] });
    expect(idsOf(await at(90_000))).toEqual(idsOf(before));
    expect(await at(91_000)).toMatchObject({ problems: [] });
  });

  it('at the start are not missing', async () => {
    const { node, at } = startedNode({ gpus: [withLines(split(), 'fail.nvmlDeviceGetMaxMigDeviceCount = 999')] });
    const told = await at(0);
    expect([idsOf(told), isWhole(told)]).toEqual([['02'], false]);
    expect(told.problems).toMatchObject([{ code: 'value-unreadable', message: 'mig_devices: Unknown Error' }]);
    node.write({ gpus: [split()] });
    const after = await at(30_000);
    expect([idsOf(after).length, isWhole(after), after.problems]).toEqual([4, true, []]);
  });
});

describe('a GPU with MIG that is lost', () => {
  it('at any call is lost together with its instances, and no instance is missing', async () => {
    for (let calls = 0; calls < 460; calls += 9) {
      const { at } = startedNode({ gpus: [hopper(0), withLines(split(), `lost_after = ${calls}`)] });
      let seen: readonly string[] = [];
      for (const ms of [0, 1_000, 30_000, 31_000, 60_000, 61_000, 400_000, 401_000]) {
        const told = await at(ms);
        const isLost = told.reports.some((report) => report.device.kind === 'gpu' && holding(report).includes('GpuLost'));
        if (isWhole(told)) expect(idsOf(told)).toEqual(expect.arrayContaining([...seen]));
        seen = isWhole(told) ? idsOf(told) : seen;
        const instances = told.reports.filter(({ device }) => device.kind === 'mig');
        if (isLost) for (const report of instances) expect(holding(report)).toContain('GpuLost');
      }
    }
  });
});

describe('a fault in a call with a long interval', () => {
  it.each([
    [14, 'InforomCorrupted'],
    [16, 'RecoveryAction'],
  ])('by the code %i holds until that is asked for again: %s', async (code, type) => {
    const { node, at } = startedNode({ gpus: [withLines(hopper(0), `fail.nvmlDeviceGetPerformanceState = ${code}`)] });
    for (const ms of [0, 1_000, 29_000, 30_000, 31_000]) expect((await at(ms)).reports.flatMap(holding)).toEqual([type]);
    node.write({ gpus: [hopper(0)] });
    expect((await at(59_000)).reports.flatMap(holding)).toEqual([type]);
    expect((await at(60_000)).reports.flatMap(holding)).toEqual([]);
  });
});
