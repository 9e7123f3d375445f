import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost } from '../../../src/host/host.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import { hopper, MIB, type ScriptedGpu, type ScriptedNode } from './scripted-script.ts';
import { byCommand, byLibrary, comparable, live, withoutPast } from './told-both-ways.ts';

const ampere = (): ScriptedGpu => {
  const { values, ...rest } = hopper(0, {
    architecture: 7,
    name: 'NVIDIA A100-SXM4-80GB',
    threshold_shutdown: 92,
    threshold_slowdown: 89,
    threshold_memory: 95,
    threshold_gpu: 85,
    temperature: 90,
    reasons: 0x48,
    fan: 33,
    pstate: 2,
  });
  const { margin, fabric_state, fabric_summary, fabric_status, fabric_mask, util_jpeg, util_ofa, unrepairable, ...known } = values;
  void [margin, fabric_state, fabric_summary, fabric_status, fabric_mask, util_jpeg, util_ofa, unrepairable];
  const { '193 0': a, '194 0': b, '196 0': c, '185 0': d, '230 0': e, ...fields } = rest.fields ?? {};
  void [a, b, c, d, e];
  return { ...rest, values: known, fields };
};

const volta = (): ScriptedGpu => ({
  values: {
    uuid: 'GPU-99999999-0000-4000-8000-000000000001',
    name: 'Tesla V100-SXM2-16GB',
    bus_id: '00000000:0A:00.0',
    pci_device: '0x1db110de',
    minor: 0,
    brand: 2,
    architecture: 5,
    memory_total: 16_160 * MIB,
    memory_used: 0,
    memory_reserved: 0,
    temperature: 35,
    compute_mode: 0,
    power: 42_120,
    reasons: 0x1,
    ecc_current: 1,
    ecc_pending: 0,
    inforom: 0,
    'ecc.0.0.2': 3,
    'ecc.1.0.2': 1,
    'ecc.0.0.3': 4,
    'ecc.1.0.3': 0,
    'ecc.0.1.2': 30,
    'ecc.1.1.2': 1,
    'ecc.0.1.3': 40,
    'ecc.1.1.3': 0,
  },
  fields: { '29 0': 2, '30 0': 1, '31 0': 1, '82 0': 33 },
  processes: [],
});

const split = (): ScriptedGpu => {
  const { values, ...rest } = hopper(1, { mig_current: 1, mig_pending: 1 });
  const hidden = Object.fromEntries(Object.entries(values).filter(([name]) => !/^(?:util_|remap_)/.test(name)));
  const instance = (gi: number, letter: string, memory: number): Record<string, string | number> => ({
    uuid: `MIG-11111111-2222-4333-8444-00000000000${letter}`,
    name: `NVIDIA H100 80GB HBM3 MIG ${gi}g.10gb`,
    gi,
    ci: 0,
    multiprocessors: 16,
    memory_total: 9_984 * MIB,
    memory_used: memory * MIB,
    memory_reserved: 0,
    bar1_total: 16_383 * MIB,
    bar1_used: 0,
    'ecc.1.0.7': 0,
  });
  return {
    ...rest,
    values: hidden,
    processes: ['C 4711 104857600 7 0', 'C 815 1048576 9 0', 'G 815 1048576 9 0'],
    instances: { 0: instance(7, 'a', 100), 2: instance(9, 'b', 1), 3: instance(11, 'c', 0) },
  };
};

const sick = (): ScriptedGpu => {
  const { fields, ...rest } = hopper(0, {
    remap_pending: 1,
    remap_failure: 1,
    banks_none: 2,
    repair_channel: 1,
    sram_exceeded: 1,
    'ecc.1.0.7': 4,
    reasons: 0x88,
    margin: -3,
    fabric_state: 2,
    fabric_summary: 2,
    pcie_width: 8,
    persistence: 0,
  });
  return { ...rest, fields: { ...fields, '230 0': 2, '186 1': 512_250, '186 2': 44_100 } };
};

/** Links of the board at an index: to others by their index, and to a switch. */
const linked = (index: number, to: readonly (number | 'switch')[]): ScriptedGpu =>
  hopper(
    index,
    Object.assign(
      {},
      ...to.map((end, link) => ({
        [`link.${link}`]: 1,
        ...(end === 'switch'
          ? { [`link.${link}.type`]: 2 }
          : { [`link.${link}.type`]: 0, [`link.${link}.remote`]: hopper(end).values.bus_id }),
      })),
    ),
  );

