import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { hopper, MIB, type ScriptedGpu } from './scripted-script.ts';
import { startedNode } from './started.ts';

/** Returns the first collection of a node with this driver version. */
const readOf = (driver: string, gpu: ScriptedGpu, ...lines: string[]): Promise<Collection> =>
  startedNode({ lines: [`driver = ${driver}`, ...lines], gpus: [gpu] }).at(0);

const toldOf = ({ reports }: Collection, metric: string, label: string): number | bigint | undefined =>
  [...(reports[0]?.read?.readings ?? [])].find(
    (reading) => reading.metric === metric && Object.values(reading.labels ?? {}).includes(label),
  )?.value;

describe('the time with lowered clocks', () => {
  /** Seconds by id: of heat by policy, and the first ids of both numberings. */
  const fields = { '75 0': 3e9, '251 0': 1e9, '252 0': 11e9, '253 0': 21e9, '269 0': 2e9, '270 0': 12e9, '271 0': 22e9 };
  it.each([
    ['570.172.08', [3, undefined, undefined]],
    ['575.57.08', [1, 11, 21]],
    ['580.65.06', [1, 11, 21]],
    ['580.82.07', [2, 12, 22]],
    ['580.105.08', [2, 12, 22]],
    ['590.44.01', [2, 12, 22]],
  ])('has the ids of driver %s', async (driver, seconds) => {
    const collection = await readOf(driver, { ...hopper(0), fields });
    const reasons = ['sw_thermal_slowdown', 'hw_thermal_slowdown', 'hw_power_brake_slowdown'];
    expect(reasons.map((reason) => toldOf(collection, 'device_throttled_seconds_total', reason))).toEqual(seconds);
  });
});

describe('processes', () => {
  const processes = Array.from({ length: 250 }, (_, at) => `${at % 2 === 0 ? 'C' : 'G'} ${1_000 + at} ${(at + 1) * MIB}`);
  it('are the same with early builds of branch 535, which write longer entries', async () => {
    const told = await readOf('535.54.03', { ...hopper(0), processes }, 'long_processes = 1');
    const expected = await readOf('550.54.14', { ...hopper(0), processes });
    expect(told.reports[0]?.read?.processes).toHaveLength(250);
    expect(told.reports[0]?.read?.processes).toEqual(expected.reports[0]?.read?.processes);
  });
});

describe('a reason of lowered clocks that only later drivers know', () => {
  it.each([
    ['610.43.02', undefined, undefined],
    ['615.71.01', 1, 0],
  ])('is told by driver %s: %s', async (driver, limit, reliability) => {
    const collection = await readOf(driver, hopper(0, { reasons: 0x204 }));
    expect(toldOf(collection, 'device_throttled', 'board_limit')).toBe(limit);
    expect(toldOf(collection, 'device_throttled', 'reliability')).toBe(reliability);
    expect(toldOf(collection, 'device_throttled', 'sw_power_cap')).toBe(1);
  });
});

describe('the action that the driver asks for', () => {
  const asking = async (action: number): Promise<Collection> => {
    const gpu = hopper(0);
    return await readOf('615.71.01', { ...gpu, fields: { ...gpu.fields, '230 0': action } });
  };
  const found = ({ reports }: Collection): unknown => reports[0]?.read?.findings.find(({ type }) => type === 'RecoveryAction');

  it.each([
    [6, 'bus_reset', { status: true, reason: 'BusReset', severity: 'fatal', remedy: 'reset' }],
    [7, 'system_reboot', { status: true, reason: 'SystemReboot', severity: 'fatal', remedy: 'reboot' }],
  ])('may be %i, %s', async (action, state, finding) => {
    const collection = await asking(action);
    expect(toldOf(collection, 'device_nvidia_recovery_action', state)).toBe(1);
    expect(found(collection)).toMatchObject(finding);
    expect(collection.problems).toEqual([]);
  });

  it('is a problem when it is unknown, and does not count as "none"', async () => {
    const collection = await asking(8);
    expect(collection.problems).toMatchObject([{ code: 'unknown-value', message: 'gpu_recovery_action: Unknown (8)' }]);
    expect(toldOf(collection, 'device_nvidia_recovery_action', 'none')).toBeUndefined();
    expect(found(collection)).toMatchObject({ status: 'unknown', message: 'gpu_recovery_action: Unknown (8)' });
  });
});
