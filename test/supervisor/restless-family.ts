import type { Probe } from '../../src/probes/family.ts';

/** Finds nothing, and ends with an error when it is closed. */
const probe: Probe = {
  collect: () => ({ reports: [], problems: [], listing: 'complete' }),
  close: () => {
    throw new Error('cannot close');
  },
};

export const family = { name: 'infiniband', metrics: [], createProbe: (): Probe => probe };
