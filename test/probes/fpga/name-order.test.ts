import { describe, expect, it } from 'vitest';
import { byNumbers, byUnits } from '../../../src/probes/fpga/survey.ts';

describe('names of a class directory', () => {
  it.each([
    [['dfl-fme.10', 'dfl-fme.2', 'dfl-fme.0']],
    [['hwmon11', 'hwmon2', 'hwmon1']],
    [['0000:81:00.10', '0000:81:00.2', '0000:08:00.0']],
    [['region1a', 'region1', 'region']],
    [['xmgmt', 'u2', 'u1']],
    // Two spellings of the same number are different names.
    [['port1', 'port01']],
  ])('%j stand in the reverse order of their numbers', (names) => {
    expect(names.toSorted(byNumbers)).toEqual(names.toReversed());
    expect(names.toReversed().toSorted(byNumbers)).toEqual(names.toReversed());
  });

  it('are the same only if equal', () => {
    expect(byNumbers('fpga1', 'fpga1')).toBe(0);
    expect(byUnits('a', 'b')).toBe(-1);
    expect(byUnits('b', 'a')).toBe(1);
  });
});
