import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { usageView } from '../../src/server/api/usage.ts';
import { containerEntry, HOUR_MS, START_MS, usageReport } from '../accounting/sample.ts';
import { manifestOf, render, whyNoHelm } from '../support/chart.ts';
import { isInstalled } from '../support/installed.ts';
import { PROMTOOLS, promtool, testRules } from '../support/promtool.ts';
import { unless } from '../support/skipped.ts';
import { contract } from './named-series.ts';

const text = readFileSync('docs/backends.md', 'utf8');
const recipe = /```yaml\n(receivers:.*?)```/s.exec(text)?.[1] ?? '';

interface Collector {
  readonly processors: Readonly<Record<string, unknown>>;
  readonly service: { readonly pipelines: { readonly metrics: { readonly processors: readonly string[] } } };
}

/** Conventions that ask for a component of their own, or that the recipe leaves to the reader. */
const LEFT_OUT = ['hw.temperature.limit', 'hw.fan.speed_ratio', 'hw.fan.speed', 'hw.voltage', 'hw.gpu.io'];

describe('the recipe for a Collector', () => {
  it('uses the processors that it configures', () => {
    const collector = parse(recipe) as Collector;
    expect(Object.keys(collector.processors)).toEqual(collector.service.pipelines.metrics.processors);
  });

  it('renames to what the table says', () => {
    const renamed = [...recipe.matchAll(/set\(name, "(hw\.[\w.]+)"\)/g)].map(([, name]) => name as string);
    const rows = text.split('\n').filter((line) => /^\| .*\| `hw\./.test(line));
    const mapped = rows.flatMap((row) => [...(row.split('|')[2] ?? '').matchAll(/`(hw\.[\w.]+)`/g)].map(([, name]) => name as string));
    const expected = mapped.filter((name) => !LEFT_OUT.includes(name) && name !== 'hw.id');
    expect([...new Set(renamed)].toSorted()).toEqual([...new Set(expected)].toSorted());
  });

  it('reads labels that the series have', () => {
    const statements = recipe.split('\n').filter((line) => line.includes('metric.name == "device_'));
    expect(statements.length).toBeGreaterThan(5);
    for (const line of statements) {
      const [, metric = ''] = /metric\.name == "(\w+)"/.exec(line) ?? [];
      for (const [, label] of line.matchAll(/attributes\["(engine|sensor|state|kind|xid|port)"\]/g))
        expect(contract.get(metric), line).toContain(label);
    }
  });

  it('copies a label only where it is there', () => {
    const copies = [...recipe.matchAll(/set\(attributes\["[\w.]+"\], attributes\["(\w+)"\]\)(.*)/g)];
    expect(copies.length).toBeGreaterThan(5);
    for (const [statement, label, rest] of copies) expect(rest, statement).toContain(`attributes["${label}"] != nil`);
  });
});

const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, block]) => block as string);
const blockWith = (words: string): string => blocks.find((block) => block.includes(words)) ?? '';

describe('the blocks of the backends', () => {
  const hasJq = isInstalled('jq');
  it.skipIf(!hasJq)(`make the table of FOCUS of what has a price${unless(hasJq, 'jq is not installed')}`, () => {
    const [, program = ''] = /^device-agent usage .*? \| (jq [\s\S]*?)^```$/m.exec(text) ?? [];
    const untilMs = START_MS + 4 * HOUR_MS;
    const span = { sinceMs: START_MS, untilMs, by: 'pod' as const, prices: { toy: 2 }, currency: 'EUR' };
    const free = containerEntry(3, { pod: 'free', device: 'wire/a' });
    const report = { ...usageReport([containerEntry(3), free], span), ledger: { damagedLines: 0, newerFiles: 0 } };
    const table = execFileSync('sh', ['-c', program], { input: JSON.stringify(usageView(report)), encoding: 'utf8' });
    const [head, ...rows] = table.trimEnd().split('\n');
    expect(head).toMatch(/^"BilledCost","BillingCurrency",/);
    expect(rows).toEqual(['6,"EUR","2026-11-23T12:00:00.000Z","2026-11-23T16:00:00.000Z",3,"Hours","ml/train-0","Compute"']);
  });

  it('name series that exist', () => {
    const names = [...text.matchAll(/\b(?:container_)?device_[a-z_]+\b/g)].map(([name]) => name);
    const known = names.filter((name) => /_(total|bytes|celsius|watts|ratio|allocation|health|healthy|info)$/.test(name));
    expect(known.length).toBeGreaterThan(10);
    for (const name of known.filter((one) => !text.includes(`:${one}`))) expect(contract.has(name), name).toBe(true);
  });

  const reason = whyNoHelm();
  it.skipIf(reason !== undefined)(`have values that the chart takes${unless(reason === undefined, reason ?? '')}`, () => {
    const gitOps = blocks.flatMap((block) => parseAllDocuments(block).map((document) => document.toJS() as GitOps | null));
    const ofArgo = gitOps.find((one) => one?.kind === 'Application')?.spec?.source?.helm?.valuesObject;
    const ofFlux = gitOps.find((one) => one?.kind === 'HelmRelease')?.spec?.values;
    expect(ofArgo).toEqual(ofFlux);
    const directory = mkdtempSync(join(tmpdir(), 'backends-'));
    try {
      const all = [blockWith('podMonitor:'), blockWith('podAnnotations:'), stringify(ofArgo)];
      const files = all.map((values, index) => {
        const path = join(directory, `${index}.yaml`);
        writeFileSync(path, values);
        return `--values=${path}`;
      });
      const manifests = render(...files);
      expect(manifestOf(manifests, 'PodMonitor')).toBeDefined();
      const agent = manifestOf(manifests, 'DaemonSet').spec as Pods;
      expect(agent.template.spec.containers.map(({ image }) => image)).toContain('REGISTRY/device-agent:0.1.0');
      const [check] = Object.entries(agent.template.metadata.annotations).filter(([name]) => name.startsWith('ad.datadoghq.com/'));
      // The annotation must name the container, or nothing is scraped.
      expect(agent.template.spec.containers.map(({ name }) => `ad.datadoghq.com/${name}.checks`)).toContain(check?.[0]);
      expect(JSON.parse(check?.[1] ?? '')).toMatchObject({ openmetrics: { instances: [{ namespace: 'device' }] } });
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});

interface GitOps {
  readonly kind?: string;
  readonly spec?: { readonly values?: object; readonly source?: { readonly helm?: { readonly valuesObject?: object } } };
}

interface Pods {
  readonly template: {
    readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
    readonly spec: { readonly containers: readonly { readonly name: string; readonly image: string }[] };
  };
}

describe.each(PROMTOOLS)('docs for Prometheus, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('join device time with a label of pods', () => {
    const held = (pod: string, container: string): string =>
      `container_device_share_seconds_total{namespace="ml",pod="${pod}",container="${container}",device="GPU-${pod}${container}",node="n"}`;
    const test = {
      rule_files: ['teams.yaml'],
      tests: [
        {
          interval: '30s',
          input_series: [
            { series: held('a', 'x'), values: '0+30x20' },
            { series: held('a', 'y'), values: '0+30x20' },
            { series: held('b', 'x'), values: '0+15x20' },
            { series: held('stranger', 'x'), values: '0+30x20' },
            { series: 'kube_pod_labels{namespace="ml",pod="a",label_team="vision",instance="1"}', values: '1x20' },
            { series: 'kube_pod_labels{namespace="ml",pod="a",label_team="vision",instance="2"}', values: '1x20' },
            { series: 'kube_pod_labels{namespace="ml",pod="b",instance="1"}', values: '1x20' },
          ],
          promql_expr_test: [
            {
              expr: 'team:device_share_seconds:rate5m',
              eval_time: '10m',
              exp_samples: [
                { labels: 'team:device_share_seconds:rate5m{label_team="vision"}', value: 2 },
                { labels: 'team:device_share_seconds:rate5m', value: 0.5 },
              ],
            },
          ],
        },
      ],
    };
    expect(testRules(program, test, { 'teams.yaml': blockWith('groups:') })).toContain('SUCCESS');
  });

  it.skipIf(!isThere)('have a configuration for the demo that Prometheus takes', () => {
    const block = /^```yaml\n(scrape_configs:[\s\S]*?)^```$/m.exec(readFileSync('docs/prometheus.md', 'utf8'))?.[1] ?? '';
    expect(block.trimEnd().split('\n')).toHaveLength(5);
    const directory = mkdtempSync(join(tmpdir(), 'backends-'));
    try {
      writeFileSync(join(directory, 'prometheus.yml'), block);
      expect(promtool(program, ['check', 'config', 'prometheus.yml'], { cwd: directory })).toContain('SUCCESS');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
