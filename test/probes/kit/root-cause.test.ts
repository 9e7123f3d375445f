import { expect, it } from 'vitest';
import { freeze } from '../../../src/incidents/freeze.ts';
import type { DatedFault, RootCauseRule } from '../../../src/probes/kit/root-cause.ts';
import { rootCauses } from '../../../src/probes/kit/root-cause.ts';
import { found, OneDevice, policyFor, spec } from '../../health/one-device.ts';
import { state, verdict } from '../../incidents/scene.ts';

const RULE: RootCauseRule = { sources: ['own', 'own non-fatal'], victims: ['remote'], withinMs: 5_000, from: 'a vendor' };
const fault = (device: string, code: string, atMs: number | undefined, more: Partial<DatedFault> = {}): DatedFault => ({
  ...{ device, code, atMs, isFatal: !code.includes('non-fatal'), isOpen: false },
  ...more,
});
const sources = (...faults: readonly DatedFault[]): readonly string[] =>
  [...rootCauses([RULE], faults)].map(([victim, source]) => `${victim.device} by ${source.device}`);

it('a victim has the fatal source, then the first one, before or after its own line', () => {
  expect(sources(fault('a', 'own', 3), fault('b', 'remote', 1), fault('c', 'own', 2))).toEqual(['b by c']);
  expect(sources(fault('b', 'remote', 5_000), fault('c', 'own', 2))).toEqual(['b by c']);
  expect(sources(fault('b', 'remote', 1, { isFatal: false }), fault('c', 'own non-fatal', 0), fault('a', 'own', 4))).toEqual(['b by a']);
});

it('a fault is no victim of itself, of a fault of another time or of unknown time, or of one that is less severe', () => {
  expect(sources(fault('a', 'own', 0), fault('a', 'remote', 1))).toEqual([]);
  expect(sources(fault('a', 'own', 0), fault('b', 'remote', 5_001))).toEqual([]);
  expect(sources(fault('a', 'own', 5_001), fault('b', 'remote', 0))).toEqual([]);
  expect(sources(fault('a', 'own', undefined), fault('b', 'remote', 0))).toEqual([]);
  expect(sources(fault('a', 'own non-fatal', 0), fault('b', 'remote', 0))).toEqual([]);
  expect(sources(fault('a', 'own', 0), fault('a', 'remote', 1), fault('b', 'own', 1), fault('b', 'remote', 2))).toEqual([]);
});

it('a source that has not ended explains later faults of others, too', () => {
  expect(sources(fault('a', 'own', 0, { isOpen: true }), fault('b', 'remote', 3_600_000))).toEqual(['b by a']);
  expect(sources(fault('a', 'own', 3_600_000, { isOpen: true }), fault('b', 'remote', 0))).toEqual([]);
});

it('the verdict and the record of the incident point to the source, also after a restart', () => {
  const policy = policyFor([spec('Link', { severity: 'degraded' })]);
  const one = new OneDevice(policy);
  one.read(0, found('Link', { causedBy: 'two' }));
  const after = new OneDevice(policy, JSON.parse(JSON.stringify(one.engine.state())));
  const told = after.read(10, found('Link', { causedBy: 'two' }));
  expect(told.conditions).toMatchObject([{ type: 'Link', causedBy: 'two' }]);
  const record = freeze({
    id: 'x',
    place: { node: 'n', agentVersion: '1', host: {} },
    event: {
      ...{
        id: 1,
        timeMs: 0,
        device: 'toy/a',
        family: 'toy',
        transition: 'state',
        to: 'degraded',
        reason: 'Because',
        message: '',
        remedy: 'none',
      },
      holders: [],
    },
    state: state({ verdict: { ...verdict('degraded'), conditions: told.conditions } }),
    holders: [],
    areHoldersKnown: true,
    events: [],
    isWiped: () => false,
  });
  expect(record.after.conditions).toMatchObject([{ type: 'Link', causedBy: 'two' }]);
});
