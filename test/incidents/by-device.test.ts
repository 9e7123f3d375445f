import { describe, expect, it } from 'vitest';
import { byDevice } from '../../src/incidents/by-device.ts';
import type { IncidentSummary } from '../../src/incidents/record.ts';

const TRAIN = 'ml/train-0/main';
const INFER = 'web/infer-0/main';

/** `second`: time of the incident. The list of the store has the newest first. */
function incident(second: number, more: Partial<IncidentSummary> = {}): IncidentSummary {
  const time = `2026-11-20T10:00:${String(second).padStart(2, '0')}.000Z`;
  const base = { device: 'nvidia/GPU-1', hardware: 'nvidia#GPU-1', states: ['healthy', 'unhealthy'] as const, conditions: ['Xid/79'] };
  return { id: `i${second}`, time, ...base, holders: [TRAIN], ...more };
}

const counts = (list: readonly IncidentSummary[]): readonly object[] => byDevice(list.toReversed()).map(({ last: _, ...rest }) => rest);

describe('incidents of a device', () => {
  it('count as fatal, as the same condition again, and as a fault that stayed when the holders moved', () => {
    const list = [incident(1), incident(2), incident(3, { holders: [INFER] }), incident(4, { conditions: ['TooHot'], holders: [TRAIN] })];
    expect(byDevice(list.toReversed())).toEqual([
      { device: 'nvidia/GPU-1', incidents: 4, fatal: 4, again: 2, movedHolders: 1, last: '2026-11-20T10:00:04.000Z' },
    ]);
  });

  it('are fatal only where the device became unhealthy, also after another state', () => {
    const list = [
      incident(1, { states: ['unhealthy', 'degraded'] }),
      incident(2, { states: ['healthy', 'unknown'] }),
      incident(3, { states: ['healthy', 'degraded', 'unhealthy'] }),
    ];
    expect(counts(list)).toMatchObject([{ incidents: 3, fatal: 1 }]);
  });

  it('show no moved holders where nobody held the device, and no condition again where none led', () => {
    expect(counts([incident(1, { holders: [] }), incident(2)])).toMatchObject([{ again: 1, movedHolders: 0 }]);
    expect(counts([incident(1), incident(2, { holders: [] })])).toMatchObject([{ again: 1, movedHolders: 0 }]);
    expect(counts([incident(1, { conditions: [] }), incident(2, { conditions: [] })])).toMatchObject([{ again: 0 }]);
  });

  it('belong to the hardware: they follow it to another name, and other hardware under the name has a line of its own', () => {
    const list = [
      incident(1, { device: 'infiniband/mlx5_0', hardware: 'infiniband#A' }),
      incident(2, { device: 'infiniband/mlx5_1', hardware: 'infiniband#A' }),
      incident(3, { device: 'infiniband/mlx5_0', hardware: 'infiniband#B' }),
    ];
    expect(counts(list)).toEqual([
      { device: 'infiniband/mlx5_1', incidents: 2, fatal: 2, again: 1, movedHolders: 0 },
      { device: 'infiniband/mlx5_0', incidents: 1, fatal: 1, again: 0, movedHolders: 0 },
    ]);
  });

  it('of records without the hardware count by name', () => {
    const { hardware: _, ...old } = incident(1);
    expect(counts([old, { ...old, id: 'i2', time: '2026-11-20T10:00:02.000Z' }])).toMatchObject([{ incidents: 2, again: 1 }]);
  });
});
