import { describe, expect, it } from 'vitest';
import { boardOf } from '../../src/board/board.ts';
import { DemoNarrator } from '../../src/cli/demo/narrator.ts';
import type { HealthState } from '../../src/model/health.ts';
import { snapshot, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

interface Now {
  readonly states: Readonly<Record<string, HealthState>>;
  readonly pod?: string;
}

/** What the terminal shows after each snapshot. */
function told(story: DemoNarrator, { states, pod = 'train-0' }: Now): readonly string[] {
  const devices = Object.entries(states).map(([id, health]) =>
    state(device({ id }), {
      verdict: { state: health, sinceMs: 1, conditions: [] },
      holders: [allocation({ deviceId: id, pod })],
    }),
  );
  const board = boardOf(
    { ...snapshot, allocations: [], families: [], podResources: podResources([], { answeredAtMs: TAKEN_AT_MS }), devices },
    { nowMs: TAKEN_AT_MS },
  );
  return story.lines(board).map((line) => line.replace(/^\d\d:\d\d:\d\d {2}/, ''));
}

describe('what a demo tells in the terminal', () => {
  it('is one sentence for each device that fails, and one when all is well again', () => {
    const story = new DemoNarrator();
    expect(told(story, { states: { a: 'healthy', b: 'healthy' } })).toEqual([]);
    expect(told(story, { states: { a: 'unhealthy', b: 'healthy' } })).toEqual(['a is unhealthy, ml/train-0 is hit']);
    expect(told(story, { states: { a: 'unhealthy', b: 'degraded' } })).toEqual(['b is degraded, ml/train-0 is hit']);
    expect(told(story, { states: { a: 'unhealthy', b: 'healthy' } })).toEqual([]);
    expect(told(story, { states: { a: 'healthy', b: 'healthy' } })).toEqual(['All 2 devices are healthy']);
    expect(told(story, { states: { a: 'healthy', b: 'healthy' } })).toEqual([]);
  });

  it('does not repeat a fault because another pod holds the device', () => {
    const story = new DemoNarrator();
    told(story, { states: { a: 'unhealthy' } });
    expect(told(story, { states: { a: 'unhealthy' }, pod: 'train-1' })).toEqual([]);
  });

  it('fits a terminal', () => {
    const [line = ''] = told(new DemoNarrator(), { states: { a: 'unhealthy' }, pod: 'x'.repeat(200) });
    expect(line.length).toBeLessThanOrEqual(110);
    expect(line.endsWith('…')).toBe(true);
  });
});
