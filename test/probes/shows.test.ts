import { describe, expect, it } from 'vitest';
import { loadFamilies } from '../../src/config/sections.ts';
import { familyLoaders } from '../../src/probes/families.ts';

const families = await loadFamilies(familyLoaders);
/** A kind has at most one entry more than fits for each that a device may not tell. */
const MOST = 5;

describe.each(families.filter(({ shows }) => shows !== undefined))(
  'what people see first of $name',
  ({ kinds = [], metrics, shows = {} }) => {
    it.each(Object.entries(shows))('is of metrics that the family declares, for %s', (kind, shown) => {
      expect(kinds).toContain(kind);
      expect(shown.length).toBeLessThanOrEqual(MOST);
      const declared = metrics.map(({ name }) => name);
      for (const one of shown) if (typeof one !== 'string') expect(declared).toContain(one.metric);
    });

    it('is said of each kind', () => expect(Object.keys(shows).sort()).toEqual([...kinds].sort()));
  },
);
