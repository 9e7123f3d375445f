import type { HealthEvent } from '../../src/model/events.ts';
import type { HealthState, Verdict } from '../../src/model/health.ts';
import { Readings } from '../../src/model/readings.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

export const T0 = Date.parse('2026-11-23T20:00:00.000Z');

export const state = (part: Partial<DeviceState> & { readonly id?: string } = {}): DeviceState => {
  const { id = 'a', ...rest } = part;
  return {
    key: `toy/${id}`,
    device: device({ id }),
    readings: Readings.of([]),
    processes: [],
    verdict: verdict('healthy'),
    holders: [],
    readAtMs: T0,
    stale: false,
    ...rest,
  };
};

export const verdict = (to: HealthState, sinceMs = T0): Verdict => ({
  state: to,
  sinceMs,
  conditions:
    to === 'healthy'
      ? []
      : [
          {
            type: 'TooHot',
            class: 'self-clearing',
            severity: 'fatal',
            reason: 'Limit',
            message: 'core is 99 C',
            remedy: 'reset',
            sinceMs,
          },
        ],
});

export const snapshot = (devices: readonly DeviceState[], takenAtMs = T0): Snapshot => ({
  sequence: 1,
  takenAtMs,
  devices,
  allocations: [],
  containerReadings: [],
  families: [],
  podResources: podResources([]),
});

let lastId = 0;
export const changed = (from: HealthState, to: HealthState, timeMs = T0, id = 'a'): HealthEvent => {
  lastId += 1;
  return {
    id: lastId,
    timeMs,
    device: `toy/${id}`,
    family: 'toy',
    transition: 'state',
    from,
    to,
    ...(to === 'healthy' ? {} : { condition: 'TooHot' }),
    reason: 'Limit',
    message: 'core is 99 C',
    remedy: to === 'healthy' ? 'none' : 'reset',
    holders: [],
  };
};

export const held = (pod: string) => allocation({ deviceId: 'a', pod });
