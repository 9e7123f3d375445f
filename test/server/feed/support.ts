import { Store } from '../../../src/agent/store.ts';
import { systemClock } from '../../../src/host/clock.ts';
import type { Device } from '../../../src/model/device.ts';
import type { ActiveCondition, Verdict } from '../../../src/model/health.ts';
import type { DeviceState, Snapshot } from '../../../src/model/snapshot.ts';
import { claimNames } from '../../../src/probes/nvidia/devices.ts';
import { HealthFeed, type HealthFeedDependencies } from '../../../src/server/feed/health-feed.ts';
import { snapshot as sample, state } from '../../metrics/sample.ts';

export const HEALTHY: Verdict = { state: 'healthy', sinceMs: 0, conditions: [] };

export const broken = (part: Partial<ActiveCondition> = {}): Verdict => ({
  state: 'unhealthy',
  sinceMs: 1_000,
  conditions: [
    {
      type: 'PortDown',
      class: 'self-clearing',
      severity: 'fatal',
      reason: 'Polling',
      message: 'port 1 is down',
      remedy: 'check-cable',
      sinceMs: 1_000,
      ...part,
    },
  ],
});

export const gpu = (part: Partial<Device> = {}, verdict: Verdict = HEALTHY): DeviceState =>
  state(
    { family: 'nvidia', kind: 'gpu', id: 'GPU-aa', aliases: [], uuid: 'GPU-aa', pciAddress: '0000:3b:00.0', minor: 0, ...part },
    { key: `nvidia/${part.id ?? 'GPU-aa'}`, verdict },
  );

export const snapshotOf = (devices: readonly DeviceState[], part: Partial<Snapshot> = {}): Snapshot => ({
  ...sample,
  devices,
  allocations: [],
  ...part,
});

/** A feed with a store of its own. */
export function feedOf(
  devices: readonly DeviceState[] | undefined,
  parts: Partial<HealthFeedDependencies> = {},
): { store: Store; feed: HealthFeed } {
  const store = new Store();
  if (devices !== undefined) store.publish(snapshotOf(devices));
  const names = { pool: 'node-1', claimNames };
  return { store, feed: new HealthFeed({ store, names, clock: systemClock, ...parts }) };
}
