import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ruleFiles } from '../../deploy/rules/rule-files.ts';
import { PROMTOOLS, promtool, testRules } from '../support/promtool.ts';

const FILE = 'deploy/rules-fleet.yaml';
const H100 = 'NVIDIA H100';
const at = (node: string, more = ''): string => `{node="${node}",device="g",job="agents",instance="${node}"${more}}`;

/** A device that somebody holds, or nobody. Half of its time is idle where it is held. */
function device(node: string, model: string, { clock = 1.98e9, celsius = 60, errors = 0, held = true } = {}): Record<string, string> {
  const holder = at(node, ',namespace="ml",pod="p",container="c",resource="nvidia.com/gpu"');
  return {
    [`device_info${at(node, `,family="nvidia",kind="gpu",model="${model}",serial="s-${node}",parent=""`)}`]: '1x60',
    [`device_clock_hertz${at(node, ',clock="sm"')}`]: `${clock}x60`,
    // The memory of an idle device has the same clock as ever, and that of one device differs.
    [`device_clock_hertz${at(node, ',clock="memory"')}`]: node === 'n1' ? '1e9x60' : '3e9x60',
    [`device_temperature_celsius${at(node, ',sensor="gpu"')}`]: `${celsius}x60`,
    [`device_utilization_ratio${at(node)}`]: held ? '0.9x60' : '0x60',
    [`device_pcie_replays_total${at(node)}`]: `0+${errors}x60`,
    [`device_healthy${at(node)}`]: '1x60',
    [`device_present${at(node)}`]: '1x60',
    [`device_${held ? '' : 'un'}allocated_seconds_total${at(node)}`]: '0+60x60',
    ...(held
      ? {
          [`container_device_allocation${holder}`]: '1x60',
          [`container_device_allocated_seconds_total${holder}`]: '0+60x60',
          [`container_device_share_seconds_total${holder}`]: '0+60x60',
          [`container_device_idle_seconds_total${holder}`]: '0+30x60',
        }
      : {}),
  };
}

const identity = (node: string): string => at(node, `,family="nvidia",kind="gpu",model="${H100}",serial="s-${node}",parent=""`);

/**
 * Out of service from minute 10 to 40 and from 45 to 50. From 20 to 30 the node is off, so nothing tells of it, and from 52 on its agent is silent:
 * that ends no fault and is none.
 */
const repaired: Readonly<Record<string, string>> = {
  [`device_info${identity('n7')}`]: '1x20 stale _x9 1x21 stale',
  [`device_health${at('n7', ',state="unhealthy"')}`]: '0x9 1x10 stale _x8 1x9 0x4 1x4 0x1 stale',
  [`device_healthy${at('n7')}`]: '1x9 0x10 stale _x8 0x9 1x4 0x4 1x1 stale',
  [`device_health_since_timestamp_seconds${at('n7')}`]: '0x9 600x10 stale _x8 600x9 2400x4 2700x4 3000x1 stale',
  [`device_present${at('n7')}`]: '1x20 stale _x9 1x21 stale',
};

const SERIES: Readonly<Record<string, string>> = {
  ...device('n1', H100),
  ...device('n2', H100),
  ...device('n3', H100, { clock: 1.4e9 }),
  ...device('n4', H100, { celsius: 80 }),
  ...device('n5', H100, { errors: 5 }),
  ...device('n6', H100, { clock: 0.3e9, celsius: 30, held: false }),
  ...repaired,
  // Nobody can tell who holds it.
  [`device_info${identity('n8')}`]: '1x60',
  [`device_healthy${at('n8')}`]: '1x60',
  [`device_present${at('n8')}`]: '1x60',
  // Three are too few for a median.
  ...device('l1', 'L40'),
  ...device('l2', 'L40'),
  ...device('l3', 'L40', { clock: 1e9, celsius: 90, errors: 9 }),
  'container_device_waiting{node="n2",namespace="ml",pod="p",container="c"}': '1x60',
  'container_device_waiting{node="n3",namespace="ml",pod="p",container="c"}': '0x60',
};

