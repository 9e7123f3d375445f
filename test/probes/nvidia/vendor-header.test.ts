import { describe, expect, it } from 'vitest';
import { noCompiler } from '../../support/compiled-library.ts';
import { pythonPackage } from '../../support/python-package.ts';
import { unless } from '../../support/skipped.ts';
import { codeEntries, layoutEntries, numberEntries } from './vendor/entries.ts';
import { compareWithHeader, type Entry, headerBelow } from './vendor/header.ts';

// The header of the vendor, of three versions of its package: a program in C prints its sizes, offsets and constants.

const HEADERS = [
  { name: 'nvidia-nvml-dev-cu11', version: '11.8.86', driver: '520.61.05', atLeast: 285 },
  { name: 'nvidia-nvml-dev-cu12', version: '12.9.79', driver: '575.57.08', atLeast: 380 },
  { name: 'nvidia-nvml-dev', version: '13.4.92', driver: '615.36', atLeast: 400 },
].map((each) => ({ ...each, ...pythonPackage(each.name, each.version) }));

const entriesOf = (driver: string): readonly Entry[] => [...layoutEntries(), ...numberEntries(driver), ...codeEntries()];

for (const { name, version, driver, atLeast, folder, missing } of HEADERS) {
  const why = missing ?? noCompiler;
  describe.skipIf(why !== undefined)(`nvml.h of ${name} ${version}${unless(why === undefined, why ?? '')}`, () => {
    const header = folder === undefined ? '' : headerBelow(folder);

    it('has the sizes, offsets, field ids and codes of the agent', () => {
      const { different, unknown, compared } = compareWithHeader(header, entriesOf(driver));
      expect(different).toEqual([]);
      // A header that knows nothing would agree with everything. Older ones lack what came later; the newest has all names.
      expect(compared).toBeGreaterThanOrEqual(atLeast);
      if (version === HEADERS.at(-1)?.version) expect(unknown).toEqual([]);
    });

    it('finds a wrong offset', () => {
      const wrong = layoutEntries().map((entry) => (entry.what === 'FIELD.value' ? { ...entry, ours: entry.ours + 4 } : entry));
      expect(compareWithHeader(header, wrong).different).toEqual([
        'FIELD.value: 36, and in the header offsetof(nvmlFieldValue_t, value) is 32',
      ]);
    });

    it('finds a wrong field id', () => {
      const wrong = numberEntries(driver).map((entry) => (entry.what === 'energyJoules' ? { ...entry, ours: entry.ours + 1 } : entry));
      expect(compareWithHeader(header, wrong).different).toEqual([
        'energyJoules: 84, and in the header NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION is 83',
      ]);
    });
  });
}
