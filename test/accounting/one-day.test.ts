import { beforeAll, describe, expect, it } from 'vitest';
import type { DeviceProcess } from '../../src/model/collection.ts';
import type { ContainerUsage, DeviceUsage } from '../../src/model/usage.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, HOUR, hca, hcaReadings, holds, report, usageParts } from './small-node.ts';

/*
 * One day of a GPU of 400 W at work and 100 W at rest, and of an HCA. The agent looks every 30 s.
 *
 *  0 -  2 h  nobody holds anything
 *  2 - 10 h  train holds both alone: GPU 80 % busy and 1 GB/s until 8 h, then nothing but 1 kB/s
 * 10 - 12 h  nobody
 * 12 - 18 h  a (2 ids) and b (1 id) share the GPU: until 15 h a uses 60 % and b 20 %, then nothing
 * 20 - 21 h  the kubelet does not answer
 * 22 - 23 h  the GPU is unhealthy
 */
const STEP = 30_000;
const MIDNIGHT = Date.parse('2030-01-01T00:00:00Z');

const at = (hours: number): number => hours * HOUR;
const isIn = (ms: number, from: number, to: number): boolean => ms >= at(from) && ms < at(to);
/** A read tells of the time that ended with it. */
const wasIn = (ms: number, from: number, to: number): boolean => ms > at(from) && ms <= at(to);

const containers = new Map<string, ContainerUsage>();
const devices = new Map<string, DeviceUsage>();

beforeAll(() => {
  let now = 0;
  const agent = assembler(usageParts(), [], (key) => key === 'gpu/g0' && isIn(now, 22, 23));
  let [joules, bytes, answeredAtMs] = [5_000, 9_000, MIDNIGHT];
  for (now = 0; now <= at(24); now += STEP) {
    const isBusy = wasIn(now, 2, 8) || wasIn(now, 12, 15);
    joules += (isBusy ? 400 : 100) * (STEP / 1_000);
    bytes += (wasIn(now, 2, 8) ? 1e9 : 1e3) * (STEP / 1_000);
    const train = isIn(now, 2, 10) ? [holds('g0', 'train'), holds('h0', 'train')] : [];
    const pair = isIn(now, 12, 18) ? [holds('g0::0', 'a'), holds('g0::1', 'a'), holds('g0::2', 'b')] : [];
    const process = (pid: number, podUid: string, memoryUsedBytes: number, busy: number): DeviceProcess => ({
      ...{ pid, podUid, memoryUsedBytes },
      utilization: { gpu: wasIn(now, 12, 15) ? busy : 0 },
    });
    const processes = isIn(now, 12, 18) ? [process(1, 'uid-a', 10e9, 0.6), process(2, 'uid-b', 5e9, 0.2)] : [];
    const look = (...reports: ReturnType<typeof report>[]) => lookAt(listed(reports), MIDNIGHT + now, now, now - 20);
    if (!isIn(now, 20, 21)) answeredAtMs = MIDNIGHT + now;
    const { usage } = agent.assemble(
      {
        families: [
          {
            state: familyState('gpu'),
            latest: look(report(gpu('g0'), gpuReadings(isBusy ? 0.8 : 0, joules, isIn(now, 2, 10) ? 40e9 : 0), processes)),
          },
          { state: familyState('hca'), latest: look(report(hca('h0'), hcaReadings(bytes, 0))) },
        ],
        podResources: podResources([...train, ...pair], { answeredAtMs }),
        checkpoint: [...train, ...pair].map(({ pod, container, resource, deviceId }) => ({
          ...{ podUid: `uid-${pod}`, container, resource, deviceIds: [deviceId] },
        })),
      },
      { nowMs: MIDNIGHT + now, monotonicMs: now },
    );
    for (const one of usage?.containers ?? []) containers.set(`${one.pod} ${one.device}`, one);
    for (const one of usage?.devices ?? []) devices.set(one.device, one);
  }
});

/** Sums of floating numbers differ in the last digits. */
const near = (value: number): unknown => expect.closeTo(value, 3);

