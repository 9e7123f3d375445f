import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isInstalled, startPrometheus } from '../support/prometheus.ts';
import { serve } from '../support/serve.ts';

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource: { readonly uid: string };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly targets: readonly { readonly expr: string; readonly datasource: { readonly uid: string } }[];
}
interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
}

const dashboards = readdirSync('dashboards')
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({ name, dashboard: JSON.parse(readFileSync(join('dashboards', name), 'utf8')) as Dashboard }));

/** A query as Grafana would send it with every variable at All. */
const filledIn = (expression: string): string => expression.replaceAll('$__rate_interval', '10s').replaceAll(/\$\{?\w+\}?/g, '.*');

/** Panels that are empty while all is well. */
const EMPTY_WHEN_WELL = ['Errors', 'Problems', 'Failed requests to the kubelet', 'Refused containers'];

describe.each(dashboards)('dashboard $name', ({ dashboard }) => {
  it('has panels with id, description and data source variable, none over another', () => {
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    for (const panel of dashboard.panels) {
      expect(panel.description, panel.title).toBeTruthy();
      if (panel.type !== 'table') expect(panel.fieldConfig?.defaults.unit, `${panel.title} has a unit`).toBeTruthy();
      for (const source of [panel.datasource, ...panel.targets.map(({ datasource }) => datasource)])
        expect(source.uid).toBe(`\${datasource}`);
      expect(panel.gridPos.x + panel.gridPos.w).toBeLessThanOrEqual(24);
    }
    const cells = dashboard.panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, n) => `${x + (n % w)} ${y + Math.floor(n / w)}`),
    );
    expect(new Set(cells).size, 'no cell belongs to two panels').toBe(cells.length);
  });

  it('asks for metrics that exist', () => {
    const documented = new Set(readFileSync('docs/metrics.md', 'utf8').match(/(?<=`)\w+(?=`)/g));
    const asked = dashboard.panels.flatMap(({ targets }) =>
      targets.flatMap(({ expr }) => expr.match(/\b(?:container_)?device_\w+(?=[{[\s)])/g) ?? []),
    );
    const names = (name: string): string[] => [name, name.replace(/^container_/, ''), name.replace(/_(?:bucket|sum|count)$/, '')];
    const unknown = asked.filter((name) => !names(name).some((one) => documented.has(one)));
    expect(unknown).toEqual([]);
  });
});

const installed = isInstalled('prometheus');

describe('on the simulated node', () => {
  it.skipIf(!installed)(
    `every query returns data${installed ? '' : ' (skipped: prometheus is not installed)'}`,
    async () => {
      const demo = await serve(['--refresh.interval=1s', '--sim.gpus=4', '--sim.pods=8', '--sim.pod-change=0s'], 'demo');
      const prometheus = await startPrometheus(new URL(demo.url).host);
      try {
        await expect.poll(() => prometheus.targetHealth(), { timeout: 60_000, interval: 250 }).toBe('up');
        for (const { dashboard } of dashboards) {
          for (const panel of dashboard.panels.filter(({ title }) => !EMPTY_WHEN_WELL.includes(title))) {
            for (const { expr } of panel.targets) {
              await expect
                .poll(() => prometheus.query(filledIn(expr)), { timeout: 30_000, interval: 500, message: `${panel.title}: ${expr}` })
                .not.toHaveLength(0);
            }
          }
        }
      } finally {
        await prometheus.stop();
        expect(await demo.stop('SIGINT')).toBe(0);
      }
    },
    180_000,
  );
});
