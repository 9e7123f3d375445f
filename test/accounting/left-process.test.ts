import { describe, expect, it } from 'vitest';
import type { DeviceProcess } from '../../src/model/collection.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, holds, report, usageParts } from './small-node.ts';

/* Pods f and g share a GPU of 400 W. After 100 s f ends, and its process of 11.5 GB lives on for 100 s. The agent looks every 10 s. */
const STEP = 10_000;
const [END, GONE, LAST] = [100_000, 200_000, 300_000];
const WALL = Date.parse('2030-01-01T00:00:00Z');

interface Busy {
  readonly f: number | undefined;
  readonly g: number | undefined;
}

interface Played {
  readonly at: (ms: number) => Snapshot;
  readonly account: (pod: string, ms: number) => ContainerUsage;
}

/** What the processes of both do, as shares of the time of the GPU. */
function play({ f, g }: Busy): Played {
  const agent = assembler(usageParts());
  const snapshots = new Map<number, Snapshot>();
  const process = (pid: number, pod: string, memoryUsedBytes: number, share: number | undefined): DeviceProcess => ({
    ...{ pid, name: 'train', podUid: `uid-${pod}`, memoryUsedBytes },
    ...(share === undefined ? {} : { utilization: { gpu: share } }),
  });
  for (let now = 0; now <= LAST; now += STEP) {
    const held = [...(now < END ? [holds('g0::0', 'f')] : []), holds('g0::1', 'g')];
    const processes = [...(now < GONE ? [process(1, 'f', 11.5e9, f)] : []), process(2, 'g', 3.8e9, g)];
    const read = report(gpu('g0'), gpuReadings(1, 0.4 * now, now < GONE ? 16.1e9 : 4.6e9), processes);
    snapshots.set(
      now,
      agent.assemble(
        {
          families: [{ state: familyState('gpu'), latest: lookAt(listed([read]), WALL + now, now, now - 20) }],
          podResources: podResources(held, { answeredAtMs: WALL + now }),
          checkpoint: held.map(({ pod, container, resource, deviceId }) => ({
            ...{ podUid: `uid-${pod}`, container, resource, deviceIds: [deviceId] },
          })),
        },
        { nowMs: WALL + now, monotonicMs: now },
      ),
    );
  }
  const at = (ms: number): Snapshot => snapshots.get(ms) as Snapshot;
  const account = (pod: string, ms: number): ContainerUsage =>
    (at(ms).usage?.containers ?? []).find((one) => one.pod === pod) as ContainerUsage;
  return { at, account };
}

const gaugesOf = (snapshot: Snapshot, pod: string): Record<string, unknown> =>
  Object.fromEntries(
    snapshot.containerReadings
      .filter((one) => one.pod === pod)
      .flatMap(({ readings }) => [...readings].map(({ metric, value }) => [metric, value])),
  );
const joules = (played: Played, pod: string, from: number, to: number): number => {
  const of = (ms: number): number => {
    const { energyJoules = 0, energyEstimatedJoules = 0 } = played.account(pod, ms);
    return Number(energyJoules) + energyEstimatedJoules;
  };
  return of(to) - of(from);
};

describe('a process that lives on after its pod ended', () => {
  const played = play({ f: 0.6, g: 0.2 });

  it('keeps its memory and its use: the other holder has its own', () => {
    for (const ms of [END - STEP, END, END + STEP, GONE - STEP])
      expect(gaugesOf(played.at(ms), 'g')).toEqual({ device_memory_used_bytes: 3.8e9, device_utilization_ratio: 0.2 });
    const before = played.account('g', END - STEP);
    const after = played.account('g', GONE - STEP);
    expect(((after.memoryByteSeconds ?? 0) - (before.memoryByteSeconds ?? 0)) / 100).toBeCloseTo(3.8e9, -3);
    expect((after.busySeconds.gpu ?? 0) - (before.busySeconds.gpu ?? 0)).toBeCloseTo(20);
  });

  it('keeps its energy, which belongs to nobody', () => {
    expect(joules(played, 'g', END + STEP, GONE - STEP)).toBeCloseTo((0.2 / 0.8) * 400 * 80, 3);
  });

  it('leaves the device to the other holder when it ends', () => {
    expect(gaugesOf(played.at(GONE + STEP), 'g')).toMatchObject({ device_memory_used_bytes: 4.6e9, device_utilization_ratio: 1 });
    expect(joules(played, 'g', GONE + 2 * STEP, LAST)).toBeCloseTo(400 * 80, 3);
  });

  it('takes the part of one holder from the energy of a device that does nothing', () => {
    expect(joules(play({ f: 0, g: 0 }), 'g', END + STEP, GONE - STEP)).toBeCloseTo(400 * 40, 3);
  });

  it('makes the use of the other holder unknown where the driver does not tell it', () => {
    const { account } = play({ f: undefined, g: undefined });
    expect(account('g', GONE - STEP).unobservedSeconds - account('g', END).unobservedSeconds).toBeCloseTo(90);
    expect(account('g', GONE - STEP).idleSeconds).toBe(0);
  });
});
