import { flat } from './alerts.ts';
import { IDLE_BY_NAMESPACE, SHARE_BY_NAMESPACE } from './cost.ts';
import { by, DEVICE, grown, NODE, series, withHolder } from './promql.ts';

interface Recording {
  readonly record: string;
  readonly expr: string;
}

/** Recorded by the rules of a node: `recording.ts`. */
const COUNTED = 'device:device_info_without_parts:max';
const BUSIEST = 'device:device_utilization_ratio:max';
const HELD = 'device:container_device_allocation:max';
const TWINS = 'cluster, family, kind, model';
const TYPE = 'family, kind, model';

/** 0 not known, 1 healthy, 2 degraded, 3 unhealthy. The worst counts where two instances tell one device. */
const LEVEL = 'device:device_health_level:max';
const level = by(
  DEVICE,
  [
    ['unhealthy', 3],
    ['degraded', 2],
    ['healthy', 1],
    ['unknown', 0],
  ]
    .map(([state, value]) => `${series('device_health', `state="${state}"`)} * ${value}`)
    .join(' or '),
);
const ofType = (expr: string): string => `${expr} * on (${DEVICE}) group_left (${TYPE}) ${COUNTED}`;

/** A fault that counts, with what a person needs of its device. `index` names a GPU for people. */
const FAULT = 'device:device_fault:since_timestamp_seconds';
const FACTS = 'family, kind, model, serial, driver, firmware, pci_address';
const withIndex = (expr: string): string =>
  `(${expr} * on (${DEVICE}) group_left (index) topk by (${DEVICE}) (1, ${by(`${DEVICE}, index`, series('device_nvidia_info', 'index!=""'))}) or ${expr})`;
const fault = withIndex(
  `${by(`${DEVICE}, condition, part, reason, severity, remedy`, series('device_health_condition', 'severity!="info",remedy!="none",cause=""'))}
  * on (${DEVICE}) group_left () ${by(DEVICE, series('device_health_since_timestamp_seconds'))}
  * on (${DEVICE}) group_left (${FACTS}) topk by (${DEVICE}) (1, ${by(`${DEVICE}, ${FACTS}`, series('device_info'))})`,
);

/** Holders of a device or of its parts, under the name of both. */
const HIT = 'device:device_fault_holder:max';
const heldBy = (expr: string): string =>
  by(
    `${DEVICE}, holder_namespace, holder_pod`,
    withHolder(
      `(${expr} or label_replace(${expr} * on (cluster, node, device) group_left (parent) ${by(`${DEVICE}, parent`, series('device_info', 'parent!=""'))}, "device", "$1", "parent", "(.+)"))`,
      ['namespace', 'pod'],
    ),
  );
const allocation = series('container_device_allocation', 'device!=""');
const allocationOfHour = `last_over_time(${allocation}[1h])`;
const isFaulty = `and on (${DEVICE}) ${FAULT}`;

/** Twins are devices of one model that do the same: held, and busy for more than half of the time. */
const AT_WORK = `and on (${DEVICE}) ${HELD} and on (${DEVICE}) (${BUSIEST} > 0.5)`;
const MIN_TWINS = 4;

interface Comparison {
  readonly name: string;
  readonly value: string;
  /** Whether the value `V` is worse than the median `M`. */
  readonly worse: (v: string, m: string) => string;
}
const COMPARISONS: readonly Comparison[] = [
  {
    name: 'device_temperature_celsius',
    value: `${ofType(by(DEVICE, series('device_temperature_celsius')))} ${AT_WORK}`,
    worse: (v, m) => `${v} > on (${TWINS}) group_left () (${m} + 10)`,
  },
  {
    name: 'device_clock_hertz',
    value: `${ofType(by(DEVICE, series('device_clock_hertz', 'clock!~"mem.*|video"')))} ${AT_WORK}`,
    worse: (v, m) => `${v} < on (${TWINS}) group_left () (${m} * 0.9)`,
  },
  {
    name: 'device_link_errors',
    value: ofType(
      `sum by (${DEVICE}) (${grown(
        `${DEVICE}, kind, port`,
        `increase(${series('device_errors_total', 'kind=~"symbol|link_error_recovery|link_downed|local_link_integrity|crc"')}[1h])`,
      )})`,
    ),
    worse: (v, m) => `${v} > on (${TWINS}) group_left () (${m} * 10 + 100)`,
  },
];

