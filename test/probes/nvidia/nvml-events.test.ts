import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { toldOf } from '../../support/told.ts';
import { hopper } from './scripted-script.ts';
import { startedNode } from './started.ts';

const xids = ({ reports }: Collection): unknown[] =>
  reports
    .map(toldOf)
    .flatMap(({ device, findings }) =>
      findings.filter(({ type, status }) => type === 'Xid' && status === true).map(({ instance }) => [device.pciAddress, instance]),
    );

const withXid = (number: number, xid: number) => ({ gpus: [hopper(0), { ...hopper(1), lines: [`xid = ${number} ${xid}`] }] });
/** Options with which only the library provides Xids. */
const NO_LOG = { kmsg: join('/', 'none') };

describe('the events of the library', () => {
  it.each([999, 15])('are available again half a minute after a failure with %i', async (code) => {
    const { node, at } = startedNode({ gpus: [hopper(0), hopper(1)] }, NO_LOG);
    await at(0);
    node.write({ lines: [`fail.nvmlEventSetWait_v2 = ${code}`], gpus: [hopper(0), hopper(1)] });
    await at(10_000);
    node.write({ gpus: [hopper(0), hopper(1)] });
    expect(xids(await at(30_000))).toEqual([]);
    node.write(withXid(1, 79));
    expect(xids(await at(40_000))).toEqual([['0000:3c:00.0', '79']]);
  });

  it('are registered again as long as the registration fails', async () => {
    const { node, at } = startedNode({ gpus: [hopper(0), hopper(1)] }, NO_LOG);
    await at(0);
    const failing = { lines: ['fail.nvmlEventSetWait_v2 = 999'], gpus: [hopper(0), hopper(1)] };
    node.write(failing);
    await at(10_000);
    node.write({ gpus: [0, 1].map((index) => ({ ...hopper(index), lines: ['fail.nvmlDeviceRegisterEvents = 999'] })) });
    await at(30_000);
    node.write({ gpus: [hopper(0), hopper(1)] });
    await at(60_000);
    node.write(withXid(1, 79));
    expect(xids(await at(70_000))).toEqual([['0000:3c:00.0', '79']]);
  });

  it('come from all GPUs, also when one GPU could not be registered at first', async () => {
    const mute = { ...hopper(1), lines: ['fail.nvmlDeviceRegisterEvents = 999'] };
    const { node, at } = startedNode({ gpus: [hopper(0), mute] }, NO_LOG);
    await at(0);
    node.write({ gpus: [hopper(0), hopper(1)] });
    await at(30_000);
    node.write(withXid(1, 79));
    expect(xids(await at(40_000))).toEqual([['0000:3c:00.0', '79']]);
  });

  it('stay when the driver has no recovery action, which ends nothing', async () => {
    const { fields, ...gpu } = hopper(0);
    const { '230 0': _, ...wordless } = fields ?? {};
    const { node, at } = startedNode({ gpus: [{ ...gpu, fields: wordless }] }, NO_LOG);
    await at(0);
    node.write({ gpus: [{ ...gpu, fields: wordless, lines: ['xid = 1 79'] }] });
    expect(xids(await at(10_000))).toEqual([['0000:3b:00.0', '79']]);
    node.write({ gpus: [{ ...gpu, fields: wordless }] });
    for (const ms of [20_000, 40_000, 70_000, 600_000]) expect(xids(await at(ms)), `${ms} ms`).toEqual([['0000:3b:00.0', '79']]);
  });

  it('are absent with a library that does not support events', async () => {
    const { node, at } = startedNode({ gpus: [0, 1].map((index) => hopper(index, { event_types: 0 })) }, NO_LOG);
    await at(0);
    await at(30_000);
    node.write(withXid(1, 79));
    expect(xids(await at(40_000))).toEqual([]);
  });

  it.each([
    [0, []],
    [3, [['RecoveryAction', 'DrainP2p']]],
  ])('of another recovery action counts, and the GPU itself says which: %i', async (action, expected) => {
    const { fields, ...gpu } = hopper(0);
    const changed = { ...gpu, fields: { ...fields, '230 0': action } };
    const { node, at } = startedNode({ gpus: [gpu] }, NO_LOG);
    await at(0);
    node.write({ gpus: [{ ...changed, lines: ['xid = 1 154'] }] });
    const { reports } = await at(10_000);
    const [report] = reports.map(toldOf);
    expect(report?.findings.filter(({ status }) => status === true).map(({ type, reason }) => [type, reason])).toEqual(expected);
    expect(reports[0]?.faults?.map(({ code, count, witness }) => [code, count, witness])).toEqual([['154', 1, 'events']]);
  });
});
