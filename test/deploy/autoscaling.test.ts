import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PROMTOOLS, testRules } from '../support/promtool.ts';

interface Block {
  readonly rules?: readonly { readonly seriesQuery: string; readonly metricsQuery: string }[];
  readonly spec?: { readonly triggers?: readonly { readonly metadata: { readonly query: string } }[] };
}
const blocks = [...readFileSync('docs/autoscaling.md', 'utf8').matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(
  ([, text]) => parse(text as string) as Block,
);
const rule = blocks.flatMap(({ rules = [] }) => rules)[0];
const keda = blocks.flatMap(({ spec }) => spec?.triggers ?? [])[0]?.metadata.query;

const active = (pod: string, device: string, more = ''): string =>
  `container_device_nvidia_activity_ratio{namespace="serving",pod="${pod}",container="main",device="${device}",resource="r",unit="sm",node="n"${more}}`;

/** `llm-0` holds two GPUs, `llm-1` one. The GPU of `other-0` is that of another deployment. */
const SERIES = {
  [active('llm-0', 'GPU-a')]: '0.9x10',
  [active('llm-0', 'GPU-b')]: '0.5x10',
  [active('llm-1', 'GPU-c')]: '0.2x10',
  [active('other-0', 'GPU-d')]: '1x10',
  [active('llm-0', 'GPU-a').replace('unit="sm"', 'unit="tensor"')]: '0.1x10',
};

/** What prometheus-adapter asks for the pods of an autoscaler: it fills labels and names of its template in. */
const adapterQuery = (rule?.metricsQuery ?? '')
  .replace('<<.GroupBy>>', 'pod')
  .replace('<<.LabelMatchers>>', 'namespace="serving",pod=~"llm-0|llm-1"');

describe.each(PROMTOOLS)('docs/autoscaling.md, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('has queries that give each pod the mean of its GPUs, and a deployment the sum of its pods', () => {
    const asked = (expr: string | undefined, samples: Readonly<Record<string, number>>): object => ({
      expr,
      eval_time: '5m',
      exp_samples: Object.entries(samples).map(([labels, value]) => ({ labels, value })),
    });
    const test = {
      tests: [
        {
          interval: '30s',
          input_series: Object.entries(SERIES).map(([series, values]) => ({ series, values })),
          promql_expr_test: [
            asked(adapterQuery, { '{pod="llm-0"}': 0.7, '{pod="llm-1"}': 0.2 }),
            asked(keda, { '{}': 0.7 + 0.2 }),
            asked(`count(${rule?.seriesQuery})`, { '{}': 4 }),
          ],
        },
      ],
    };
    expect(testRules(program, test)).toContain('SUCCESS');
  });
});
