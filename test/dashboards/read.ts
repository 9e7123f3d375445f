import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Target {
  readonly expr: string;
  readonly datasource: { readonly uid: string };
}
export interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly datasource: { readonly uid: string };
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string; readonly thresholds?: { readonly steps: readonly { readonly color: string }[] } };
  };
  readonly targets: readonly Target[];
}
export interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly query?: { readonly query: string } }[] };
}

export const dashboards = readdirSync('dashboards')
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({ name, dashboard: JSON.parse(readFileSync(join('dashboards', name), 'utf8')) as Dashboard }));

export const targetsOf = (dashboard: Dashboard): readonly Target[] => dashboard.panels.flatMap(({ targets }) => targets);

/** An expression as Grafana would send it. A variable without a value is at All. */
export function filledIn(expr: string, values: Readonly<Record<string, string>> = {}): string {
  return expr
    .replaceAll('$__rate_interval', '10s')
    .replaceAll('$__range', '10s')
    .replaceAll(/\$\{?([a-z]\w*)\}?/g, (_all, name: string) => values[name] ?? (name === 'prefix' ? '' : '.*'));
}

/** The query by which a board finds the prefix of the holder's labels. */
export function prefixQuery(dashboard: Dashboard): string {
  const text = dashboard.templating.list.find(({ name }) => name === 'prefix')?.query?.query ?? '';
  return /^query_result\((.*)\)$/s.exec(text)?.[1] ?? '';
}
