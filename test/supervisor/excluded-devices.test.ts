import { describe, expect, it } from 'vitest';
import type { Collection } from '../../src/model/collection.ts';
import { withoutExcluded } from '../../src/supervisor/collection-limits.ts';

const report = (id: string, parent?: string) => ({ device: { id, family: 'gpus', kind: 'gpu', ...(parent !== undefined && { parent }) } });
const problem = (device?: string) => ({ code: 'lost', message: 'lost', ...(device !== undefined && { device }) });
const collection = {
  reports: [report('GPU-a'), report('GPU-b'), report('MIG-b0', 'GPU-b'), report('CI-b00', 'MIG-b0')],
  problems: [problem(), problem('GPU-a'), problem('MIG-b0')],
  listing: 'complete',
} as unknown as Collection;

describe('devices that are left out', () => {
  it('go with their parts and the problems of both, and nothing else does', () => {
    const { reports, problems, listing } = withoutExcluded(collection, ['GPU-b']);
    expect(reports.map(({ device }) => device.id)).toEqual(['GPU-a']);
    expect(problems).toEqual([problem(), problem('GPU-a')]);
    expect(listing).toBe('complete');
  });

  it('are none without a pattern', () => {
    for (const patterns of [[], undefined]) expect(withoutExcluded(collection, patterns)).toBe(collection);
  });
});
