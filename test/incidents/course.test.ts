import { expect, it } from 'vitest';
import { courseOf, type PresentDevice } from '../../src/incidents/course.ts';
import type { IncidentSummary } from '../../src/incidents/record.ts';
import type { HealthEvent } from '../../src/model/events.ts';

const at = (ms: number): string => new Date(ms).toISOString();
const incident = (ms: number, more: Partial<IncidentSummary> = {}): IncidentSummary => ({
  ...{ id: `at-${ms}`, time: at(ms), device: 'toy/a', states: ['healthy', 'unhealthy'], conditions: ['PortDown/1'], holders: [] },
  ...more,
});
const event = (timeMs: number, more: Partial<HealthEvent> = {}): HealthEvent => ({
  ...{ id: timeMs, timeMs, device: 'toy/a', family: 'toy', transition: 'state', from: 'unhealthy', to: 'healthy' },
  ...{ reason: 'Recovered', message: 'it is well', remedy: 'none', holders: [] },
  ...more,
});
const now = (state: PresentDevice['state'], sinceMs?: number, conditions: readonly string[] = []): PresentDevice => ({
  ...{ state, sinceMs, conditions },
});

it('lasts while its device is not healthy', () => {
  expect(courseOf(incident(1_000), undefined, [], now('unhealthy', 1_000))).toEqual({ is: 'open' });
  expect(courseOf(incident(1_000), undefined, [], now('unknown', 5_000))).toEqual({ is: 'open' });
});

it('ends with the event that says so, and only with one of its own time', () => {
  const events = [event(500), event(3_000, { to: 'degraded' }), event(4_000), event(9_000)];
  expect(courseOf(incident(1_000), undefined, events, now('unhealthy', 10_000))).toEqual({ is: 'ended', endMs: 4_000 });
  expect(courseOf(incident(1_000), incident(3_500), events, now('healthy'))).toEqual({ is: 'ended' });
});

it('ends with the verdict of now where no event is remembered', () => {
  expect(courseOf(incident(1_000), undefined, [], now('healthy', 7_000))).toEqual({ is: 'ended', endMs: 7_000 });
});

it('has no time of its end where nothing tells it', () => {
  expect(courseOf(incident(1_000), undefined, [], now('healthy'))).toEqual({ is: 'ended' });
  expect(courseOf(incident(1_000), undefined, [], now('healthy', 500)), 'since before it began').toEqual({ is: 'ended' });
  expect(courseOf(incident(1_000), incident(5_000), [], now('unhealthy', 5_000))).toEqual({ is: 'ended' });
  expect(courseOf(incident(1_000), undefined, [], undefined), 'the device is not listed').toEqual({ is: 'unknown' });
});

it('went on where the next one found the device not healthy', () => {
  const next = incident(5_000, { states: ['degraded', 'unhealthy'] });
  expect(courseOf(incident(1_000, { states: ['healthy', 'degraded'] }), next, [], now('unhealthy', 5_000))).toEqual({
    is: 'went on',
    next,
  });
});

it('of a container that waits lasts as long as its condition, because the verdict stays', () => {
  const wait = incident(1_000, { states: ['healthy'], conditions: ['Stalled'] });
  expect(courseOf(wait, undefined, [event(500)], now('healthy', 0, ['Stalled']))).toEqual({ is: 'open' });
  const cleared = event(4_000, { transition: 'cleared', condition: 'Stalled' });
  expect(courseOf(wait, undefined, [cleared], now('healthy', 0))).toEqual({ is: 'ended', endMs: 4_000 });
  expect(courseOf(wait, undefined, [event(4_000)], now('healthy', 0))).toEqual({ is: 'ended' });
  expect(courseOf(wait, undefined, [event(4_000)], undefined), 'the device is not listed').toEqual({ is: 'unknown' });
});