type Samples = Readonly<Record<string, number>>;
const of = (model = H100, more = ''): string => `{family="nvidia", kind="gpu", model="${model}"${more}}`;
const one = (node: string, what: string): string =>
  `{node="${node}", device="g", family="nvidia", kind="gpu", model="${H100}", what="${what}"}`;

const ASKED: readonly (readonly [minute: number, expr: string, samples: Samples])[] = [
  [
    59,
    'round(device:device_worse_than_twins:current)',
    { [one('n3', 'clock')]: 1.4e9, [one('n4', 'temperature')]: 80, [one('n5', 'link errors')]: 5 * 59 },
  ],
  [
    59,
    'model:device_compared:median + 0',
    { [of(H100, ', what="clock"')]: 1.98e9, [of(H100, ', what="temperature"')]: 60, [of(H100, ', what="link errors"')]: 0 },
  ],
  [59, 'sum by (node) (node:devices_worse_than_twins:count)', { '{node="n3"}': 1, '{node="n4"}': 1, '{node="n5"}': 1 }],
  [
    35,
    'model:devices:count + 0',
    {
      [of(H100, ', state="held"')]: 5,
      [of(H100, ', state="free"')]: 1,
      [of(H100, ', state="out_of_service"')]: 1,
      [of(H100, ', state="unknown"')]: 1,
      [of('L40', ', state="held"')]: 3,
    },
  ],
  [35, 'count by (node) (device:device_use:max{state="free"})', { '{node="n6"}': 1 }],
  // The silent node is in no state.
  [27, 'sum by (model) (model:devices:count{kind="gpu",model="NVIDIA H100"})', { [`{model="${H100}"}`]: 7 }],
  [59, 'model:devices_waiting:count + 0', { [of()]: 1 }],
  [59, 'round(sum by (model) (namespace:device_share_hours:sum1d), 0.5)', { [`{model="${H100}"}`]: 5, '{model="L40"}': 3 }],
  [
    59,
    'round(namespace:device_idle_share_hours:sum1d{model="L40"}, 0.5)',
    { '{holder_namespace="ml", family="nvidia", model="L40"}': 1.5 },
  ],
  [
    59,
    'round(namespace:device_idle_cost:sum1d, 0.5)',
    { '{holder_namespace="ml", family="nvidia", model="NVIDIA H100"}': 6, '{holder_namespace="ml", family="nvidia", model="L40"}': 3.5 },
  ],
  [27, 'device:device_fault_since_timestamp_seconds:max + 0', { '{node="n7", device="g"}': 600 }],
  [42, 'device:device_fault_since_timestamp_seconds:max', {}],
  [59, 'device:device_fault_since_timestamp_seconds:max', {}],
  [39, 'count_over_time(device:device_repair_seconds:last[1h])', {}],
  [59, 'model:device_repair_seconds:avg30d + 0', { [of()]: (1800 + 300) / 2 }],
  [59, 'serial:device_repairs:count30d + 0', { [of(H100, ', serial="s-n7"')]: 2 }],
];

describe.each(PROMTOOLS)('rules of questions that only a fleet answers, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('give what a fleet with known faults was computed to by hand', () => {
    const test = {
      rule_files: ['deploy/rules.yaml', 'deploy/rules-cost.yaml', FILE].map((file) => resolve(file)),
      evaluation_interval: '1m',
      group_eval_order: ['device-fleet', 'device-cost', 'device-fleet-questions'],
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(SERIES).map(([series, values]) => ({ series, values })),
          promql_expr_test: ASKED.map(([minute, expr, samples]) => ({
            expr,
            eval_time: `${minute}m`,
            exp_samples: Object.entries(samples).map(([labels, value]) => ({ labels, value })),
          })),
        },
      ],
    };
    expect(testRules(program, test)).toContain('SUCCESS');
  });

  it.skipIf(!isThere)('are in a file of their own, which the others do not need', () => {
    expect(readFileSync(FILE, 'utf8')).toBe(ruleFiles()[FILE]);
    expect(promtool(program, ['check', 'rules', FILE])).toContain('SUCCESS');
  });
});