const MACHINES: Readonly<Record<string, ScriptedNode>> = {
  'one H100': { gpus: [hopper(0)] },
  'eight H100': { gpus: Array.from({ length: 8 }, (_, index) => hopper(index)) },
  'a hot A100 with limits in degrees': { gpus: [ampere()] },
  'a V100, which counts bits and retires pages': { gpus: [volta()] },
  'an H100 and one with MIG, with gaps between the instances': { gpus: [hopper(0), split()] },
  'three H100 of which two are joined by links': { gpus: [linked(0, [1, 1, 1]), linked(1, [0, 0, 0]), hopper(2)] },
  'four H100 on switches, one with fewer links': {
    gpus: [0, 1, 2, 3].map((index) => linked(index, index === 3 ? ['switch', 'switch'] : ['switch', 'switch', 'switch'])),
  },
  'an H100 with all that can be wrong': { gpus: [sick()] },
};

describe.each(Object.entries(MACHINES))('%s', (_, machine) => {
  it('gives the same with the library and with the command', async () => {
    const node = live(machine);
    const library = byLibrary(node);
    const told = await library.collect();
    expect(told.reports.length).toBeGreaterThan(0);
    expect(comparable(told)).toEqual(comparable(await byCommand(node, machine).collect()));
    await library.close?.();
  });

  it('is the same in the third round as in the first', async () => {
    const node = live(machine);
    const probe = byLibrary(node);
    const first = everything(await probe.collect());
    await probe.collect();
    expect(everything(await probe.collect())).toEqual(first);
    await probe.close?.();
  });
});

/** Single changes of different kinds. Values of earlier rounds must not appear after a change. */
const CHANGES: readonly (readonly [string, (gpu: ScriptedGpu) => ScriptedGpu])[] = [
  ['a temperature at its limit', (gpu) => ({ ...gpu, values: { ...gpu.values, temperature: 95, margin: -5 } })],
  ['memory in use', (gpu) => ({ ...gpu, values: { ...gpu.values, memory_used: 7 * MIB } })],
  ['a value that is no longer supported', (gpu) => ({ ...gpu, lines: ['fail.nvmlDeviceGetMemoryInfo_v2 = 3'] })],
  ['a value that fails', (gpu) => ({ ...gpu, lines: ['fail.nvmlDeviceGetUtilizationRates = 999'] })],
  ['a row that waits', (gpu) => ({ ...gpu, values: { ...gpu.values, remap_pending: 1 } })],
  ['memory errors', (gpu) => ({ ...gpu, values: { ...gpu.values, 'ecc.1.0.2': 1 } })],
  ['another throttle reason', (gpu) => ({ ...gpu, values: { ...gpu.values, reasons: 0x40 } })],
  ['a program that draws', (gpu) => ({ ...gpu, processes: ['G 815 4096'] })],
  ['another process', (gpu) => ({ ...gpu, processes: ['C 4712 1048576', 'C 815 none'] })],
  ['a bank without spare rows', (gpu) => ({ ...gpu, values: { ...gpu.values, banks_none: 1 } })],
  ['errors in another memory, as many as before', (gpu) => ({ ...gpu, values: { ...gpu.values, 'ecc.0.0.2': 1, 'ecc.0.0.7': 1 } })],
  ['a bank that gave its last spare row', (gpu) => ({ ...gpu, values: { ...gpu.values, remap_unc: 2, banks_none: 1 } })],
  [
    'a repair that waits for a reset',
    (gpu) => ({ ...gpu, values: { ...gpu.values, repair_tpc: 1 }, fields: { ...gpu.fields, '230 0': 1 } }),
  ],
  ['an action that the driver asks for', (gpu) => ({ ...gpu, fields: { ...gpu.fields, '230 0': 1 } })],
];

/** Changes of slow values. */
const SLOW_CHANGES: typeof CHANGES = [
  ['another performance state', (gpu) => ({ ...gpu, values: { ...gpu.values, pstate: 8 } })],
  ['a fabric that fails', (gpu) => ({ ...gpu, values: { ...gpu.values, fabric_state: 3, fabric_status: 999, fabric_summary: 2 } })],
  ['a narrower link', (gpu) => ({ ...gpu, values: { ...gpu.values, pcie_width: 4 } })],
  ['a busy encoder', (gpu) => ({ ...gpu, values: { ...gpu.values, util_encoder: 80 } })],
  ['retired pages', (gpu) => ({ ...gpu, fields: { ...gpu.fields, '29 0': 1, '30 0': 2, '31 0': 1 } })],
  ['a link of eight lanes that are told no more', (gpu) => ({ ...gpu, lines: ['fail.nvmlDeviceGetCurrPcieLinkWidth = 3'] })],
];

/** A GPU that was split or joined is read anew. */
const SPLIT_CHANGES: typeof CHANGES = [
  ['a split', () => split()],
  ['no split', () => hopper(1)],
];

