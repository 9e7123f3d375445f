import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HealthConfig } from '../../../src/health/policy/policy-config.ts';
import type { Interval } from '../../../src/health/rehearsal/intervals.ts';
import { RecordingReader } from '../../../src/health/rehearsal/read-recording.ts';
import type { Recording } from '../../../src/health/rehearsal/recording.ts';
import { type Rehearsal, rehearse } from '../../../src/health/rehearsal/rehearsal.ts';
import { replayDevice } from '../../../src/health/rehearsal/replay.ts';
import { at, policyFor, REBOOT, RESTART, type RecordedWeek, recordWeek, WEEK } from './week.ts';

let directory: string;
let week: RecordedWeek;
let recording: Recording;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-week-'));
  week = await recordWeek({ directory, policy: policyFor() });
  recording = await read(week);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function read({ log }: Pick<RecordedWeek, 'log'>): Promise<Recording> {
  const reader = new RecordingReader();
  const result = await log.read(0, (record) => reader.take(record));
  expect(result).toEqual({ damagedLines: 0, newerFiles: 0 });
  return reader.recording();
}

async function rehearsal(config: HealthConfig): Promise<Rehearsal> {
  return (await rehearse(recording, { present: policyFor(), other: policyFor(config) }, WEEK)) as Rehearsal;
}

const different = ({ devices }: Rehearsal): readonly string[] => devices.filter(({ isDifferent }) => isDifferent).map(({ key }) => key);

/** The intervals that are not healthy, with their times to ten seconds. */
function troubles(intervals: readonly Interval[]): readonly (readonly [string, string, string, string])[] {
  const text = (ms: number): string => new Date(Math.round(ms / 10_000) * 10_000).toISOString().slice(5, 19);
  return intervals
    .filter(({ state }) => state !== 'healthy')
    .map(({ fromMs, toMs, state, conditions }) => [text(fromMs), text(toMs), state, conditions.join(',')]);
}

const ofDevice = (outcome: Rehearsal, key: string, side: 'present' | 'other') =>
  troubles(outcome.devices.find((device) => device.key === key)?.[side] ?? []);