describe('one day on paper', () => {
  it('has the hours of the devices', () => {
    // The kubelet's last answer is that of 19:59:30. The look of 20:01:00 finds it older than a minute. 21:00:00 - 20:01:00 = 3,540 s.
    // Held: 8 h + 6 h = 50,400 s. Free: 86,400 - 50,400 - 3,540 = 32,460 s.
    expect(devices.get('gpu/g0')).toEqual({
      device: 'gpu/g0',
      allocatedSeconds: near(50_400),
      unallocatedSeconds: near(32_460),
      unhealthySeconds: near(3_600),
      unobservedSeconds: near(3_540),
    });
    // Held: 8 h = 28,800 s. Free: 86,400 - 28,800 - 3,540 = 54,060 s.
    expect(devices.get('hca/h0')).toMatchObject({
      allocatedSeconds: near(28_800),
      unallocatedSeconds: near(54_060),
      unhealthySeconds: 0,
      unobservedSeconds: near(3_540),
    });
  });

  it('has the use of a container that was alone', () => {
    // 02:00:00 to 10:00:00. The last look that saw it was at 9:59:30, so the last 30 s are not observed.
    // Busy: 6 h * 0.8 = 17,280 s. Idle: 8:00:00 to 9:59:30 = 7,170 s, a quarter of the time.
    // Energy counts from the first read that began with it, at 2:00:30: 21,570 s * 400 W + 7,170 s * 100 W = 9,345,000 J.
    // Memory: 40 GB * 28,770 s.
    expect(containers.get('train gpu/g0')).toMatchObject({
      ...{ namespace: 'ml', pod: 'train', container: 'main', uid: 'uid-train' },
      ...{ sinceMs: MIDNIGHT + at(2), endedAtMs: MIDNIGHT + at(10), lastActiveMs: MIDNIGHT + at(8) },
      ...{ allocatedSeconds: near(28_800), shareSeconds: near(28_800) },
      ...{ busySeconds: { gpu: near(17_280) }, idleSeconds: near(7_170), unobservedSeconds: near(30) },
      ...{ energyJoules: near(9_345_000), memoryByteSeconds: near(40e9 * 28_770) },
    });
    expect(containers.get('train gpu/g0')).not.toHaveProperty('energyEstimatedJoules');
    expect(containers.get('train gpu/g0')?.counters, 'its last words').toEqual([
      { metric: 'device_energy_joules_total', value: 9_345_000 },
    ]);
  });

  it('has the traffic of a container', () => {
    // Moving: 6 h = 21,600 s. Bytes from 2:00:30 on: 21,570 s * 1e9 + 7,170 s * 1e3.
    expect(containers.get('train hca/h0')).toMatchObject({
      ...{ busySeconds: { traffic: near(21_600) }, idleSeconds: near(7_170), unobservedSeconds: near(30) },
      ...{ receivedBytes: 21_570e9 + 7_170e3, transmittedBytes: 0, lastActiveMs: MIDNIGHT + at(8) },
    });
  });

  it('divides a shared device', () => {
    // 12:00:00 to 18:00:00 = 21,600 s, by ids 2 to 1. Busy until 15:00:00: 10,800 s. Idle to the last look at 17:59:30: 10,770 s.
    // Energy of the work 10,800 s * 400 W = 4,320,000 J by load 0.6 to 0.2. Energy of the rest 10,770 s * 100 W = 1,077,000 J by share.
    const [a, b] = [containers.get('a gpu/g0'), containers.get('b gpu/g0')];
    expect(a).toMatchObject({
      ...{ allocatedSeconds: near(21_600), shareSeconds: near(14_400) },
      ...{ busySeconds: { gpu: near(6_480) }, idleSeconds: near(10_770), unobservedSeconds: near(30) },
      ...{ energyEstimatedJoules: near(3_240_000 + 718_000), memoryByteSeconds: near(10e9 * 21_570) },
    });
    expect(b).toMatchObject({
      ...{ allocatedSeconds: near(21_600), shareSeconds: near(7_200) },
      ...{ busySeconds: { gpu: near(2_160) }, idleSeconds: near(10_770), unobservedSeconds: near(30) },
      ...{ energyEstimatedJoules: near(1_080_000 + 359_000), memoryByteSeconds: near(5e9 * 21_570) },
    });
    expect([a, b].some((one) => one !== undefined && 'energyJoules' in one)).toBe(false);
  });
});
