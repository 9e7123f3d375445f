import { describe, expect, it } from 'vitest';
import { nodeProblem } from '../../src/health/journal/node-problem.ts';
import { type FamilyReading, familyReading, familyReadingsIn } from '../../src/model/family-reading.ts';
import type { HealthState } from '../../src/model/health.ts';
import { type DeviceAnswer, isKnownWell, NODE_CONDITIONS, type NodeView, nodeAnswer } from '../../src/model/known-well.ts';
import { familyState } from '../support/snapshots.ts';

const device = (state: HealthState, more: Partial<DeviceAnswer> = {}): DeviceAnswer => ({ key: 'gpu/a', health: { state }, ...more });
const READ: FamilyReading = { family: 'gpu', complete: true };
const UNREAD: FamilyReading = { family: 'gpu', complete: false, problem: 'driver-not-loaded' };
const LOST: FamilyReading = { ...READ, unreturned: ['b'] };
const OTHER: FamilyReading = { family: 'nic', complete: true };

const answers = (view: Partial<NodeView<DeviceAnswer>>): readonly string[] =>
  NODE_CONDITIONS.map((type) => {
    const { status, reason } = nodeAnswer(type, { devices: [], families: [READ], expected: [], ...view });
    return `${status} ${reason}`;
  });

describe('what may be called well', () => {
  it.each([
    ['healthy and all read', [device('healthy')], [READ, OTHER], ['False NoFatalCondition', 'False AllRead', 'False AllPresent']],
    ['degraded', [device('degraded')], [READ], ['False NoFatalCondition', 'False AllRead', 'False AllPresent']],
    ['unhealthy', [device('unhealthy')], [READ], ['True FatalCondition', 'False AllRead', 'False AllPresent']],
    [
      'healthy, of a family that was read in part',
      [device('healthy')],
      [UNREAD],
      ['Unknown FamiliesNotRead', 'True FamiliesNotRead', 'Unknown FamiliesNotRead'],
    ],
    [
      'healthy, while another family was not read',
      [device('healthy')],
      [READ, { ...OTHER, complete: false }],
      ['Unknown FamiliesNotRead', 'True FamiliesNotRead', 'Unknown FamiliesNotRead'],
    ],
    ['none, of a family that was not read', [], [UNREAD], ['Unknown FamiliesNotRead', 'True FamiliesNotRead', 'Unknown FamiliesNotRead']],
    ['none', [], [READ], ['Unknown NoDeviceKnown', 'Unknown NoDeviceKnown', 'Unknown NoDeviceKnown']],
    ['healthy, beside one that did not return', [device('healthy')], [LOST], ['True NotReturned', 'False AllRead', 'True DevicesAbsent']],
    [
      'none, beside one that cannot have returned yet',
      [],
      [{ ...UNREAD, unreturned: ['b'] }],
      ['True NotReturned', 'True FamiliesNotRead', 'Unknown FamiliesNotRead'],
    ],
    [
      'healthy, of an agent that tells no families',
      [device('healthy')],
      undefined,
      ['Unknown FamiliesNotRead', 'True FamiliesNotRead', 'Unknown FamiliesNotRead'],
    ],
    [
      'unhealthy, of an agent that tells no families',
      [device('unhealthy')],
      undefined,
      ['True FatalCondition', 'True FamiliesNotRead', 'Unknown FamiliesNotRead'],
    ],
    ['stale', [device('unknown', { stale: true })], [READ], ['Unknown DevicesNotRead', 'True DevicesNotRead', 'Unknown DevicesNotRead']],
    [
      'missing',
      [device('unhealthy', { missingSince: '2026-03-01T12:00:00Z' })],
      [READ],
      ['True FatalCondition', 'False AllRead', 'True DevicesAbsent'],
    ],
  ] as const)('with a device that is %s', (_, devices, families, expected) => {
    expect(answers({ devices, families })).toEqual(expected);
    const judged = devices.map((one) => ({ ...one, health: { ...one.health, conditions: [] } }));
    const { exitCode } = nodeProblem({ devices: judged, families, expected: [] });
    expect(exitCode === 0).toBe(expected[0].startsWith('False'));
  });

  it('is nothing while the agent does not work; what it knew to be ill stays ill', () => {
    const [well, ill] = [[device('healthy')], [device('unhealthy')]];
    expect(answers({ devices: well, fault: 'It hangs.' })).toEqual(['Unknown AgentFault', 'True AgentFault', 'Unknown AgentFault']);
    expect(answers({ devices: ill, fault: 'It hangs.' })).toEqual(['True FatalCondition', 'True AgentFault', 'Unknown AgentFault']);
  });

  it('is a device only when its family was read completely and it is listed as healthy', () => {
    expect([READ, UNREAD, OTHER].map((one) => isKnownWell(device('healthy'), [one]))).toEqual([true, false, false]);
    expect(isKnownWell(device('healthy'), undefined)).toBe(false);
    expect((['degraded', 'unhealthy', 'unknown'] as const).map((state) => isKnownWell(device(state), [READ]))).toEqual([
      true,
      false,
      false,
    ]);
    expect(isKnownWell(device('healthy', { missingSince: '2026-03-01T12:00:00Z' }), [READ])).toBe(false);
  });
});

describe('the reading of a family', () => {
  it('names the problem only while no complete read has ended', () => {
    const problems = [
      { code: 'expected-missing', message: '' },
      { code: 'no-library', message: '' },
    ];
    expect(familyReading({ ...familyState('gpu'), problems })).toEqual(READ);
    const { readCompletely: _, ...unread } = familyState('gpu');
    expect(familyReading({ ...unread, problems, unreturned: ['b'] })).toEqual({
      family: 'gpu',
      complete: false,
      problem: 'no-library',
      unreturned: ['b'],
    });
  });

  it('is taken from an answer only when all of it is such a reading', () => {
    expect(familyReadingsIn({ families: [READ, LOST] })).toEqual([READ, LOST]);
    for (const families of [undefined, {}, [null], [{ family: 'gpu' }], [{ ...READ, unreturned: [1] }], [{ ...READ, problem: 2 }]])
      expect(familyReadingsIn({ families })).toBeUndefined();
  });
});
