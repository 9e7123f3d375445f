import { describe, expect, it } from 'vitest';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import type { Device } from '../../src/model/device.ts';
import { device, found, OneDevice, policyFor, spec, types } from './one-device.ts';

const policy = policyFor([
  spec('Errors', { class: 'rate', threshold: { growth: 10, windowMs: 3_600_000 } }),
  spec('Xid', { class: 'latched', outOfBand: true, recoveryMs: 10_000 }),
  spec('Down', { forMs: 30_000 }),
]);
const card = (facts: Partial<Device>): Device => ({ ...device(), ...facts });
const BEFORE = card({ pciAddress: '0000:10:00.0', uuid: 'guid-a' });

/** The device found under the name from now on, with or without a restart of the agent. */
const followedBy = (one: OneDevice, next: Device): OneDevice =>
  new OneDevice(policy, JSON.parse(JSON.stringify(one.engine.state())) as HealthMemory, next);

describe.each([
  ['another card', card({ pciAddress: '0000:20:00.0', uuid: 'guid-b' })],
  ['a card in another slot that tells no id of its own', card({ pciAddress: '0000:20:00.0' })],
  ['another card in the same slot', card({ pciAddress: '0000:10:00.0', uuid: 'guid-b' })],
])('%s under the name of one that was known', (_, next) => {
  it('is not judged by the counters of the other', () => {
    const one = new OneDevice(policy, undefined, BEFORE);
    one.read(0, found('Errors', { count: 2 }));
    const other = followedBy(one, next);
    expect(types(other.read(10, found('Errors', { count: 200 })))).toEqual([]);
    expect(types(other.read(20, found('Errors', { count: 211 }))), 'from here on it counts').toEqual(['Errors']);
  });

  it('has none of its conditions, which end', () => {
    const one = new OneDevice(policy, undefined, BEFORE);
    one.read(0, found('Xid', { instance: '79' }), found('Down'));
    const other = followedBy(one, next);
    expect(other.read(10, found('Down')).state).toBe('healthy');
    expect(other.story).toEqual(['cleared Xid/79', 'replaced', 'unhealthy>healthy']);
    expect(other.events[0]?.message).toBe(
      "it was withdrawn 10 s after it began, because the name now belongs to another device; its last message was 'Xid at 42'",
    );
    expect(types(other.read(39, found('Down'))), 'holds since the other was seen').toEqual([]);
    expect(types(other.read(40, found('Down')))).toEqual(['Down']);
  });
});

describe.each([
  ['that tells less of itself', card({})],
  ['that tells more of itself', { ...BEFORE, serial: 'S1' }],
])('the same card %s', (_, next) => {
  it('keeps its state', () => {
    const one = new OneDevice(policy, undefined, BEFORE);
    one.read(0, found('Errors', { count: 2 }), found('Xid', { instance: '79' }));
    const same = followedBy(one, next);
    expect(types(same.read(10, found('Errors', { count: 13 })))).toEqual(['Xid/79', 'Errors']);
  });
});
