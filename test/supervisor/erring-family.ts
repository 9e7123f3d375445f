import type { Host } from '../../src/host/host.ts';
import type { Probe } from '../../src/probes/family.ts';

const device = { family: 'nvidia', id: 'card', kind: 'card', aliases: [] };

/** Fails in the way that a file names. The file is read in each run. */
function createProbe({ sys }: Pick<Host, 'sys'>): Probe {
  return {
    collect() {
      const way = sys.text('way');
      if (way === 'ends') process.exit(0);
      if (way === 'never') return new Promise(() => {});
      return { reports: [{ device, read: { readings: [], findings: [] } }], problems: [], listing: 'complete' };
    },
  };
}

export const family = { name: 'nvidia', metrics: [], createProbe };
