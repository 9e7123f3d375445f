import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { hopper, type ScriptedGpu } from './scripted-script.ts';
import { started } from './started.ts';

/** `pid time gpu memory encoder decoder jpeg ofa`. */
const using = (
  shares: readonly string[],
  processes = ['C 11 1048576', 'C 12 1048576'],
  more: readonly string[] = [],
  busy = 0,
): ScriptedGpu => ({
  ...hopper(0),
  values: { ...hopper(0).values, util_gpu: busy },
  processes,
  lines: [...shares.map((share) => `share = ${share}`), ...more],
});

const gpuShares = ({ reports }: Collection): Record<number, number | undefined> =>
  Object.fromEntries((reports[0]?.read?.processes ?? []).map(({ pid, utilization }) => [pid, utilization?.gpu]));

const mpsClients = ({ reports }: Collection): unknown =>
  [...(reports[0]?.read?.readings ?? [])].find(({ metric }) => metric === 'device_nvidia_mps_clients')?.value;

describe('the utilization by process', () => {
  it('is the mean of the samples of a process for each engine, and zero without samples', async () => {
    const { at } = started(using(['11 100 40 10 0 6 2 0', '11 200 60 30 0 0 0 0', '99 200 5 0 0 0 0 0']));
    const { reports } = await at(0);
    expect(reports[0]?.read?.processes).toEqual([
      { pid: 11, memoryUsedBytes: 1_048_576, utilization: { gpu: 0.5, memory: 0.2, encoder: 0, decoder: 0.03, jpeg: 0.01, ofa: 0 } },
      { pid: 12, memoryUsedBytes: 1_048_576, utilization: { gpu: 0, memory: 0, encoder: 0, decoder: 0, jpeg: 0, ofa: 0 } },
    ]);
  });

  it('is read at the interval of slow values, and only from new samples', async () => {
    const { node, at } = started(using(['11 100 40 0 0 0 0 0']));
    await at(0);
    node.write({ gpus: [using(['11 100 40 0 0 0 0 0', '11 200 90 0 0 0 0 0', '12 200 10 0 0 0 0 0'])] });
    expect(gpuShares(await at(10_000))).toEqual({ 11: 0.4, 12: 0 });
    expect(gpuShares(await at(30_000))).toEqual({ 11: 0.9, 12: 0.1 });
    expect(gpuShares(await at(60_000))).toEqual({ 11: 0, 12: 0 });
  });

  it('is not zero because the driver has made no new sample yet', async () => {
    const { node, at } = started(using(['11 100 40 0 0 0 0 0']), { 'nvml-slow-every': '500ms' });
    expect(gpuShares(await at(0))).toEqual({ 11: 0.4, 12: 0 });
    for (const ms of [500, 1_000, 1_500]) expect(gpuShares(await at(ms))).toEqual({ 11: 0.4, 12: 0 });
    node.write({ gpus: [using(['12 200 10 0 0 0 0 0'])] });
    expect(gpuShares(await at(2_000))).toEqual({ 11: 0, 12: 0.1 });
    expect(gpuShares(await at(3_500))).toEqual({ 11: 0, 12: 0.1 });
    expect(gpuShares(await at(4_000))).toEqual({ 11: 0, 12: 0 });
  });

  it('is not zero for all processes of a busy GPU of which the driver gives no sample', async () => {
    const idle = using(['11 100 40 0 0 0 0 0']);
    const { node, at } = started(idle);
    expect(gpuShares(await at(0))).toEqual({ 11: 0.4, 12: 0 });
    node.write({ gpus: [{ ...idle, values: { ...idle.values, util_gpu: 97 } }] });
    expect(gpuShares(await at(30_000))).toEqual({ 11: undefined, 12: undefined });
    node.write({ gpus: [idle] });
    expect(gpuShares(await at(60_000))).toEqual({ 11: 0, 12: 0 });
  });

  it('comes from the older function when the newer one finds no sample', async () => {
    const { at } = started(using(['11 100 40 10 5 6 7 8'], undefined, ['fail.nvmlDeviceGetProcessesUtilizationInfo = 6'], 97));
    expect(gpuShares(await at(0))).toEqual({ 11: 0.4, 12: 0 });
  });

  it('is unknown for a process that started later', async () => {
    const { node, at } = started(using(['11 100 40 0 0 0 0 0'], ['C 11 1048576']));
    await at(0);
    node.write({ gpus: [using(['11 100 40 0 0 0 0 0'], ['C 11 1048576', 'C 13 4096'])] });
    expect(gpuShares(await at(10_000))).toEqual({ 11: 0.4, 13: undefined });
    expect(gpuShares(await at(30_000))).toEqual({ 11: 0, 13: 0 });
  });

  it('comes from the older function, with four engines, when the driver has no newer one', async () => {
    const { at } = started(using(['11 100 40 10 5 6 7 8'], undefined, ['fail.nvmlDeviceGetProcessesUtilizationInfo = 13']));
    const { reports } = await at(0);
    expect(reports[0]?.read?.processes?.map(({ utilization }) => utilization)).toEqual([
      { gpu: 0.4, memory: 0.1, encoder: 0.05, decoder: 0.06 },
      { gpu: 0, memory: 0, encoder: 0, decoder: 0 },
    ]);
  });

  it('ignores samples with impossible values', async () => {
    const { at } = started(using(['11 100 4294967295 0 0 0 0 0', '11 200 30 0 0 0 0 0', '12 200 101 0 0 0 0 0']));
    expect(gpuShares(await at(0))).toEqual({ 11: 0.3, 12: 0 });
  });

  it.each([3, 13, 25])('comes from the older function too when the newer one answers %i', async (code) => {
    const { at } = started(using(['11 100 40 10 5 6 7 8'], undefined, [`fail.nvmlDeviceGetProcessesUtilizationInfo = ${code}`]));
    expect(gpuShares(await at(0))).toEqual({ 11: 0.4, 12: 0 });
  });

  it('is absent when the driver supports neither function, as with MIG', async () => {
    const fails = ['nvmlDeviceGetProcessesUtilizationInfo', 'nvmlDeviceGetProcessUtilization'].map((name) => `fail.${name} = 3`);
    expect(gpuShares(await started(using(['11 100 40 0 0 0 0 0'], undefined, fails)).at(0))).toEqual({ 11: undefined, 12: undefined });
  });

  it('is absent for the clients of an MPS server, whose time the driver counts as the time of the server', async () => {
    const { at } = started(using(['10 100 60 5 0 0 0 0'], ['C 10 31457280', 'M 11 1048576', 'M 12 1048576', 'C 13 1048576']));
    const collection = await at(0);
    expect(gpuShares(collection)).toEqual({ 10: 0.6, 11: undefined, 12: undefined, 13: undefined });
    expect(mpsClients(collection)).toBe(2);
  });

  it('is known for a client of which the driver gives samples', async () => {
    const { at } = started(using(['11 100 60 5 0 0 0 0'], ['C 10 31457280', 'M 11 1048576']));
    expect(gpuShares(await at(0))).toEqual({ 10: undefined, 11: 0.6 });
  });

  it('is absent without a sample when nothing says whether the GPU has clients of MPS', async () => {
    const { at } = started(using(['11 100 60 5 0 0 0 0'], undefined, ['fail.nvmlDeviceGetMPSComputeRunningProcesses_v3 = 999']));
    const collection = await at(0);
    expect(gpuShares(collection)).toEqual({ 11: 0.6, 12: undefined });
    expect(mpsClients(collection)).toBeUndefined();
  });

  it.each([4, 999])('is absent when the driver answers %i, and the processes stay', async (code) => {
    const { at } = started(using(['11 100 40 0 0 0 0 0'], undefined, [`fail.nvmlDeviceGetProcessesUtilizationInfo = ${code}`]));
    const { reports, problems } = await at(0);
    expect(reports[0]?.read?.processes).toEqual([
      { pid: 11, memoryUsedBytes: 1_048_576 },
      { pid: 12, memoryUsedBytes: 1_048_576 },
    ]);
    expect(problems).toEqual([]);
  });
});
