import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { toldOf } from '../../support/told.ts';
import { hopper, MIB, type ScriptedGpu } from './scripted-script.ts';
import { started } from './started.ts';

const sampled = (activity: number, more: readonly string[] = []): ScriptedGpu => ({
  ...hopper(0, { gpm: 1, 'gpm.1': activity, 'gpm.2': activity / 2, 'gpm.20': 3 }),
  lines: more,
});

const instance = (gi: number, letter: string, activity: number): Record<string, string | number> => ({
  uuid: `MIG-11111111-2222-4333-8444-00000000000${letter}`,
  name: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
  gi,
  ci: 0,
  memory_total: 9_984 * MIB,
  memory_used: 0,
  memory_reserved: 0,
  'gpm.2': activity,
});

const split = (instances: Readonly<Record<number, Record<string, string | number>>>): ScriptedGpu => ({
  ...hopper(0, { mig_current: 1, mig_pending: 1, gpm: 1, 'gpm.2': 10 }),
  instances,
});

/** Activity of the multiprocessors, by the end of the device's id. */
const activity = ({ reports }: Collection): Record<string, number> =>
  Object.fromEntries(
    reports
      .map(toldOf)
      .flatMap(({ device, readings }) =>
        readings
          .filter(({ metric, labels }) => metric === 'device_nvidia_activity_ratio' && labels?.unit === 'sm')
          .map(({ value }) => [device.id.slice(-2), Number(value)]),
      ),
  );

const timeOfActivity = ({ reports }: Collection): number | undefined =>
  reports.map(toldOf)[0]?.readings.find(({ metric }) => metric === 'device_nvidia_activity_ratio')?.readMs;

