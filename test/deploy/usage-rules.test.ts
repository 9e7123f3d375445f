import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { costs, priceRule } from '../../deploy/rules/cost.ts';
import { PROMTOOLS, promtool, testRules } from '../support/promtool.ts';

const H100 = 'NVIDIA H100';
const info = (device: string, kind: string, model: string, parent = ''): string =>
  `device_info{node="n1",device="${device}",family="nvidia",kind="${kind}",model="${model}",parent="${parent}",instance="i"}`;
const holder = (pod: string, namespace: string, device: string, label = 'namespace'): string =>
  `{node="n1",${label}="${namespace}",pod="${pod}",container="c",resource="nvidia.com/gpu",device="${device}",instance="i"}`;

/** Seconds of each minute, for half an hour. */
const growing = (perMinute: number): string => `0+${perMinute}x30`;

/** Totals of one container and device: all of each minute allocated, and the given seconds of share and idleness. */
const account = (labels: string, share: number, idle: number): Record<string, string> => ({
  [`container_device_allocated_seconds_total${labels}`]: growing(60),
  [`container_device_share_seconds_total${labels}`]: growing(share),
  [`container_device_idle_seconds_total${labels}`]: growing(idle),
});
const time = (device: string, allocated: number, unhealthy: number): Record<string, string> => ({
  [`device_allocated_seconds_total{node="n1",device="${device}",instance="i"}`]: growing(allocated),
  [`device_unallocated_seconds_total{node="n1",device="${device}",instance="i"}`]: growing(60 - allocated),
  [`device_unhealthy_seconds_total{node="n1",device="${device}",instance="i"}`]: growing(unhealthy),
});

/**
 * `ml` holds the GPU `whole` alone, idle for half of the time. `ml` and `web` share the GPU `shared`, which never works. The GPU `cut` is in
 * MIG mode: `web` holds one instance, which always works, and nobody holds the other one, which is unhealthy for a quarter of the time.
 */
const SERIES: Readonly<Record<string, string>> = {
  [info('whole', 'gpu', H100)]: '1x30',
  [info('shared', 'gpu', H100)]: '1x30',
  [info('cut', 'gpu', H100)]: '1x30',
  [info('mig-1', 'mig', 'MIG 1g', 'cut')]: '1x30',
  [info('mig-2', 'mig', 'MIG 1g', 'cut')]: '1x30',
  ...account(holder('a', 'ml', 'whole'), 60, 30),
  ...account(holder('b', 'ml', 'shared'), 30, 60),
  ...account(holder('c', 'web', 'shared', 'exported_namespace'), 30, 60),
  ...account(holder('d', 'web', 'mig-1'), 60, 0),
  [`container_device_energy_joules_total${holder('a', 'ml', 'whole')}`]: growing(15_360),
  [`container_device_energy_estimated_joules_total${holder('b', 'ml', 'shared')}`]: growing(6_000),
  ...time('whole', 60, 0),
  ...time('shared', 60, 0),
  ...time('cut', 0, 60),
  ...time('mig-1', 60, 0),
  ...time('mig-2', 0, 15),
};

const of = (namespace: string, model: string): string => `{holder_namespace="${namespace}", family="nvidia", model="${model}"}`;
const kinds = (kind: string, model: string): string => `{node="n1", family="nvidia", kind="${kind}", model="${model}"}`;

/** By hand: seconds in a second, so device hours in an hour. */
const EXPECTED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'namespace:device_share_seconds:rate5m': { [of('ml', H100)]: 1.5, [of('web', H100)]: 0.5, [of('web', 'MIG 1g')]: 1 },
  'namespace:device_idle_share_seconds:rate5m': { [of('ml', H100)]: 0.5 + 0.5, [of('web', H100)]: 0.5, [of('web', 'MIG 1g')]: 0 },
  'namespace:device_energy_joules:rate5m': { [of('ml', H100)]: 256 },
  'namespace:device_energy_estimated_joules:rate5m': { [of('ml', H100)]: 100 },
  'node:device_allocated_seconds:rate5m': { [kinds('gpu', H100)]: 2, [kinds('mig', 'MIG 1g')]: 1 },
  'node:device_unallocated_seconds:rate5m': { [kinds('gpu', H100)]: 0, [kinds('mig', 'MIG 1g')]: 1 },
  'node:device_unhealthy_seconds:rate5m': { [kinds('gpu', H100)]: 0, [kinds('mig', 'MIG 1g')]: 0.25 },
  'namespace:device_cost_per_hour:rate5m': { [of('ml', H100)]: 1.5 * 4, [of('web', H100)]: 0.5 * 4, [of('web', 'MIG 1g')]: 2.5 },
  'namespace:device_idle_cost_per_hour:rate5m': { [of('ml', H100)]: 4, [of('web', H100)]: 2, [of('web', 'MIG 1g')]: 0 },
};

const STEP = 15;
const HAND_OVER = 20 * 60;
const END = 40 * 60;

const minutesOf = (from: number, until: number): readonly number[] => Array.from({ length: until - from + 1 }, (_, at) => from + at);

/** A counter that is scraped each minute, at a second of it. The target ends with a stale marker, at its next scrape. */
function scraped(phase: number, from: number, until: number, valueAt: (second: number) => number): string {
  return Array.from({ length: END / STEP + 1 }, (_, at) => {
    const second = at * STEP;
    if ((second - phase) % 60 !== 0 || second < from || second > until + 60) return '_';
    return second > until ? 'stale' : String(valueAt(second));
  }).join(' ');
}

