import { describe, expect, it } from 'vitest';
import { ExpectedTracker, type FamilyInput, knownDevices, withExpected } from '../../src/agent/known-devices.ts';
import { nodeProblem } from '../../src/health/journal/node-problem.ts';
import type { Listing } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { ExpectedDevices } from '../../src/model/expected.ts';
import { device, familyState, listed, lookAt, report } from '../support/snapshots.ts';

const toys = (count: number): readonly Device[] => Array.from({ length: count }, (_, n) => device({ id: `t${n}` }));

/** The readings of one family, one after the other. */
class Family {
  readonly #keeper = new ExpectedTracker();
  #known: ReturnType<typeof knownDevices> = new Map();
  #ms = 0;

  look(input: Partial<FamilyInput>, wanted = 2): ExpectedDevices | undefined {
    this.#ms += 1_000;
    const families = [{ state: familyState('toy'), ...input }];
    this.#known = knownDevices(this.#known, families, 3_600_000, { nowMs: this.#ms, monotonicMs: this.#ms });
    return this.#keeper.look({ toy: wanted }, families, this.#known.values(), new Map([['toy', ['vf']]]))[0];
  }

  read(devices: readonly Device[], listing: Listing = 'complete', wanted = 2): ExpectedDevices | undefined {
    return this.look(
      {
        latest: lookAt(
          listed(
            devices.map((one) => report({ device: one })),
            { listing },
          ),
          this.#ms,
        ),
      },
      wanted,
    );
  }
}

const enough = { family: 'toy', expected: 2, present: 2 };
const one = { family: 'toy', expected: 2, present: 1 };
const unknown = { family: 'toy', expected: 2 };

describe('the expected number of devices', () => {
  it('is compared with what a complete reading found', () => {
    const family = new Family();
    expect(family.read(toys(2))).toEqual(enough);
    expect(family.read(toys(1)), 'a device is missing').toEqual(one);
    expect(family.read(toys(3))).toEqual({ ...enough, present: 3 });
  });

  it('does not count parts of devices', () => {
    const parts = [device({ id: 'p', parent: 't0' }), device({ id: 'vf', kind: 'vf' })];
    expect(new Family().read([...toys(1), ...parts])).toEqual(one);
  });

  it('is no claim before the first reading', () => {
    const { succeeded: _, ...state } = familyState('toy');
    expect(new Family().look({ state })).toEqual(unknown);
  });

  it('is missed by a family of which the machine shows no trace, so that its probe never starts', () => {
    expect(new Family().look({})).toEqual({ ...unknown, present: 0 });
    expect(new Family().read([], 'absent')).toEqual({ ...unknown, present: 0 });
  });

  it('is not compared with a family that is turned off', () => {
    expect(new ExpectedTracker().look({ other: 1 }, [{ state: familyState('toy') }], [])).toEqual([{ family: 'other', expected: 1 }]);
  });

  it('is reached by a partial reading that shows enough, and never missed by one', () => {
    expect(new Family().read(toys(2), 'partial')).toEqual(enough);
    expect(new Family().read(toys(1), 'partial')).toEqual(unknown);
  });

  it('stays missed while nothing can be read', () => {
    const family = new Family();
    family.read(toys(1));
    expect(family.read([], 'partial')).toEqual(one);
    const latest = lookAt(listed([report({ device: device({ id: 't0' }) })]), 0);
    expect(family.look({ state: { ...familyState('toy'), succeeded: false }, latest, isBlind: true })).toEqual(one);
    expect(family.read(toys(2))).toEqual(enough);
  });

  it('is a problem of the family only while there are too few', () => {
    const state = familyState('toy');
    expect(withExpected(state, [one]).problems).toEqual([{ code: 'expected-missing', message: '1 of 2 expected toy devices is present' }]);
    for (const fine of [enough, unknown, { ...one, family: 'other' }]) expect(withExpected(state, [fine])).toBe(state);
  });
});

describe('the exit code of health', () => {
  const healthy = { key: 'toy/t0', health: { state: 'healthy', conditions: [] } } as const;
  const lost = { key: 'toy/t1', health: { state: 'unknown', conditions: [] } } as const;

  it.each([
    ['enough devices', [healthy], [enough], 0, '1 of 1 devices healthy'],
    ['too few devices', [healthy], [one], 1, '1 of 2 expected toy devices is present'],
    ['too few, which outranks unknown devices', [lost], [one], 1, '1 of 2 expected toy devices is present'],
    ['no device at all', [], [{ ...unknown, present: 0 }], 1, '0 of 2 expected toy devices are present'],
    ['a family that cannot be read', [healthy], [unknown], 2, '2 toy devices are expected, and it is not known how many are present'],
    ['no expectation and no device', [], [], 2, 'no device is known'],
  ] as const)('with %s', (_, devices, expected, exitCode, message) => {
    expect(nodeProblem({ devices, families: [{ family: 'toy', complete: true }], expected })).toEqual({ exitCode, message });
  });
});
