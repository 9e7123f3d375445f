import { describe, expect, it } from 'vitest';
import type { Reading } from '../../src/model/metric.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, hca, hcaReadings, holds, report, usageParts } from './small-node.ts';

const T0 = Date.parse('2030-01-01T00:00:00Z');

/** Values of a source that is read at its own interval, as each collection tells them. */
function source(everyMs: number, read: (atMs: number) => readonly Reading[]): (nowMs: number) => readonly Reading[] {
  let last: { readonly atMs: number; readonly readings: readonly Reading[] } | undefined;
  return (nowMs) => {
    if (last !== undefined && nowMs - last.atMs < everyMs) {
      const { atMs: readMs, readings } = last;
      return readings.map((reading) => ({ ...reading, readMs }));
    }
    last = { atMs: nowMs, readings: read(nowMs) };
    return last.readings;
  };
}

interface Story {
  readonly everyMs: number;
  readonly seconds: number;
  /** Bytes at a time. */
  readonly bytes: (seconds: number) => number;
  /** Time from which the pod holds the device. */
  readonly fromSeconds?: number;
}

/** The account of a pod on an HCA after so many seconds, at one look a second, and the least that it ever had as idle and busy time. */
function accountOf({ everyMs, seconds, bytes, fromSeconds = 0 }: Story): ContainerUsage {
  const agent = assembler(usageParts());
  const counters = source(everyMs, (atMs) => hcaReadings(bytes(atMs / 1_000), 0));
  let account: ContainerUsage | undefined;
  for (let now = 0; now <= seconds * 1_000; now += 1_000) {
    const { usage } = agent.assemble(
      {
        // A collection takes a while: its end is later than the time of its reads.
        families: [{ state: familyState('hca'), latest: lookAt(listed([report(hca('h0'), counters(now))]), T0 + now + 5, now + 5, now) }],
        podResources: podResources(now >= fromSeconds * 1_000 ? [holds('h0', 'train')] : [], { answeredAtMs: T0 + now }),
        checkpoint: [],
      },
      { nowMs: T0 + now + 6, monotonicMs: now + 6 },
    );
    account = usage?.containers[0];
  }
  return account as ContainerUsage;
}

describe('the time of a container on a device whose counters are read at their own interval', () => {
  it.each([1_000, 5_000, 30_000])('is busy while data moves, whatever the interval: %i ms', (everyMs) => {
    const { busySeconds, idleSeconds, unobservedSeconds, allocatedSeconds } = accountOf({
      ...{ everyMs, seconds: 240 },
      bytes: (seconds) => seconds * 1e9,
    });
    expect(allocatedSeconds).toBeCloseTo(240, 1);
    expect([busySeconds.traffic, idleSeconds]).toEqual([expect.closeTo(240, 1), 0]);
    expect(unobservedSeconds).toBeCloseTo(0, 1);
  });

  it('is idle and busy by the reads that tell it, and pending until the next one does', () => {
    // Data moves for the first 60 s. The read of 60 s tells of the 30 s before it, and so does the one of 90 s.
    const bytes = (seconds: number): number => Math.min(seconds, 60) * 1e9;
    const at = (seconds: number): ContainerUsage => accountOf({ everyMs: 30_000, seconds, bytes });
    expect(at(59)).toMatchObject({
      busySeconds: { traffic: expect.closeTo(30, 1) },
      idleSeconds: 0,
      unobservedSeconds: expect.closeTo(0, 1),
    });
    expect(at(89)).toMatchObject({ busySeconds: { traffic: expect.closeTo(60, 1) }, idleSeconds: 0 });
    expect(at(90)).toMatchObject({ busySeconds: { traffic: expect.closeTo(60, 1) }, idleSeconds: expect.closeTo(30, 1) });
  });

  it('outlasts the stale age, because the device is read all the time', () => {
    const bytes = (seconds: number): number => seconds * 1e9;
    const usage = accountOf({ everyMs: 300_000, seconds: 600, bytes });
    expect(usage).toMatchObject({ busySeconds: { traffic: expect.closeTo(600, 1) }, unobservedSeconds: expect.closeTo(0, 1) });
  });

  it('is not known before the first read of a source whose growth began long before the container came', () => {
    const bytes = (seconds: number): number => Math.min(seconds, 100) * 1e9;
    const usage = accountOf({ everyMs: 300_000, seconds: 600, fromSeconds: 200, bytes });
    expect(usage).toMatchObject({ idleSeconds: expect.closeTo(300, 1), unobservedSeconds: expect.closeTo(100, 1) });
    expect(usage.busySeconds.traffic ?? 0).toBe(0);
    const quiet = accountOf({ everyMs: 300_000, seconds: 600, fromSeconds: 200, bytes: () => 7 });
    expect(quiet).toMatchObject({ idleSeconds: expect.closeTo(400, 1), unobservedSeconds: expect.closeTo(0, 1) });
  });
});

describe('the energy of containers that share a device', () => {
  it.each([1_000, 30_000])('is divided by what they did between two reads of the counter, which is read each %i ms', (everyMs) => {
    const agent = assembler(usageParts());
    const energy = source(everyMs, (atMs) => gpuReadings(0, atMs / 10).slice(2));
    let accounts: readonly ContainerUsage[] = [];
    for (let now = 0; now <= 120_000; now += 1_000) {
      // The first works in the first minute, the second in the last one: 100 W all the time.
      const isFirst = now <= 60_000;
      const processes = [
        { pid: 1, podUid: 'uid-a', utilization: { gpu: isFirst ? 0.9 : 0 } },
        { pid: 2, podUid: 'uid-b', utilization: { gpu: isFirst ? 0 : 0.9 } },
      ];
      const readings = [...gpuReadings(0.9, 0).slice(0, 2), ...energy(now)];
      const held = [holds('g0::0', 'a'), holds('g0::1', 'b')];
      const { usage } = agent.assemble(
        {
          families: [{ state: familyState('gpu'), latest: lookAt(listed([report(gpu('g0'), readings, processes)]), T0 + now, now, now) }],
          podResources: podResources(held, { answeredAtMs: T0 + now }),
          checkpoint: held.map(({ pod, container, resource, deviceId }) => ({
            ...{ podUid: `uid-${pod}`, container, resource, deviceIds: [deviceId] },
          })),
        },
        { nowMs: T0 + now, monotonicMs: now },
      );
      accounts = usage?.containers ?? [];
    }
    const joules = Object.fromEntries(accounts.map(({ pod, energyEstimatedJoules = 0 }) => [pod, energyEstimatedJoules]));
    expect(joules).toEqual({ a: expect.closeTo(6_000, -3), b: expect.closeTo(6_000, -3) });
    expect((joules.a ?? 0) + (joules.b ?? 0)).toBeCloseTo(12_000, 0);
  });
});
