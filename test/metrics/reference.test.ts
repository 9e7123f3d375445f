import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type FamilyReference, renderConditions, renderMetrics, renderProblems } from '../../scripts/reference/families.ts';
import { referencePages } from '../../scripts/reference/pages.ts';
import { loadFamilies } from '../../src/config/sections.ts';
import { unitOf } from '../../src/metrics/page/units.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { families } from './sample.ts';

const pages = await referencePages(await loadFamilies(familyLoaders));

describe('reference pages', () => {
  it.each(Object.keys(pages))('%s is what the declarations say (else: npm run generate)', (path) => {
    expect(readFileSync(path, 'utf8')).toBe(pages[path]);
  });

  it('are the only pages of docs/health', () => {
    const written = readdirSync('docs/health').map((name) => `docs/health/${name}`);
    expect(written.filter((path) => pages[path] === undefined)).toEqual([]);
  });

  const toys = families.map((family) => ({ summary: `All <${family.name}> devices.`, ...family }));

  it('tell each metric with type, unit, labels, source and whether it has a twin', async () => {
    const page = await renderMetrics(toys);
    expect(page).toContain('### `device_errors_total`\n\nErrors that the hardware counted, by kind. (counter, *twin*)');
    expect(page).toContain('| toy | `kind` | toy/errors |\n| wire | `port`, `kind` | wire/errors |');
    expect(page).toContain('(gauge, celsius, *twin*)');
    expect(page).toContain('| `device_toy_crossings_total` | counter |  | `kind` | Crossings with');
    expect(page).toContain('| `container_device_received_bytes_total` | counter |');
    expect(page).toContain('All &lt;toy> devices.');
  });

  it('tell conditions and problems of the families that have some', () => {
    const condition = {
      type: 'TooWarm',
      class: 'rate',
      severity: 'degraded',
      reasons: ['OverLimit'],
      meaning: 'It is warm.',
      remedy: 'check-cooling',
      source: 'toy manual',
      forMs: 90_000,
      threshold: { growth: 3, windowMs: 3_600_000 },
    } as const;
    const [everyFamily, ...judged] = toys.map((family) => ({ ...family, conditions: family.name === 'toy' ? [condition] : [] }));
    const rendered = renderConditions(
      { ...everyFamily, name: 'Every family' } as FamilyReference,
      [everyFamily, ...judged] as FamilyReference[],
      '',
      () => '',
    );
    expect(Object.keys(rendered)).toEqual(['docs/health.md', 'docs/health/toy.md']);
    expect(rendered['docs/health/toy.md']).toContain('- Severity degraded, class rate, for 1m30s, recovery 0s, growth above 3 per 1h');
    expect(rendered['docs/health.md']).toContain('| [toy](health/toy.md) | 1 | All &lt;toy> devices. |');
    const declared = renderConditions(
      { ...everyFamily, name: 'Every family' } as FamilyReference,
      ['acme', 'bolt'].map((name) => ({
        ...(everyFamily as FamilyReference),
        name,
        declared: {},
        conditions: [condition, { ...condition, type: `Only${name}` }],
      })),
      '',
      () => '',
    );
    expect(declared['docs/health.md']).toContain('| [acme](health/declared.md#acme) | 2 |');
    const titles = [...(declared['docs/health/declared.md'] ?? '').matchAll(/^##+ .*$/gm)].map(([title]) => title);
    expect(titles).toEqual(['## acme', '### Onlyacme', '## bolt', '### Onlybolt', '## Several families', '### TooWarm']);
    const twice = renderProblems([...toys, { ...(toys[0] as FamilyReference), name: 'second' }]);
    expect(twice.match(/driver-missing/g)).toHaveLength(1);
    expect(twice).toContain('Load the toy driver. | `toy`, `second` |');
    expect(renderProblems(toys)).toContain('| `driver-missing` | The driver is not loaded. | Load the toy driver. |');
  });

  it('know the unit that a name ends in', () => {
    const names = ['device_link_speed_bytes_per_second', 'device_errors_total', 'device_energy_joules_total', 'process_open_fds'];
    expect(names.map(unitOf)).toEqual(['bytes_per_second', undefined, 'joules', undefined]);
  });
});
