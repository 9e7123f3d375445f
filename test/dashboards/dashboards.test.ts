import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { dashboardFiles } from '../../dashboards/source/dashboard-files.ts';
import { type Dashboard, dashboards, targetsOf } from './read.ts';

const listed = readFileSync('docs/metrics.md', 'utf8').match(/(?<=`)\w+(?=`)/g);
const recorded = ['deploy/rules.yaml', 'deploy/rules-cost.yaml', 'deploy/rules-stall.yaml'].flatMap(
  (path) => readFileSync(path, 'utf8').match(/(?<=record: )\S+/g) ?? [],
);

/** Names of metrics and recorded series in an expression. */
const namesIn = (expr: string): readonly string[] => expr.match(/\b(?:(?:container_)?device_\w+|\w+:\w+:\w+)(?=[{[\s)])/g) ?? [];

describe('dashboards', () => {
  it('are what their sources make (else: npm run generate)', () => {
    for (const [path, text] of Object.entries(dashboardFiles())) {
      expect(JSON.parse(readFileSync(path, 'utf8')) as Dashboard, path).toEqual(JSON.parse(text));
    }
    expect(Object.keys(dashboardFiles()).toSorted()).toEqual(
      readdirSync('dashboards')
        .filter((name) => name.endsWith('.json'))
        .map((name) => join('dashboards', name)),
    );
  });
});

describe.each(dashboards)('dashboard $name', ({ dashboard }) => {
  it('has panels with id, description, unit and data source variable, none over another', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    for (const panel of dashboard.panels) {
      expect(panel.description, panel.title).toBeTruthy();
      expect(panel.fieldConfig?.defaults.unit, `${panel.title} has a unit`).toBeTruthy();
      for (const source of [panel.datasource, ...panel.targets.map(({ datasource }) => datasource)])
        expect(source.uid).toBe(`\${datasource}`);
      expect(panel.gridPos.x + panel.gridPos.w).toBeLessThanOrEqual(24);
    }
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size, 'no cell belongs to two panels').toBe(cells.length);
  });

  it('has no stat that is green without a value', () => {
    for (const { type, title, fieldConfig } of dashboard.panels)
      if (type === 'stat') expect(fieldConfig?.defaults.thresholds?.steps[0]?.color, title).toMatch(/^(?:blue|text)$/);
  });

  it('has the variables that its expressions use', () => {
    const known = new Set(dashboard.templating.list.map(({ name }) => name));
    for (const { expr } of targetsOf(dashboard)) {
      for (const [, name = ''] of expr.matchAll(/\$\{?([a-z]\w*)\}?/g)) expect(known, expr).toContain(name);
    }
  });

  it('asks for metrics that exist', () => {
    const known = new Set([...(listed ?? []), ...(recorded ?? [])]);
    const names = (name: string): string[] => [name, name.replace(/^container_/, ''), name.replace(/_(?:bucket|sum|count)$/, '')];
    const asked = targetsOf(dashboard).flatMap(({ expr }) => namesIn(expr));
    expect(asked.length).toBeGreaterThan(5);
    expect([...new Set(asked)].filter((name) => !names(name).some((one) => known.has(one)))).toEqual([]);
  });

  it('does not select by the name of a resource alone, and takes no pod from a series of a device', () => {
    for (const { expr } of targetsOf(dashboard)) {
      expect(expr).not.toMatch(/\{\s*resource\s*=~?[^,}]*\}/);
      for (const [, matchers = ''] of expr.matchAll(/(?<![\w:])device_\w+\{([^}]*)\}/g))
        expect(matchers).not.toMatch(/\b(?:pod|namespace|container)\b/);
    }
  });
});