const comparisons = COMPARISONS.flatMap(({ name, value, worse }): readonly Recording[] => {
  const [own, median] = [`device:${name}:compared`, `twins:${name}:median`];
  return [
    { record: own, expr: value },
    { record: median, expr: `quantile by (${TWINS}) (0.5, ${own}) and count by (${TWINS}) (${own}) >= ${MIN_TWINS}` },
    { record: `device:${name}:outlier`, expr: worse(own, median) },
  ];
});

const TRANSITIONS = (span: string): string => `increase(${series('device_health_transitions_total', 'state="unhealthy"')}[${span}])`;

const recordings: readonly Recording[] = [
  {
    record: 'node:device_agent_heard:timestamp_seconds',
    expr: by(NODE, `timestamp(${series('device_agent_build_info')})`),
  },
  {
    record: 'node:device_agent_snapshots:changes5m',
    expr: by(NODE, `changes(${series('device_agent_snapshot_timestamp_seconds')}[5m])`),
  },
  { record: LEVEL, expr: level },
  { record: 'node:devices_by_level:count', expr: `count_values by (${NODE}, ${TYPE}) ("level", ${ofType(LEVEL)})` },
  {
    record: 'node:devices_held_by_level:count',
    expr: `count_values by (${NODE}, ${TYPE}) ("level", ${ofType(`(${LEVEL} and on (${DEVICE}) ${HELD})`)})`,
  },
  { record: 'node:devices_without_parts:count', expr: `count by (${NODE}, ${TYPE}) (${COUNTED})` },
  { record: FAULT, expr: fault },
  {
    record: HIT,
    expr: `${heldBy(allocation)} ${isFaulty}
      or (${heldBy(allocationOfHour)} ${isFaulty} unless on (${DEVICE}) (${heldBy(allocation)}))`,
  },
  {
    record: 'namespace:devices_held:count',
    expr: `count by (cluster, holder_namespace) (${by(`${DEVICE}, holder_namespace`, HELD)} and on (${DEVICE}) ${COUNTED})`,
  },
  { record: 'namespace:device_held:hours_per_minute', expr: `sum by (cluster, holder_namespace) (${SHARE_BY_NAMESPACE}) / 60` },
  { record: 'namespace:device_idle:hours_per_minute', expr: `sum by (cluster, holder_namespace) (${IDLE_BY_NAMESPACE}) / 60` },
  ...comparisons,
];

/** Over days, so evaluated seldom. */
const repairs: readonly Recording[] = [
  {
    record: 'cluster:device_unhealthy_seconds_per_fault:mean7d',
    expr: `sum by (cluster, ${TYPE}) (avg_over_time(node:device_unhealthy_seconds:rate5m[7d])) * 604800
      / (sum by (cluster, ${TYPE}) (${ofType(grown(DEVICE, TRANSITIONS('7d')))}) > 0.5)`,
  },
  {
    record: 'serial:device_faults:increase7d',
    expr: `sum by (cluster, family, model, serial) (${grown(DEVICE, TRANSITIONS('7d'))}
      * on (${DEVICE}) group_left (family, model, serial) topk by (${DEVICE}) (1, ${by(`${DEVICE}, family, model, serial`, series('device_info', 'serial!=""'))})) > 1.5`,
  },
];

const entry = ({ record, expr }: Recording): object => ({ record, expr: flat(expr) });

/** What only a fleet answers. It needs the rules of `deploy/rules.yaml`. */
export const fleetGroups = [
  { name: 'device-fleet-page', interval: '1m', rules: recordings.map(entry) },
  { name: 'device-fleet-repairs', interval: '15m', rules: repairs.map(entry) },
];