describe('the activity of a GPU', () => {
  it('is available from the third read on, and then at each read', async () => {
    const { node, at } = started(sampled(40));
    expect(activity(await at(0))).toEqual({});
    expect(activity(await at(10_000))).toEqual({});
    expect(activity(await at(20_000))).toEqual({ '01': 0.2 });
    node.write({ gpus: [sampled(80)] });
    expect(activity(await at(21_000))).toEqual({ '01': 0.4 });
  });

  it('is never that of the interval in which the counting began', async () => {
    const { node, at } = started(sampled(0));
    await at(0);
    await at(1_000);
    node.write({ gpus: [sampled(94)] });
    expect(activity(await at(11_000))).toEqual({ '01': 0.47 });
  });

  it('is not calculated from samples that are too close', async () => {
    const { node, at } = started(sampled(40));
    for (const ms of [0, 1_000, 2_000]) await at(ms);
    node.write({ gpus: [sampled(80)] });
    const kept = await at(2_099);
    expect(activity(kept)).toEqual({ '01': 0.2 });
    expect(timeOfActivity(kept)).toBe(2_000);
    const taken = await at(2_100);
    expect(activity(taken)).toEqual({ '01': 0.4 });
    expect(timeOfActivity(taken)).toBeUndefined();
  });

  it('of a whole GPU, which is not supported with MIG, is available after MIG is turned off', async () => {
    const { node, at } = started({ ...split({}), lines: ['fail.nvmlGpmSampleGet = 3'] });
    expect(activity(await at(0))).toEqual({});
    node.write({ gpus: [sampled(40)] });
    await at(30_000);
    await at(40_000);
    expect(activity(await at(50_000))).toEqual({ '01': 0.2 });
  });

  it('is absent on boards that do not support it, and when the option is off', async () => {
    for (const { at } of [started(hopper(0, { 'gpm.2': 50 })), started(sampled(40), { 'nvml-activity': 'off' })]) {
      await at(0);
      await at(10_000);
      expect(activity(await at(30_000))).toEqual({});
    }
  });

  it('disappears when it cannot be sampled, and returns with three new samples', async () => {
    const { node, at } = started(sampled(40));
    for (const ms of [0, 10_000, 20_000]) await at(ms);
    node.write({ gpus: [sampled(40, ['fail.nvmlGpmSampleGet = 999'])] });
    const failed = await at(30_000);
    expect(activity(failed)).toEqual({});
    expect(failed.problems).toEqual([]);
    expect([...(failed.reports[0]?.read?.readings ?? [])].find(({ metric }) => metric === 'device_temperature_celsius')?.value).toBe(41);
    node.write({ gpus: [sampled(60)] });
    expect(activity(await at(60_000))).toEqual({});
    expect(activity(await at(70_000))).toEqual({});
    expect(activity(await at(80_000))).toEqual({ '01': 0.3 });
  });

  it('is not requested again after a permission error', async () => {
    const { node, at } = started(sampled(40, ['fail.nvmlGpmSampleGet = 4']));
    await at(0);
    node.write({ gpus: [sampled(40)] });
    await at(30_000);
    expect(activity(await at(60_000))).toEqual({});
  });

  it('omits a value that is refused or invalid', async () => {
    const { at } = started(sampled(40, ['gpm.2.code = 3', 'gpm.5 = nan', 'gpm.7 = -1']));
    for (const ms of [0, 10_000]) await at(ms);
    const { reports } = await at(20_000);
    const units = [...(reports[0]?.read?.readings ?? [])].filter(({ metric }) => metric === 'device_nvidia_activity_ratio');
    expect(units?.map(({ labels }) => labels?.unit)).toEqual(['graphics']);
    expect([...(reports[0]?.read?.readings ?? [])].find(({ metric }) => metric === 'device_nvidia_traffic_bytes_per_second')?.value).toBe(
      3 * MIB,
    );
  });

  it('has no traffic over NVLinks for a GPU that has none, although the driver answers 0', async () => {
    const links = async (lines: readonly string[]): Promise<readonly unknown[]> => {
      const { at } = started(sampled(40, ['gpm.60 = 0', 'gpm.61 = 0', ...lines]));
      for (const ms of [0, 10_000]) await at(ms);
      const { reports } = await at(20_000);
      return [...(reports[0]?.read?.readings ?? [])]
        .filter(({ metric, labels }) => metric === 'device_nvidia_traffic_bytes_per_second' && labels?.link === 'nvlink')
        .map(({ value }) => value);
    };
    expect(await links([])).toEqual([]);
    expect(await links(['link.0 = 1'])).toEqual([0, 0]);
    expect(await links(['fail.nvmlDeviceGetNvLinkState = 999'])).toEqual([0, 0]);
  });

  it('ends when the GPU is lost, and starts again when it returns', async () => {
    const { node, at } = started(sampled(40));
    for (const ms of [0, 5_000, 10_000]) await at(ms);
    node.write({ gpus: [sampled(40, ['lost_after = 0'])] });
    expect(activity(await at(20_000))).toEqual({});
    node.write({ gpus: [sampled(90)] });
    expect(activity(await at(30_000))).toEqual({});
    expect(activity(await at(40_000))).toEqual({});
    expect(activity(await at(50_000))).toEqual({ '01': 0.45 });
  });
});

describe('the activity of GPU instances', () => {
  it('is available for each; a new instance with the same id does not use samples of the old one', async () => {
    const [first, second] = [instance(7, 'a', 20), instance(9, 'b', 40)];
    const { node, at } = started(split({ 0: first, 1: second }));
    for (const ms of [0, 5_000]) await at(ms);
    expect(activity(await at(10_000))).toEqual({ '01': 0.1, '0a': 0.2, '0b': 0.4 });
    node.write({ gpus: [split({ 0: first, 1: instance(9, 'c', 60) })] });
    expect(activity(await at(40_000))).toEqual({ '01': 0.1, '0a': 0.2 });
    expect(activity(await at(50_000))).toEqual({ '01': 0.1, '0a': 0.2 });
    expect(activity(await at(60_000))).toEqual({ '01': 0.1, '0a': 0.2, '0c': 0.6 });
    node.write({ gpus: [split({ 0: first })] });
    expect(activity(await at(80_000))).toEqual({ '01': 0.1, '0a': 0.2 });
  });
});
