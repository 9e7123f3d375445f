import { describe, expect, it } from 'vitest';
import type { DeviceProcess } from '../../src/model/collection.ts';
import { activityOf } from '../../src/model/device-activity.ts';
import type { Reading } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';
import { family } from '../../src/probes/nvidia/index.ts';

/** A board of 1,000 W that rests, while its driver holds the utilization at 100 %. */
const RESTING: Readonly<Record<string, Reading>> = {
  busy: { metric: 'device_utilization_ratio', labels: { engine: 'gpu' }, value: 1 },
  memory: { metric: 'device_utilization_ratio', labels: { engine: 'memory' }, value: 0 },
  clock: { metric: 'device_clock_hertz', labels: { clock: 'sm' }, value: 120e6 },
  most: { metric: 'device_clock_max_hertz', labels: { clock: 'sm' }, value: 1_965e6 },
  power: { metric: 'device_power_watts', labels: { sensor: 'gpu' }, value: 182 },
  limit: { metric: 'device_power_limit_watts', labels: { limit: 'default' }, value: 1_000 },
};

function isIdle(
  change: Readonly<Record<string, Reading | undefined>> = {},
  processes: readonly DeviceProcess[] = [],
  hasAllProcesses = true,
) {
  const list = Object.values({ ...RESTING, ...change }).filter((reading) => reading !== undefined);
  if (family.activity === undefined) throw new Error('the family shows no activity');
  return activityOf(family.activity, undefined, { readings: Readings.of(list), processes, hasAllProcesses, monotonicMs: 1_000 }).isIdle;
}

const changed = (name: string, value: number): Readonly<Record<string, Reading>> => ({ [name]: { ...(RESTING[name] as Reading), value } });

describe('a utilization of 100 % that everything else denies', () => {
  it('is no work', () => {
    expect(isIdle()).toBe(true);
  });

  it.each([
    ['memory traffic', changed('memory', 0.01)],
    ['a high clock', changed('clock', 1_500e6)],
    ['power', changed('power', 400)],
  ])('is work beside %s', (_, change) => {
    expect(isIdle(change)).toBe(false);
  });

  it.each(['memory', 'clock', 'most', 'power', 'limit'])('is work when %s was not read', (name) => {
    expect(isIdle({ [name]: undefined })).toBe(false);
  });

  it('is work beside a process, and when not all processes were read', () => {
    expect(isIdle({}, [{ pid: 7 } as DeviceProcess])).toBe(false);
    expect(isIdle({}, [], false)).toBe(false);
  });

  it('is work when the measured activity of the board says so', () => {
    const activity: Reading = { metric: 'device_nvidia_activity_ratio', labels: { unit: 'graphics' }, value: 0.9 };
    expect(isIdle({ activity })).toBe(false);
  });
});
