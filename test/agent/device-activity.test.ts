import { describe, expect, it } from 'vitest';
import type { ActivitySpec } from '../../src/model/declaration.ts';
import { type ActivityInput, activityOf } from '../../src/model/device-activity.ts';
import type { Reading, Value } from '../../src/model/metric.ts';
import { Readings } from '../../src/model/readings.ts';

const engine = (name: string, value: number): Reading => ({ metric: 'device_utilization_ratio', labels: { engine: name }, value });
const counter = (metric: string, port: string, value: Value): Reading => ({ metric, labels: { port }, value });
const input = (part: Partial<ActivityInput>): ActivityInput => ({ readings: Readings.of([]), processes: [], monotonicMs: 10_000, ...part });

const WORK: ActivitySpec = { utilization: { above: 0.05 }, isForHoldersOnly: true };
const MOVES: ActivitySpec = { traffic: { metrics: ['rx', 'tx'], above: 100 }, isForHoldersOnly: false };

describe('the activity of a device', () => {
  it('names the engines above the threshold, by the device or one of its processes', () => {
    const processes = [{ pid: 1, utilization: { gpu: 0.2, decoder: 0.3 } }];
    const seen = activityOf(WORK, undefined, input({ readings: Readings.of([engine('gpu', 0.4), engine('encoder', 0.05)]), processes }));
    expect(seen).toEqual({ isIdle: false, engines: { gpu: 0.4, decoder: 0.3 }, untilMs: 10_000 });
  });

  it('counts only the engines of the declaration, and needs each of them', () => {
    const spec = { ...WORK, utilization: { above: 0.05, engines: ['gpu', 'decoder'] } };
    const read = [engine('gpu', 0), engine('memory', 0.9)];
    expect(activityOf(spec, undefined, input({ readings: Readings.of(read) }))).toMatchObject({ isIdle: 'unknown', engines: {} });
    expect(activityOf(spec, undefined, input({ readings: Readings.of([...read, engine('decoder', 0)]) }))).toMatchObject({
      isIdle: true,
      engines: {},
    });
    expect(activityOf(spec, undefined, input({ readings: Readings.of([engine('gpu', 1)]) }))).toMatchObject({
      isIdle: false,
      engines: { gpu: 1 },
    });
  });

  it('takes the mean since the read before instead of the sample of an engine and of its processes', () => {
    const spec: ActivitySpec = { utilization: { above: 0.05, means: { gpu: { metric: 'mean' } } }, isForHoldersOnly: true };
    const processes = [{ pid: 1, utilization: { gpu: 0.9, decoder: 0.3 } }];
    const look = (readings: readonly Reading[]) => activityOf(spec, undefined, input({ readings: Readings.of(readings), processes }));
    expect(look([engine('gpu', 1), { metric: 'mean', value: 0.86 }]).engines).toEqual({ gpu: 0.86, decoder: 0.3 });
    expect(look([engine('gpu', 0), { metric: 'mean', value: 0.03 }]).engines).toEqual({ decoder: 0.3 });
    expect(look([engine('gpu', 1)]).engines).toEqual({ gpu: 1, decoder: 0.3 });
  });

  it('takes the thresholds of the configuration', () => {
    const readings = [engine('gpu', 0.1)];
    expect(activityOf(WORK, { utilization: 0.1 }, input({ readings: Readings.of(readings) })).isIdle).toBe(true);
    expect(activityOf(WORK, { 'bytes-per-second': 5 }, input({ readings: Readings.of(readings) })).isIdle).toBe(false);
  });

  it('is unknown without a declared signal', () => {
    expect(activityOf({ isForHoldersOnly: true }, undefined, input({}))).toEqual({ isIdle: 'unknown', engines: {}, untilMs: 10_000 });
  });

  it('needs two readings of the same counters to see traffic', () => {
    const at = (seconds: number, value: Value, more: readonly Reading[] = []): Partial<ActivityInput> => ({
      readings: Readings.of([counter('rx', '1', value), counter('tx', '1', 0), ...more]),
      monotonicMs: seconds * 1_000,
    });
    const look = (part: Partial<ActivityInput>, previous?: ActivityInput['previous']) =>
      activityOf(MOVES, undefined, input({ ...part, previous }));
    const first = look(at(10, 1_000));
    const trafficSum = { bytes: 1_000, series: 2, monotonicMs: 10_000 };
    expect(first).toEqual({ isIdle: 'unknown', engines: {}, untilMs: 10_000, trafficSum });
    expect(look(at(20, 2_000), first.trafficSum)).toMatchObject({ isIdle: true, bytesPerSecond: 100 });
    expect(look(at(20, 2_001), first.trafficSum)).toMatchObject({ isIdle: false, bytesPerSecond: 100.1 });
    expect(look(at(20, 999), first.trafficSum), 'set back').toMatchObject({ isIdle: 'unknown' });
    expect(look(at(20, 9_000, [counter('rx', '2', 5)]), first.trafficSum), 'one more port').toMatchObject({ isIdle: 'unknown' });
    expect(look(at(10, 9_000), first.trafficSum), 'the same read').toMatchObject({ isIdle: 'unknown' });
    expect(look({ readings: Readings.of([counter('rx', '1', 5)]) }, first.trafficSum), 'one counter is not read').toEqual({
      isIdle: 'unknown',
      engines: {},
      untilMs: 10_000,
    });
  });

  it('takes the growth of counters that are read at their own interval from their own reads', () => {
    const at = (seconds: number, value: Value, readSeconds?: number): Partial<ActivityInput> => ({
      readings: Readings.of(
        ['rx', 'tx'].map((name) => ({
          ...counter(name, '1', name === 'rx' ? value : 0),
          ...(readSeconds !== undefined && { readMs: readSeconds * 1_000 }),
        })),
      ),
      monotonicMs: seconds * 1_000,
    });
    let previous: ActivityInput['previous'];
    const look = (part: Partial<ActivityInput>) => {
      const seen = activityOf(MOVES, undefined, input({ ...part, previous }));
      previous = seen.trafficSum;
      return [seen.isIdle, seen.bytesPerSecond, seen.untilMs];
    };
    expect(look(at(10, 0))).toEqual(['unknown', undefined, 10_000]);
    // A kept value has the begin of its read.
    expect(look(at(11, 0, 9.9)), 'one read is no growth').toEqual(['unknown', undefined, 10_000]);
    expect(look(at(15, 5_000))).toEqual([false, 1_000, 15_000]);
    expect(look(at(16, 5_000, 14.9)), 'the last known growth, and up to when it is known').toEqual([false, 1_000, 15_000]);
    expect(look(at(21, 5_500, 20)), 'the first look at a read was lost').toEqual([true, 100, 20_000]);
  });

  it('loses no byte of counters beyond 2^53', () => {
    const huge = 2n ** 63n;
    const at = (seconds: number, value: bigint): Partial<ActivityInput> => ({
      readings: Readings.of([counter('rx', '1', value), counter('tx', '1', 0n)]),
      monotonicMs: seconds * 1_000,
    });
    const first = activityOf(MOVES, undefined, input(at(10, huge)));
    expect(first.trafficSum?.bytes).toBe(huge);
    expect(activityOf(MOVES, undefined, input({ ...at(11, huge + 101n), previous: first.trafficSum }))).toMatchObject({
      isIdle: false,
      bytesPerSecond: 101,
    });
  });
});
