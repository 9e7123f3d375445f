import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { cases } from '../deploy/alert-cases.ts';

interface Alert {
  readonly alert: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly runbook_url: string };
}

const alertsIn = (file: string): readonly Alert[] =>
  (parse(readFileSync(file, 'utf8')) as { groups: { rules: Alert[] }[] }).groups
    .flatMap((group) => group.rules)
    .filter(({ alert }) => alert !== undefined);
const isOfAgents = ({ annotations }: Alert): boolean => annotations.runbook_url.includes('/agents.md');
/** In the order of the pages. */
const alerts = ['deploy/rules.yaml', 'deploy/rules-stall.yaml']
  .flatMap(alertsIn)
  .toSorted((a, b) => Number(isOfAgents(a)) - Number(isOfAgents(b)));
const overview = readFileSync('docs/runbooks/README.md', 'utf8');
/** The section of each alert, by its name. */
const sections = new Map(
  ['devices', 'agents']
    .flatMap((name) =>
      readFileSync(`docs/runbooks/${name}.md`, 'utf8')
        .split(/^(?=## \w+$)/m)
        .slice(1),
    )
    .map((section) => [/^## (\w+)/.exec(section)?.[1], section]),
);

/** Names of the conditions in the table of conditions of a page, without the words around them. */
function conditionsOf(page: string): string[] {
  const [, table = ''] = page.split('| Condition | Usual action |\n');
  const rows = table.split('\n\n', 1)[0]?.split('\n') ?? [];
  return rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name as string));
}

/** The reference of all conditions: what all families have, and a page for each family. */
const health = ['docs/health.md', ...readdirSync('docs/health').map((name) => `docs/health/${name}`)]
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

/** Class and severity of each condition, from the tables of the reference. */
const declared = [...health.matchAll(/^\| `[\w*]+\.(\w+)` \| ([\w-]+) \| (\w+) \|/gm)].map(([, name, kind, severity]) => ({
  name,
  fault: `${severity} ${kind}`,
}));

/** The faults that the expression of each alert selects. */
const faultsOf: Readonly<Record<string, RegExp>> = {
  DeviceUnhealthy: /^fatal latched$/,
  DeviceOutOfService: /^(?:fatal (?:self-clearing|in-progress|rate)|degraded self-clearing)$/,
  DeviceDegraded: /^degraded (?:self-clearing|in-progress|latched)$/,
  DeviceErrorsGrow: /^degraded rate$/,
};

describe('runbooks', () => {
  it.each(alerts)('$alert has the sections and its severity', ({ alert, labels }) => {
    const section = sections.get(alert) ?? '';
    expect([...section.matchAll(/^##+ (.*)$/gm)].map(([, title]) => title)).toEqual([
      alert,
      'Diagnosis',
      'What to do',
      'When to ignore it',
    ]);
    expect(section).toContain(`\nSeverity ${labels.severity}, `);
  });

  it('are listed with severity and waiting time', () => {
    const listed = [...overview.matchAll(/^\| \[(\w+)\]\(\w+\.md#(\w+)\) \| (\w+) \| (\w+) \|/gm)].map((match) => match.slice(1));
    expect(listed).toEqual(alerts.map((one) => [one.alert, one.alert.toLowerCase(), one.labels.severity, one.for ?? '0m']));
  });

  it('show the alert that the rules raise', () => {
    const { labels, annotations = {} } = cases.find(({ alert }) => alert === 'DeviceUnhealthy') ?? { labels: {} };
    for (const text of Object.values(annotations)) expect(overview).toContain(text);
    for (const [label, value] of Object.entries(labels)) expect(overview).toContain(`${label}="${value}"`);
  });

  it.each(Object.entries(faultsOf))('%s speaks of conditions that raise it', (alert, faults) => {
    const named = conditionsOf(sections.get(alert) ?? '');
    expect(named.length).toBeGreaterThan(2);
    const raising = (name: string): boolean => declared.some((one) => one.name === name && faults.test(one.fault));
    expect(named.filter((name) => !raising(name))).toEqual([]);
  });

  it('ask for metrics and labels that exist', () => {
    const documented = new Set(readFileSync('docs/metrics.md', 'utf8').match(/(?<=`)\w+(?=`)/g));
    for (const [alert, page] of [...sections, ['README', overview] as const]) {
      const named = page.match(/(?<![\w:])(?:container_)?device_[a-z_]+(?=[\s{[)`;])/g) ?? [];
      expect(
        named.filter((name) => name !== 'device_id' && !documented.has(name)),
        alert,
      ).toEqual([]);
    }
  });

  it('have the commands of each remedy', () => {
    const remedies = [...overview.matchAll(/^\| `([a-z-]+)` \| /gm)].map(([, remedy]) => remedy);
    const used = [...health.matchAll(/^- Remedy: ([\w-]+)$/gm)].map(([, remedy]) => remedy);
    expect([...new Set(used)].filter((remedy) => remedy !== 'none' && !remedies.includes(remedy))).toEqual([]);
  });
});
