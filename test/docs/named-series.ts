import { readdirSync, readFileSync } from 'node:fs';
import { goldenPage } from '../support/golden-samples.ts';

/** One series as a page names it. Labels without a value are only named. */
export interface NamedSeries {
  readonly metric: string;
  readonly labels: readonly string[];
  readonly values: readonly (readonly [label: string, value: string])[];
}

/** Labels that a scrape adds. */
const OF_TARGETS = ['node', 'cluster', 'instance', 'job'];
const NAME = '((?:container|device)_[a-z0-9_]+)';

/** All series of the agent that a page names. `{…}` alone after a series means further labels of the same metric. */
export function namedSeries(page: string): NamedSeries[] {
  const metrics = new RegExp(`(?<![\\w:/.])${NAME}(?:\\{([^}]*)\\})?|(?<=\`)\\{([^}]*)\\}(?=\`)`, 'g');
  let latest = '';
  const found: NamedSeries[] = [];
  for (const line of page.split('\n')) {
    for (const [, metric = latest, own, further] of line.matchAll(metrics)) {
      latest = metric;
      found.push({ metric, ...matchers(own ?? further ?? '') });
    }
  }
  return found;
}

function matchers(text: string): Pick<NamedSeries, 'labels' | 'values'> {
  const parts = [...text.matchAll(/(\w+)(?:(=~|!~|!=|=)"([^"]*)")?/g)];
  return {
    labels: parts.map(([, label]) => label as string).filter((label) => !OF_TARGETS.includes(label)),
    values: parts.flatMap(([, label, operator, value]): [string, string][] =>
      operator === '=' ? [[label as string, value as string]] : [],
    ),
  };
}

/** Names of all metrics in docs/metrics.md. */
export const documented: ReadonlySet<string> = new Set(readFileSync('docs/metrics.md', 'utf8').match(/(?<=`)\w+(?=`)/g));

/** Labels of each metric, from the contract that another test compares with the declarations. */
export const contract: ReadonlyMap<string, readonly string[]> = new Map(
  readFileSync('test/metrics/contract.txt', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split(' '))
    .map(([name = '', , labels = '']): [string, string[]] => [name, labels.split(',')]),
);

/** Pairs of label and value that exist on some machine of the golden pages, as `metric label="value"`. */
export function goldenValues(): ReadonlySet<string> {
  const pages = readdirSync('test/probes', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('/expected.txt'));
  const pairs = new Set<string>();
  for (const path of pages) {
    for (const line of goldenPage(`test/probes/${path}`).split('\n')) {
      const [, metric = '', labels = ''] = /^(\w+)\{(.*)\} /.exec(line) ?? [];
      for (const [pair] of labels.matchAll(/\w+="[^"]*"/g)) pairs.add(`${metric} ${pair}`);
    }
  }
  return pairs;
}
