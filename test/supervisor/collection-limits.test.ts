import { describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import { limitCollection } from '../../src/supervisor/collection-limits.ts';
import { device, listed, report } from '../support/snapshots.ts';

const LIMITS = { devices: 4, entries: 10, processes: 2 };
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const toy = (id: string, readings: number, processes = 0): DeviceReport =>
  report({
    device: device({ id }),
    readings: many(readings, (at) => ({ metric: `m${at}`, value: at })),
    processes: many(processes, (at) => ({ pid: at + 1 })),
  });
const messages = ({ problems }: Collection): string[] => problems.map(({ code, message }) => `${code}: ${message}`);

describe('the limits of a collection', () => {
  it('change nothing within them', () => {
    const collection = listed([toy('a', 5, 2), toy('b', 5)]);
    expect(limitCollection(collection, LIMITS)).toBe(collection);
  });

  it('leave out devices, and then the listing is partial, so that none of them counts as missing', () => {
    const limited = limitCollection(listed(many(7, (at) => toy(`d${at}`, 1))), LIMITS);
    expect(limited.reports.map((one) => one.device.id)).toEqual(['d0', 'd1', 'd2', 'd3']);
    expect(limited.listing).toBe('partial');
    expect(messages(limited)).toEqual(['too-many-entries: 3 devices were left out']);
  });

  it('count a device that has too much as not read, and keep the others', () => {
    const limited = limitCollection(listed([toy('a', 2), toy('huge', 11), toy('b', 8)]), LIMITS);
    expect(limited.reports.map(({ read }) => read?.readings.length)).toEqual([2, undefined, 8]);
    expect(limited.listing).toBe('complete');
    expect(messages(limited)).toEqual(['too-many-entries: 1 devices have too many readings and findings, and count as not read']);
  });

  it('leave out all processes of a device rather than some, because shares of a part would be wrong', () => {
    const limited = limitCollection(listed([toy('a', 1, 3), toy('b', 1, 2)]), LIMITS);
    expect(limited.reports.map(({ read }) => read?.processes?.length)).toEqual([undefined, 2]);
    expect(messages(limited)).toEqual(['too-many-entries: 1 devices have too many processes, which were left out']);
  });

  it('leave out problems', () => {
    const problems = many(12, (at) => ({ code: 'odd', message: `${at}` }));
    const limited = limitCollection({ ...listed([]), problems }, LIMITS);
    expect(limited.problems).toHaveLength(11);
    expect(messages(limited).at(-1)).toBe('too-many-entries: 2 problems were left out');
  });
});
