import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { defined } from '../../src/model/defined.ts';
import { PROMTOOLS, promtool } from '../support/promtool.ts';
import { type AlertCase, cases, told } from './alert-cases.ts';

type Annotations = Readonly<Record<string, string>>;

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const RULES = resolve('deploy/rules.yaml');
const rulesIn = (file: string): readonly Rule[] =>
  (parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const rules = rulesIn(RULES);
const alerts = rules.filter(({ alert }) => alert !== undefined);
const stallAlerts = rulesIn('deploy/rules-stall.yaml').filter(({ alert }) => alert !== undefined);

describe('rules', () => {
  it('ask for metrics that exist', () => {
    const documented = new Set(readFileSync('docs/metrics.md', 'utf8').match(/(?<=`)\w+(?=`)/g));
    const named = rules.flatMap(({ expr }) => expr.match(/(?<![:\w])(?:container_)?device_[a-z_]+(?=[\s{[)])/g) ?? []);
    expect(named.length).toBeGreaterThan(30);
    expect([...new Set(named)].filter((name) => !documented.has(name))).toEqual([]);
  });

  it('say with each alert what to do and where to read more', () => {
    for (const { alert, labels, annotations = {} } of [...alerts, ...stallAlerts]) {
      expect(labels?.severity, alert).toMatch(/^(?:critical|warning|info)$/);
      for (const name of ['summary', 'description', 'remedy']) expect(annotations[name], `${alert}: ${name}`).toBeTruthy();
      const [, page, section] =
        /\{\{ else \}\}http:\/\/device-agent\.device-agent\.svc:9835\{\{ end \}\}\/(docs\/runbooks\/\w+\.md)\{\{.*\}\}#(\w+)$/.exec(
          annotations.runbook_url ?? '',
        ) ?? [];
      expect(section).toBe(alert?.toLowerCase());
      expect(readFileSync(page ?? '', 'utf8')).toContain(`\n## ${alert}\n`);
    }
  });

  it('have a runbook for each alert and no other', () => {
    const pages = ['devices', 'agents'].map((name) => readFileSync(`docs/runbooks/${name}.md`, 'utf8')).join('');
    const names = [...pages.matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
    expect(names.filter((name) => !stallAlerts.some(({ alert }) => alert === name))).toEqual(alerts.map(({ alert }) => alert));
    expect(names).toEqual(expect.arrayContaining(stallAlerts.map(({ alert }) => alert)));
  });

  it('have a history for each alert', () => {
    expect([...new Set(cases.map(({ alert }) => alert))]).toEqual(alerts.map(({ alert }) => alert));
  });

  it.for(PROMTOOLS)('are accepted by $program$skipped', ({ program, isThere }, { skip }) => {
    skip(!isThere);
    expect(promtool(program, ['check', 'rules', RULES])).toContain(`SUCCESS: ${rules.length} rules found`);
  });
});

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-alerts-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** The agent of the node tells where its page is, and since when a condition holds. */
function alsoTold({ cluster, node, device, condition, part }: AlertCase['labels']): Readonly<Record<string, string>> {
  if (node === undefined) return {};
  const of = defined({ cluster, node });
  return {
    [told('device_agent_web_info', { url: PAGE }, of)]: '1x20000',
    ...(condition === undefined
      ? {}
      : { [told('device_health_condition_since_timestamp_seconds', defined({ device, condition, part }), of)]: '1900000000x20000' }),
  };
}
const PAGE = 'https://n1.devices.example';

/** promtool compares all annotations, so those that the case does not name are taken from the rule where they have no template. */
function testFile({ alert, series, every = '1m', quietAt, firesAt, endedAt, labels }: AlertCase, annotations: Annotations): object {
  const at = (minute: number, expected: readonly object[]): object => ({ eval_time: `${minute}m`, alertname: alert, exp_alerts: expected });
  return {
    rule_files: [RULES],
    evaluation_interval: every,
    tests: [
      {
        interval: '1m',
        input_series: Object.entries({ ...series, ...alsoTold(labels) }).map(([name, values]) => ({ series: name, values })),
        alert_rule_test: [at(quietAt, []), at(firesAt, [{ exp_labels: labels, exp_annotations: annotations }]), at(endedAt, [])],
      },
    ],
  };
}

describe.each(PROMTOOLS)('each alert is silent, fires and ends, $program$skipped', ({ program, isThere }) => {
  const firingOf = (file: string): string => promtool(program, ['test', 'rules', file]);
  // promtool evaluates a week of samples for some, which is slow on a busy machine.
  it.skipIf(!isThere).each(cases)('$alert', (one) => {
    const file = join(directory, `${one.alert}.yaml`);
    const write = (annotations: Annotations): void => writeFileSync(file, JSON.stringify(testFile(one, annotations)));
    write({});
    // The first run fails and prints the annotations, from which the second run takes those that the case does not name.
    const got = Object.fromEntries(
      [...firingOf(file).matchAll(/(description|holder|record_url|remedy|runbook_url|since|summary)="((?:[^"\\]|\\.)*)"/g)].map(
        ([, name, text]) => [name as string, JSON.parse(`"${text}"`) as string],
      ),
    );
    write({ ...got, ...one.annotations });
    expect(firingOf(file)).toContain('SUCCESS');
    for (const [name, text] of Object.entries(got)) {
      expect(text, `${one.alert}: ${name}`).not.toMatch(/<no value>|\{\{|^\s|\s{2}|%!/);
      expect(text).toMatch(/[\w.]/);
      if (name.endsWith('_url')) expect(text.startsWith(PAGE), `${one.alert}: ${text}`).toBe(one.labels.node !== undefined);
    }
  });
});
