import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import { createHost, type Host } from '../../../src/host/host.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { seeded } from '../../support/seeded.ts';
import { toldOf } from '../../support/told.ts';
import { randomGpu, randomSupport, type Support } from './random-gpus.ts';
import { hopper, type ScriptedGpu } from './scripted-script.ts';
import { started } from './started.ts';
import { byLibrary, live } from './told-both-ways.ts';

const ROUNDS = 12;
const LINKS = 3;
/** A verdict compares them with a value of another call. */
const LIMITS = /^(?:limit_|threshold_)/;
const MARGIN_LIMITS = /^19[3-6] /;
/** They depend on earlier reads, or on several calls. */
const OF_SEVERAL_READS = new Set(['NvLinkErrors', 'NvLinkRecoveries', 'NvLinkErrorRate', 'HardwareSlowdown']);

interface Told {
  readonly device: string;
  readonly text: string;
  readonly readMs: number | undefined;
}

/** Everything that a collection tells, by what it is about. */
function told({ reports }: Collection): ReadonlyMap<string, Told> {
  const all = new Map<string, Told>();
  for (const { device, readings, findings } of reports.map(toldOf)) {
    for (const { metric, labels, value, readMs } of readings)
      if (metric !== 'device_nvidia_info')
        all.set(`${device.id} ${metric} ${JSON.stringify(labels)}`, { device: device.id, text: String(value), readMs });
    // The kernel log tells of what was before a recovery.
    for (const { readMs, ...finding } of findings)
      if (!OF_SEVERAL_READS.has(finding.type) && finding.reason !== 'Recovered')
        all.set(`${device.id} ${finding.type} ${finding.instance}`, { device: device.id, text: JSON.stringify(finding), readMs });
  }
  return all;
}

/** Limits stay, and everything else changes. */
function changed(pick: (below: number) => number, support: Support, first: ScriptedGpu | undefined): ScriptedGpu {
  const gpu = randomGpu(pick, support);
  const kept = (of: Readonly<Record<string, number | string>> = {}, names: RegExp) =>
    Object.fromEntries(Object.entries(of).filter(([name]) => names.test(name)));
  const links = Array.from({ length: LINKS }, (_, link) => [`link.${link}`, pick(4) > 0 ? 1 : 0] as const);
  const bytes = Array.from({ length: LINKS }, (_, link) =>
    [138, 139].map((field) => [`${field} ${link}`, pick(1_000_000)] as const),
  ).flat();
  return {
    ...gpu,
    values: { ...gpu.values, ...kept(first?.values, LIMITS), ...Object.fromEntries(links) },
    fields: { ...gpu.fields, ...kept(first?.fields, MARGIN_LIMITS), ...Object.fromEntries(bytes) },
  };
}

describe('a value that the library was not asked for again', () => {
  it.each(Array.from({ length: 12 }, (_, seed) => seed + 1))('has the time at which it was true, seed %i', async (seed) => {
    const pick = seeded(seed);
    const supports = Array.from({ length: 1 + pick(2) }, (_, index) => randomSupport(pick, index));
    const first = supports.map((support) => changed(pick, support, undefined));
    let nowMs = 0;
    const clock: Clock = { ...systemClock, monotonic: () => nowMs };
    const hostOf = (root: string): Host =>
      createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, clock);
    const [node, mirror] = [live({ gpus: first }, hostOf), live({ gpus: first }, hostOf)];
    const every = { 'nvml-slow-every': `${1 + pick(40)}s`, 'nvml-facts-every': `${60 + pick(60)}s` };
    const probe = byLibrary(node, every);
    /** What a probe that remembers nothing tells, by time. */
    const truths = new Map<number, ReadonlyMap<string, Told>>();
    let kept = 0;
    for (let round = 0; round < ROUNDS; round += 1) {
      const fresh = byLibrary(mirror);
      truths.set(nowMs, told(await fresh.collect()));
      await fresh.close?.();
      for (const [key, { device, text, readMs }] of told(await probe.collect())) {
        const truth = truths.get(readMs ?? nowMs) ?? new Map<string, Told>();
        // An instance shares findings of its GPU that are older than itself.
        if (![...truth.values()].some((one) => one.device === device)) continue;
        if (readMs !== undefined) kept += 1;
        expect(text, `${key} at ${nowMs}, read at ${readMs}, ${JSON.stringify(every)}`).toBe(truth.get(key)?.text);
      }
      nowMs += 1 + pick(20_000);
      const machine = { gpus: supports.map((support, index) => changed(pick, support, first[index])) };
      for (const each of [node, mirror]) each.write(machine);
    }
    expect(kept).toBeGreaterThan(ROUNDS);
    await probe.close?.();
  });

  it('is no sign that the GPU answers', async () => {
    const { node, at } = started(hopper(0, { fan: 40 }));
    await at(0);
    const fails = ['TemperatureV', 'Temperature', 'MemoryInfo_v2', 'UtilizationRates', 'ClockInfo', 'FieldValues'].map(
      (name) => `fail.nvmlDeviceGet${name} = 999`,
    );
    node.write({ gpus: [{ ...hopper(0, { fan: 40 }), lines: fails }] });
    const lost = (await at(10_000)).reports.map(toldOf)[0]?.findings.find(({ type }) => type === 'GpuLost');
    expect(lost).toMatchObject({ status: 'unknown', reason: 'ValuesUnreadable' });
  });

  it('is the energy, which takes much time of the CPU, for ten seconds; an interval of the slow values reads it too', async () => {
    const energy = 'device_energy_joules_total';
    const at = async (run: ReturnType<typeof started>, ms: number, millijoules: number): Promise<unknown> => {
      const gpu = hopper(0, { temperature: 40 + ms / 1_000 });
      run.node.write({ gpus: [{ ...gpu, fields: { ...gpu.fields, '83 0': millijoules } }] });
      const [report] = (await run.at(ms)).reports.map(toldOf);
      expect(report?.readings.find(({ metric }) => metric === 'device_temperature_celsius')).toMatchObject({ value: 40 + ms / 1_000 });
      const { value, readMs } = report?.readings.find(({ metric }) => metric === energy) ?? {};
      return { value, readMs };
    };
    const run = started(hopper(0));
    expect(await at(run, 0, 1_000)).toEqual({ value: 1, readMs: undefined });
    for (const second of [1, 2, 3, 4]) expect(await at(run, second * 1_000, 1_000 + second)).toEqual({ value: 1, readMs: 0 });
    expect(await at(run, 10_000, 11_000)).toEqual({ value: 11, readMs: undefined });
    expect(await at(run, 11_000, 12_000)).toEqual({ value: 11, readMs: 10_000 });
    const often = started(hopper(0), { 'nvml-slow-every': '1s' });
    for (const second of [0, 1, 2]) expect(await at(often, second * 1_000, second)).toEqual({ value: second / 1_000, readMs: undefined });
  });
});