/** Changes of facts. */
const FACT_CHANGES: typeof CHANGES = [
  ['another power limit', (gpu) => ({ ...gpu, values: { ...gpu.values, limit_enforced: 400_000 } })],
  ['limits in degrees only', (gpu) => ({ ...gpu, fields: {}, values: { ...gpu.values, threshold_slowdown: 40, threshold_shutdown: 99 } })],
  ['ECC that is off from the next reset on', (gpu) => ({ ...gpu, values: { ...gpu.values, ecc_pending: 0 } })],
  ['errors of its life', (gpu) => ({ ...gpu, values: { ...gpu.values, 'ecc.1.1.7': 9 } })],
];

const everything = (collection: Collection): object => comparable(withoutPast(collection), () => true);

/** Returns the collection `waitMs` after a change, and the first collection of a new probe. */
async function changedAndFresh(start: ScriptedGpu, changed: ScriptedGpu, waitMs: number): Promise<readonly object[]> {
  let nowMs = 0;
  const clock: Clock = { ...systemClock, monotonic: () => nowMs };
  const node = live({ gpus: [hopper(0), start] }, (root) =>
    createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock),
  );
  const probe = byLibrary(node);
  await probe.collect();
  await probe.collect();
  node.write({ gpus: [hopper(0), changed] });
  nowMs = waitMs;
  const told = await probe.collect();
  const fresh = byLibrary(live({ gpus: [hopper(0), changed] }));
  const expected = await fresh.collect();
  await probe.close?.();
  await fresh.close?.();
  return [everything(told), everything(expected)];
}

describe('at once', () => {
  it.each([...CHANGES, ...SPLIT_CHANGES])('shows %s as a probe that never read before', async (name, change) => {
    const start = name === 'no split' ? split() : hopper(1);
    const [told, expected] = await changedAndFresh(start, change(start), 1);
    expect(told).toEqual(expected);
  });
});

describe('half a minute later', () => {
  it.each([...CHANGES, ...SLOW_CHANGES])('shows %s as a probe that never read before', async (_, change) => {
    const [told, expected] = await changedAndFresh(hopper(1), change(hopper(1)), 30_000);
    expect(told).toEqual(expected);
  });
});

describe('five minutes later', () => {
  it.each([...CHANGES, ...SLOW_CHANGES, ...FACT_CHANGES])('shows %s as a probe that never read before', async (_, change) => {
    const [told, expected] = await changedAndFresh(hopper(1), change(hopper(1)), 300_000);
    expect(told).toEqual(expected);
  });

  it.each(FACT_CHANGES)('shows %s not before its time', async (_, change) => {
    const [told, expected] = await changedAndFresh(hopper(1), change(hopper(1)), 299_000);
    expect(told).not.toEqual(expected);
  });

  it.each(SLOW_CHANGES)('shows %s not before its time', async (_, change) => {
    const [told, expected] = await changedAndFresh(hopper(1), change(hopper(1)), 29_000);
    expect(told).not.toEqual(expected);
  });
});

/** A rate of errors needs an earlier read. */
const withoutRate = (told: object | undefined): unknown => {
  const lines = (_: string, value: unknown): unknown =>
    Array.isArray(value) ? value.filter((one) => !(typeof one === 'string' && one.includes('"NvLinkErrorRate"'))) : value;
  return JSON.parse(JSON.stringify(told, lines));
};

