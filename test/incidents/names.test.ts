import { describe, expect, it } from 'vitest';
import { eventsOfHardware } from '../../src/incidents/timeline.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import { changed, T0 } from './scene.ts';

const event = (id: number, device: string, timeMs: number, more: Partial<HealthEvent> = {}): HealthEvent => ({
  ...changed('healthy', 'unhealthy', timeMs),
  id,
  device,
  ...more,
});

describe('the events of hardware', () => {
  const events = [
    event(1, 'toy/a', T0),
    event(2, 'toy/b', T0),
    // The two swap their names.
    event(3, 'toy/a', T0 + 10, { transition: 'renamed', was: 'toy/b' }),
    event(4, 'toy/b', T0 + 10, { transition: 'renamed', was: 'toy/a' }),
    event(5, 'toy/a', T0 + 20),
    event(6, 'toy/b', T0 + 30, { transition: 'replaced' }),
    event(7, 'toy/b', T0 + 30),
  ];
  const idsOf = (key: string, of = events) => eventsOfHardware(of, key).map(({ id }) => id);

  it('are those under all its names', () => {
    expect([idsOf('toy/a'), idsOf('toy/b', events.slice(0, 5))]).toEqual([
      [2, 3, 5],
      [1, 4],
    ]);
  });

  it('begin when other hardware got the name', () => {
    expect(idsOf('toy/b')).toEqual([6, 7]);
  });
});
