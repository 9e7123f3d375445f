import { describe, expect, it } from 'vitest';
import type { HealthEvent } from '../../src/model/events.ts';
import type { HealthState } from '../../src/model/health.ts';
import { type HealthPast, statesIn } from '../../src/server/pages/health-timeline.ts';

const KEY = 'nvidia/GPU-1';
const NOW = 10_000;

const change = (timeMs: number, from: HealthState, to: HealthState): HealthEvent => ({
  id: timeMs,
  timeMs,
  device: KEY,
  family: 'nvidia',
  transition: 'state',
  from,
  to,
  reason: 'Test',
  message: 'test',
  remedy: 'none',
  holders: [],
});
const span = (fromMs: number, untilMs: number) => ({ fromMs, untilMs });
const toldSince = (ms: number, state: HealthState = 'healthy'): HealthPast['device'] => ({
  key: KEY,
  health: { state, since: new Date(ms).toISOString(), conditions: [] },
});
const past = (part: Partial<HealthPast> & { readonly state?: HealthState }): HealthPast => ({
  device: toldSince(0, part.state),
  events: [],
  watched: { spans: [span(0, NOW)], since: { [KEY]: 0 } },
  readTimes: [],
  nowMs: NOW,
  ...part,
});
/** `healthy 0-10000`, or `? 0-10000` where nobody knows the state. */
const told = (one: HealthPast): readonly string[] =>
  statesIn(one, 0).map(({ state = '?', fromMs, untilMs }) => `${state} ${fromMs}-${untilMs}`);

describe('the past of a device', () => {
  it('has the state of each time, without holes', () => {
    const events = [change(8_000, 'degraded', 'healthy'), change(3_000, 'healthy', 'degraded')];
    expect(told(past({ events }))).toEqual(['healthy 0-3000', 'degraded 3000-8000', 'healthy 8000-10000']);
  });

  it('is not known before the device was first judged, though it was healthy then', () => {
    const watched = { spans: [span(1_000, NOW)], since: { [KEY]: 2_000 } };
    expect(told(past({ watched, events: [change(3_000, 'healthy', 'degraded')], state: 'degraded' }))).toEqual([
      '? 0-2000',
      'healthy 2000-3000',
      'degraded 3000-10000',
    ]);
  });

  it('is not known of a device that nobody judged yet', () => {
    expect(told(past({ watched: { spans: [span(0, NOW)], since: {} } }))).toEqual(['? 0-10000']);
  });

  it.each(['healthy', 'degraded', 'unhealthy'] as const)('is not known while no agent ran, %s before and after', (state) => {
    const watched = { spans: [span(0, 2_000), span(5_000, 9_900)], since: { [KEY]: 0 } };
    expect(told(past({ watched, state }))).toEqual([`${state} 0-2000`, '? 2000-5000', `${state} 5000-10000`]);
  });

  it('is not known while the verdict was unknown', () => {
    const events = [change(6_000, 'unknown', 'healthy'), change(4_000, 'healthy', 'unknown')];
    expect(told(past({ events }))).toEqual(['healthy 0-4000', '? 4000-6000', 'healthy 6000-10000']);
  });

  it('is not known between two reads that are far apart, nor since the last read', () => {
    const readTimes = [0, 1_000, 2_000, 3_000, 7_000, 8_000];
    expect(told(past({ readTimes }))).toEqual(['healthy 0-3000', '? 3000-7000', 'healthy 7000-10000']);
    expect(told(past({ readTimes: readTimes.slice(0, 4) }))).toEqual(['healthy 0-3000', '? 3000-10000']);
  });

  it('keeps a fault that was seen while the device is not read', () => {
    const readTimes = [0, 1_000, 2_000, 3_000];
    expect(told(past({ readTimes, state: 'unhealthy', events: [change(2_500, 'healthy', 'unhealthy')] }))).toEqual([
      'healthy 0-2500',
      'unhealthy 2500-10000',
    ]);
  });

  it('begins with the first known state where nobody tells when the agent judged', () => {
    expect(told(past({ watched: undefined, device: toldSince(4_000) }))).toEqual(['? 0-4000', 'healthy 4000-10000']);
  });
});