describe('links', () => {
  const joined = (more: Readonly<Record<string, number>> = {}): ScriptedGpu =>
    hopper(1, { 'link.0': 1, 'link.1': 1, 'link.2': 0, 'link.0.error.1': 3, 'link.1.error.1': 0, ...more });
  it.each([
    ['an error more', () => joined({ 'link.0.error.1': 4 })],
    ['a link that went down', () => joined({ 'link.1': 0 })],
    ['a link that came up', () => joined({ 'link.2': 1, 'link.2.error.1': 7 })],
    ['more of them', () => joined({ 'link.3': 1 })],
    ['none any more', () => hopper(1)],
    ['traffic', () => ({ ...joined(), fields: { ...joined().fields, '138 0': 12, '139 1': 13, '204 1': 14 } })],
  ])('show %s half a minute later as a probe that never read before', async (_, changed) => {
    const [told, expected] = await changedAndFresh(joined(), changed(), 30_000);
    expect(withoutRate(told)).toEqual(expected);
    const [early] = await changedAndFresh(joined(), changed(), 29_000);
    expect(early).not.toEqual(expected);
  });

  it.each([
    ['off', split(), joined()],
    ['on', joined(), split()],
  ])('are read anew when MIG is turned %s', async (_, start, changed) => {
    const [told, expected] = await changedAndFresh(start, changed, 1_000);
    expect(told).toEqual(expected);
  });

  it('show which other GPUs each GPU reaches, and over how many links', async () => {
    const probe = byLibrary(live({ gpus: [linked(0, [1, 1, 2]), linked(1, [0, 0]), linked(2, [0])] }));
    const [first, second, third] = [0, 1, 2].map((index) => String(hopper(index).values.uuid)) as [string, string, string];
    const { reports } = await probe.collect();
    expect(reports.map(({ device }) => device.peers)).toEqual([
      [
        { device: second, links: 2, path: 'NV2' },
        { device: third, links: 1, path: 'NV1' },
      ],
      [{ device: first, links: 2, path: 'NV2' }],
      [{ device: first, links: 1, path: 'NV1' }],
    ]);
    await probe.close?.();
  });

  it('of a lost GPU keep their known ends', async () => {
    const node = live({ gpus: [linked(0, [1]), linked(1, [0])] });
    const probe = byLibrary(node);
    const before = await probe.collect();
    node.write({ gpus: [linked(0, [1]), { ...linked(1, [0]), lines: ['lost_after = 0'] }] });
    expect((await probe.collect()).reports.map(({ device }) => device)).toEqual(before.reports.map(({ device }) => device));
    await probe.close?.();
  });
});

describe('an instance', () => {
  it('that replaces another has its own name half a minute later', async () => {
    const { instances = {}, ...gpu } = split();
    const other = { ...gpu, instances: { ...instances, 0: { ...instances[0], uuid: 'MIG-99999999-0000-4000-8000-000000000001' } } };
    const [told, expected] = await changedAndFresh(split(), other, 30_000);
    expect(told).toEqual(expected);
    expect(JSON.stringify(told)).toContain('MIG-99999999');
  });

  it('that is removed disappears at the next read; a new one appears half a minute later', async () => {
    const { instances = {}, ...gpu } = split();
    const [first, second] = [instances[0], instances[2]];
    const without = { ...gpu, instances: { 0: first as Record<string, string> } };
    const [told, expected] = await changedAndFresh(split(), without, 1);
    expect(told).toEqual(expected);
    const withMore = { ...gpu, instances: { 0: first as Record<string, string>, 2: second as Record<string, string> } };
    const [later, whole] = await changedAndFresh(without, withMore, 30_000);
    expect(later).toEqual(whole);
  });

  it('with a memory error, which its GPU counts too, shows it at the next read', async () => {
    const { values, instances = {}, ...gpu } = split();
    const sickOne = { ...instances[0], 'ecc.1.0.7': 2 };
    const sickGpu = { ...gpu, values: { ...values, 'ecc.1.0.7': 2 }, instances: { ...instances, 0: sickOne } };
    const [told, expected] = await changedAndFresh(split(), sickGpu, 1);
    expect(told).toEqual(expected);
    expect(JSON.stringify(told)).toContain('UncorrectableErrors');
  });

  it('that is created appears at once when the driver sends an event', async () => {
    const { instances = {}, ...gpu } = split();
    const values = { ...gpu.values, event_types: '0x11f' };
    const one = { ...gpu, values, instances: { 0: instances[0] as Record<string, string> } };
    const node = live({ gpus: [one] });
    const probe = byLibrary(node, { 'nvml-slow-every': '1h' });
    await probe.collect();
    node.write({ gpus: [{ ...gpu, values, instances, lines: ['event = 1 0x100'] }] });
    const instancesOf = ({ reports }: Collection): number => reports.filter(({ device }) => device.kind === 'mig').length;
    expect(instancesOf(await probe.collect())).toBe(3);
    await probe.close?.();
  });

  it('is shown its own processes, and the loss of its GPU', async () => {
    const node = live({ gpus: [split()] });
    const probe = byLibrary(node, { 'nvml-slow-every': '1h' });
    await probe.collect();
    node.write({ gpus: [{ ...split(), processes: ['C 4712 1048576 7 0'] }] });
    const instance = (collection: Collection): DeviceReport | undefined =>
      collection.reports.find(({ device }) => device.gpuInstance === 7);
    expect(instance(await probe.collect())?.read?.processes?.map(({ pid }) => pid)).toEqual([4712]);
    node.write({ gpus: [{ ...split(), lines: ['lost_after = 0'] }] });
    const lost = instance(await probe.collect());
    expect(lost?.read?.findings.find(({ type }) => type === 'GpuLost')?.status).toBe(true);
    expect([...(lost?.read?.readings ?? [])].filter(({ metric }) => metric === 'device_memory_used_bytes')).toEqual([]);
    await probe.close?.();
  });
});
