import { describe, expect, it } from 'vitest';
import { ClaimArrivals } from '../../src/agent/claim-arrivals.ts';
import type { AllocationState } from '../../src/model/snapshot.ts';
import { allocation } from '../support/snapshots.ts';

function claimed(driver: string, device: string, ...devices: readonly string[]): AllocationState {
  const claim = { name: `c-${device}`, namespace: 'ml', driver, pool: 'node', device };
  const one = allocation({ resource: driver, deviceId: `node/${device}`, claim });
  return { allocation: one, devices, held: false, ...(devices.length === 0 ? { unresolved: 'no-device' } : {}) };
}

describe('a claim for a device that no probe knows', () => {
  it('has the family of its driver read once', () => {
    const arrivals = new ClaimArrivals();
    const known = claimed('gpu.example.com', 'a', 'nvidia/GPU-a');
    expect(arrivals.families([known])).toEqual(new Set());
    const states = [known, claimed('gpu.example.com', 'mig')];
    expect(arrivals.families(states)).toEqual(new Set(['nvidia']));
    expect(arrivals.families(states)).toEqual(new Set());
    expect(arrivals.families([known])).toEqual(new Set());
    expect(arrivals.families(states), 'after the claim came back').toEqual(new Set(['nvidia']));
  });

  it('has every family read when its driver is new', () => {
    expect(new ClaimArrivals().families([claimed('new.example.com', 'a')])).toBe('all');
  });

  it('counts only with a claim, and only without a device', () => {
    const plain: AllocationState = { allocation: allocation({ deviceId: 'x' }), devices: [], unresolved: 'no-device', held: false };
    const cpus = { ...claimed('dra.cpu', 'cpu'), unresolved: undefined } as unknown as AllocationState;
    expect(new ClaimArrivals().families([plain, cpus])).toEqual(new Set());
  });
});
