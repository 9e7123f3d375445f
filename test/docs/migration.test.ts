import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { PROMTOOLS, promtool } from '../support/promtool.ts';
import { contract, documented, goldenValues, namedSeries } from './named-series.ts';

const PAGES = [
  ['docs/migration.md', ''],
  ['docs/prometheus.md', '## Kubernetes AI conformance\n'],
  ['docs/backends.md', ''],
] as const;
/** Words of the page that look like metrics. */
const OTHERS = ['device_id', 'container_name'];
/** Values that each node has of its own. */
const NOT_IN_GOLDEN_PAGES = ['device', 'device_id', 'namespace', 'pod', 'container', 'resource', 'family', 'port'];

describe.each(PAGES)('%s %s', (path, from) => {
  const page = readFileSync(path, 'utf8');
  const series = namedSeries(page.slice(page.indexOf(from))).filter(({ metric }) => !OTHERS.includes(metric) && !metric.endsWith('_'));

  it('names metrics that exist', () => {
    expect(series.length).toBeGreaterThan(10);
    expect(series.map(({ metric }) => metric).filter((name) => !documented.has(name))).toEqual([]);
  });

  it('names labels that these metrics have', () => {
    const wrong = series.flatMap(({ metric, labels }) =>
      labels.filter((label) => contract.get(metric)?.includes(label) !== true).map((label) => `${metric}{${label}}`),
    );
    expect(wrong).toEqual([]);
  });

  it('names values of labels that some machine has', () => {
    const golden = goldenValues();
    const hardware = series.map((one) => ({ ...one, metric: one.metric.replace(/^container_/, '') }));
    const wrong = hardware.flatMap(({ metric, values }) =>
      values
        .filter(([label]) => !NOT_IN_GOLDEN_PAGES.includes(label))
        .map(([label, value]) => `${metric} ${label}="${value}"`)
        .filter((pair) => !golden.has(pair)),
    );
    expect(wrong).toEqual([]);
  });
});

describe.each(PROMTOOLS)('PromQL of the pages, $program$skipped', ({ program, isThere }) => {
  const pages = readdirSync('docs', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.md'));
  const blocks = (page: string, language: string): string[] =>
    [...page.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, text]) => text as string);
  const check = (content: string): string => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-docs-'));
    try {
      writeFileSync(join(directory, 'rules.yaml'), content);
      return promtool(program, ['check', 'rules', join(directory, 'rules.yaml')]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  };

  it.skipIf(!isThere).each(pages.filter((path) => readFileSync(`docs/${path}`, 'utf8').includes('```promql')))(
    'docs/%s is accepted',
    (path) => {
      const lines = blocks(readFileSync(`docs/${path}`, 'utf8'), 'promql').flatMap((block) => block.trim().split('\n'));
      const rules = lines.map((line, index) => ({ record: `line:${index}`, expr: line.replace(/\s+#.*$/, '') }));
      expect(check(stringify({ groups: [{ name: 'page', rules }] }))).toContain('SUCCESS');
    },
  );

  it.skipIf(!isThere)('rules of docs/migration.md are accepted', () => {
    const [rules = ''] = blocks(readFileSync('docs/migration.md', 'utf8'), 'yaml').filter((text) => text.startsWith('groups:'));
    expect(check(rules)).toContain('SUCCESS');
  });
});
