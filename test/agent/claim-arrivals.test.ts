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
  it('has the family of its driver read from the time at which it was first seen', () => {
    const arrivals = new ClaimArrivals();
    const known = claimed('gpu.example.com', 'a', 'nvidia/GPU-a');
    const states = [known, claimed('gpu.example.com', 'mig')];
    expect(arrivals.look([known], 1)('nvidia')).toBeUndefined();
    expect(arrivals.look(states, 2)('nvidia')).toBe(2);
    expect(arrivals.look(states, 3)('nvidia')).toBe(2);
    expect(arrivals.look(states, 3)('infiniband')).toBeUndefined();
    expect(arrivals.look([...states, claimed('gpu.example.com', 'mig-2')], 4)('nvidia')).toBe(4);
    expect(arrivals.look([known], 5)('nvidia')).toBeUndefined();
    expect(arrivals.look(states, 6)('nvidia'), 'after the claim came back').toBe(6);
  });

  it('has every family read when its driver is new', () => {
    const wanted = new ClaimArrivals().look([claimed('new.example.com', 'a')], 1);
    expect([wanted('nvidia'), wanted('infiniband')]).toEqual([1, 1]);
  });

  it('counts only with a claim, and only without a device', () => {
    const plain: AllocationState = { allocation: allocation({ deviceId: 'x' }), devices: [], unresolved: 'no-device', held: false };
    const cpus = { ...claimed('dra.cpu', 'cpu'), unresolved: undefined } as unknown as AllocationState;
    expect(new ClaimArrivals().look([plain, cpus], 1)('nvidia')).toBeUndefined();
  });
});