describe('a recorded week', () => {
  it('gives the same events as the engine gave, at the same times', () => {
    const replayed = [...recording.devices.keys()].flatMap((key) => replayDevice(recording, key, policyFor()).events);
    const text = (event: { timeMs: number; device: string; transition: string; condition?: string; to?: string }): string =>
      `${event.timeMs} ${event.device} ${event.transition} ${event.condition} ${event.to}`;
    expect(week.events.length).toBeGreaterThan(25);
    expect(replayed.map(({ event }) => text(event)).sort()).toEqual(week.events.map(text).sort());
  });

  it('is small while the hardware is healthy', () => {
    const folder = join(directory, 'findings');
    const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    expect(bytes).toBeLessThan(7 * 150_000);
  });

  it('knows the times without an agent', async () => {
    const { gaps, unlikeRecord, brokenRecords } = await rehearsal({});
    expect(gaps.map(({ fromMs, toMs }) => [Math.ceil((fromMs - WEEK) / 60_000), Math.floor((toMs - fromMs) / 60_000)])).toEqual([
      [(RESTART.from - WEEK) / 60_000, 5],
      [(REBOOT.from - WEEK) / 60_000, 10],
    ]);
    expect(unlikeRecord).toBe(0);
    expect(brokenRecords).toBe(0);
  });

  it('differs nowhere under the same policy', async () => {
    const same = await rehearsal({});
    expect(different(same)).toEqual([]);
    expect(same.present).toEqual(same.other);
    // The flaps of mlx5_0, and then their flapping for an hour; the blind half hour; the Xid.
    expect(ofDevice(same, 'infiniband/mlx5_0', 'present')).toEqual([
      ['01-01T10:00:30', '01-01T10:02:00', 'unhealthy', 'PortDown/1'],
      ['01-01T11:00:30', '01-01T11:02:00', 'unhealthy', 'PortDown/1'],
      ['01-01T12:00:30', '01-01T13:02:00', 'unhealthy', 'PortDown/1,Flapping/PortDown/1'],
    ]);
    expect(same.present.podsHit).toEqual(['train/first', 'train/second']);
  });

  it('has no outage of a port that a longer wait forgives', async () => {
    const longer = await rehearsal({ conditions: { 'infiniband.PortDown': { for: '5m' } } });
    expect(different(longer)).toEqual(['infiniband/mlx5_0']);
    expect(ofDevice(longer, 'infiniband/mlx5_0', 'other')).toEqual([]);
    expect(longer.present.outages - longer.other.outages).toBe(3);
  });

  it('has one more outage with a shorter wait', async () => {
    const shorter = await rehearsal({ conditions: { 'infiniband.PortDown': { for: '5s' } } });
    expect(different(shorter)).toEqual(['infiniband/mlx5_0']);
    expect(ofDevice(shorter, 'infiniband/mlx5_0', 'other').at(-1)).toEqual(['01-07T10:00:10', '01-07T10:01:30', 'unhealthy', 'PortDown/1']);
  });

  it('follows ignore rules, which may name an alias', async () => {
    const ignore = [{ device: '0000:01:00.0', condition: 'PortDown', reason: 'known', until: '2024-01-01T11:30:00Z' }];
    const ignored = await rehearsal({ ignore });
    expect(ofDevice(ignored, 'infiniband/mlx5_0', 'other')).toEqual([
      ['01-01T12:00:30', '01-01T13:02:00', 'unhealthy', 'PortDown/1,Flapping/PortDown/1'],
    ]);
    expect(ignored.other.podsHit).toEqual(['train/second']);
  });

  it('takes a hot GPU out when the severity is fatal', async () => {
    const fatal = await rehearsal({ conditions: { 'nvidia.OverTemperature': { severity: 'fatal' } } });
    expect(different(fatal)).toEqual(['nvidia/GPU-0']);
    const [present, other] = [ofDevice(fatal, 'nvidia/GPU-0', 'present'), ofDevice(fatal, 'nvidia/GPU-0', 'other')];
    expect(present[0]).toEqual(['01-02T09:00:30', '01-02T09:11:00', 'degraded', 'OverTemperature']);
    expect(other).toEqual([['01-02T09:00:30', '01-02T09:11:00', 'unhealthy', 'OverTemperature'], ...present.slice(1)]);
  });

  it('leaves the GPU in service when the Xid is disabled', async () => {
    const disabled = await rehearsal({ conditions: { 'nvidia.Xid/94': { enabled: false } } });
    expect(different(disabled)).toEqual(['nvidia/GPU-0']);
    // The last judgement before the reboot ends the interval: nobody looked afterwards.
    expect(ofDevice(disabled, 'nvidia/GPU-0', 'present').at(-1)).toEqual(['01-05T12:00:00', '01-06T00:29:30', 'unhealthy', 'Xid/94']);
    expect(ofDevice(disabled, 'nvidia/GPU-0', 'other').at(-1)?.[3]).toBe('OverTemperature');
  });

  it('flaps after the second time with that count', async () => {
    const twice = await rehearsal({ flapping: { count: 2 } });
    expect(ofDevice(twice, 'infiniband/mlx5_0', 'other')).toEqual([
      ['01-01T10:00:30', '01-01T10:02:00', 'unhealthy', 'PortDown/1'],
      ['01-01T11:00:30', '01-01T13:02:00', 'unhealthy', 'PortDown/1,Flapping/PortDown/1'],
    ]);
  });

  it('judges the growth of a counter by another threshold', async () => {
    const strict = await rehearsal({ conditions: { 'nvidia.AerNonfatal': { threshold: { growth: 100, window: '1h' } } } });
    expect(different(strict)).toEqual(['nvidia/GPU-1']);
    const present = ofDevice(strict, 'nvidia/GPU-1', 'present');
    expect(present[0]?.slice(2)).toEqual(['degraded', 'AerNonfatal']);
    expect(ofDevice(strict, 'nvidia/GPU-1', 'other')).toEqual(present.slice(1));
  });

  it('leaves an unread GPU in service where unknown means healthy', async () => {
    const lenient = await rehearsal({ unknown: 'healthy' });
    const blind = (side: 'present' | 'other') =>
      lenient.devices
        .find(({ key }) => key === 'nvidia/GPU-1')
        ?.[side].find(({ fromMs, state }) => fromMs >= at(3, 8) && state === 'unknown');
    expect(blind('present')).toMatchObject({ isOut: true, conditions: ['DeviceNotRead'] });
    expect(blind('other')).toMatchObject({ isOut: false, conditions: ['DeviceNotRead'] });
  });
});