/** Ways in which one pod of the agent follows another. `below`: how far the mean of five minutes may be from the truth, because scrapes come at other seconds. */
const HANDOVERS = [
  { what: 'at once', oldPhase: 0, newPhase: 0, newFrom: HAND_OVER + 1, below: 0.01 },
  { what: 'at once, scraped between minutes', oldPhase: 45, newPhase: 45, newFrom: HAND_OVER + 1, below: 0.01 },
  { what: 'at another second of the minute', oldPhase: 45, newPhase: 15, newFrom: HAND_OVER + 1, below: 0.15 },
  { what: 'both for three minutes', oldPhase: 30, newPhase: 45, newFrom: HAND_OVER - 180, below: 0.1 },
];

/** What promtool says of these answers, at minutes of a history. `files`: text of rule files beside `deploy/rules.yaml`. */
function tested(
  program: string,
  series: Readonly<Record<string, string>>,
  asked: readonly { readonly expr: string; readonly eval_time: string; readonly exp_samples: readonly object[] }[],
  { interval = '1m', files = {} }: { interval?: string; files?: Readonly<Record<string, string>> } = {},
): string {
  const test = {
    rule_files: [resolve('deploy/rules.yaml'), ...Object.keys(files)],
    evaluation_interval: '1m',
    group_eval_order: ['device-fleet', ...(files['cost.yaml'] === undefined ? [] : ['device-cost'])],
    tests: [
      { interval, input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })), promql_expr_test: asked },
    ],
  };
  return testRules(program, test, files);
}

describe.each(PROMTOOLS)('rules of usage and cost, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('give the device hours, the idle time, the energy and the cost of a node that was computed by hand', () => {
    const rules = [priceRule('nvidia', 2.5), priceRule(H100, 4), ...costs];
    const asked = Object.entries(EXPECTED).map(([name, samples]) => ({
      expr: name,
      eval_time: '20m',
      exp_samples: Object.entries(samples).map(([labels, value]) => ({ labels: `${name}${labels}`, value })),
    }));
    const files = { 'cost.yaml': stringify({ groups: [{ name: 'device-cost', interval: '1m', rules }] }) };
    expect(tested(program, SERIES, asked, { files })).toContain('SUCCESS');
  });

  it.skipIf(!isThere).each(HANDOVERS)('lose no time at a hand-over of the agent: $what', ({ oldPhase, newPhase, newFrom, below }) => {
    const device = 'node="n1",device="whole"';
    const old = scraped(oldPhase, 0, HAND_OVER, (second) => second);
    const next = (before: number): string => scraped(newPhase, newFrom, END, (second) => second - before);
    const series = {
      [info('whole', 'gpu', H100)]: `1x${END / STEP}`,
      // The agent keeps its totals. A counter of the hardware can begin again, as after a reboot.
      [`device_allocated_seconds_total{${device},instance="old",job="j"}`]: old,
      [`device_allocated_seconds_total{${device},instance="new",job="j"}`]: next(0),
      [`device_allocated_seconds_total{${device},instance="old",job="second"}`]: old,
      [`device_received_bytes_total{${device},port="1",instance="old"}`]: old,
      [`device_received_bytes_total{${device},port="1",instance="new"}`]: next(
        newFrom < HAND_OVER ? 0 : HAND_OVER - ((HAND_OVER - oldPhase) % 60),
      ),
      [`device_received_bytes_total{${device},port="2",instance="new"}`]: scraped(newPhase, newFrom, END, () => 0),
    };
    const sums = ['node:device_allocated_seconds:rate5m', 'node:device_received_bytes:rate5m'];
    const asked = sums.flatMap((name) =>
      minutesOf(10, END / 60).flatMap((minute) => [
        { expr: `count(${name})`, eval_time: `${minute}m`, exp_samples: [{ labels: '{}', value: 1 }] },
        { expr: `${name} < ${1 - below} or ${name} > ${1 + below}`, eval_time: `${minute}m`, exp_samples: [] },
      ]),
    );
    expect(tested(program, series, asked, { interval: `${STEP}s` })).toContain('SUCCESS');
  });

  it.skipIf(!isThere)('lose no time when one pod follows another, whose totals stay for three minutes', () => {
    const held = (pod: string): string => `container_device_share_seconds_total${holder(pod, 'ml', 'whole')}`;
    const series = {
      [info('whole', 'gpu', H100)]: `1x${END / STEP}`,
      [held('a')]: scraped(15, 0, HAND_OVER + 180, (second) => Math.min(second, HAND_OVER)),
      [held('b')]: scraped(15, HAND_OVER, END, (second) => second - HAND_OVER),
    };
    const name = 'namespace:device_share_seconds:rate5m';
    const mean = `avg_over_time(${name}[20m])`;
    const asked = [
      ...minutesOf(10, END / 60).map((minute) => ({ expr: `${name} < 0.79 or ${name} > 1.2`, eval_time: `${minute}m`, exp_samples: [] })),
      { expr: `round(${mean}, 0.02)`, eval_time: '35m', exp_samples: [{ labels: of('ml', H100), value: 1 }] },
    ];
    expect(tested(program, series, asked, { interval: `${STEP}s` })).toContain('SUCCESS');
  });

  it.skipIf(!isThere)('of the file with an example price are accepted', () => {
    expect(promtool(program, ['check', 'rules', 'deploy/rules-cost.yaml'])).toContain('SUCCESS: 3 rules found');
  });
});
