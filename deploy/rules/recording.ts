import { flat } from './alerts.ts';
import { BOARD_POWER, BUSY, by, DEVICE, IDENTITY_OF_DEVICE, NODE, series, withHolderNamespace } from './promql.ts';

interface Recording {
  readonly record: string;
  readonly expr: string;
}

const IDENTITY = 'family, kind, model';

/** A rule for each node, and its sum over all nodes for boards of a whole fleet. */
function summed(name: string, operation: string, expr: string): readonly Recording[] {
  return [
    { record: `node:${name}:${operation}`, expr },
    { record: `cluster:${name}:${operation}`, expr: `sum without (node) (node:${name}:${operation})` },
  ];
}

/**
 * What most of the other rules need of each device is recorded first, so that it is computed once a minute and not by each of them. A
 * group evaluates its rules in order.
 */
const PRESENT = 'device:device_info:max';
const BUSIEST = 'device:device_utilization_ratio:max';
const HELD = 'device:container_device_allocation:max';

const withIdentity = (expr: string): string => `${expr} * on (${DEVICE}) group_left (${IDENTITY}) ${PRESENT}`;

/** Rules that make the panels of a fleet as cheap as those of a node. Names are `level:metric:operation`. */
export const recordings: readonly Recording[] = [
  { record: PRESENT, expr: IDENTITY_OF_DEVICE },
  { record: BUSIEST, expr: BUSY },
  {
    record: HELD,
    expr: by(`${DEVICE}, holder_namespace, resource`, withHolderNamespace(series('container_device_allocation', 'device!=""'))),
  },
  ...summed(
    'devices',
    'count',
    `count by (${NODE}, ${IDENTITY}, state) (${withIdentity(by(`${DEVICE}, state`, `${series('device_health')} == 1`))})`,
  ),
  ...summed('devices_allocated', 'count', `count by (${NODE}, ${IDENTITY}) (${withIdentity(by(DEVICE, HELD))})`),
  ...summed(
    'devices_idle_allocated',
    'count',
    `count by (${NODE}, ${IDENTITY}) (${withIdentity(`(${BUSIEST} < 0.01 and on (${DEVICE}) ${HELD})`)})`,
  ),
  ...summed('device_power_watts', 'sum', `sum by (${NODE}, ${IDENTITY}) (${withIdentity(BOARD_POWER)})`),
  ...summed(
    'device_received_bytes',
    'rate5m',
    `sum by (${NODE}, ${IDENTITY}) (${withIdentity(`sum by (${DEVICE}) (rate(${series('device_received_bytes_total')}[5m]))`)})`,
  ),
  ...summed(
    'device_transmitted_bytes',
    'rate5m',
    `sum by (${NODE}, ${IDENTITY}) (${withIdentity(`sum by (${DEVICE}) (rate(${series('device_transmitted_bytes_total')}[5m]))`)})`,
  ),
  ...summed(
    'device_conditions',
    'count',
    `count by (${NODE}, condition, reason, severity) (${by(`${DEVICE}, condition, part, reason, severity`, series('device_health_condition'))})`,
  ),
  ...summed(
    'device_health_transitions',
    'increase1h',
    `sum by (${NODE}, state) (${by(`${DEVICE}, state`, `increase(${series('device_health_transitions_total')}[1h])`)}) > 0`,
  ),
  { record: 'node:device_utilization_ratio:avg', expr: `avg by (${NODE}, ${IDENTITY}) (${withIdentity(BUSIEST)})` },
  { record: 'cluster:device_utilization_ratio:avg', expr: `avg by (cluster, ${IDENTITY}) (${withIdentity(BUSIEST)})` },
  { record: 'namespace:devices_allocated:count', expr: `count by (cluster, holder_namespace, resource) (${HELD})` },
  {
    record: 'namespace:device_utilization_ratio:avg',
    expr: `
      avg by (cluster, holder_namespace) (
        ${by(`${DEVICE}, holder_namespace`, HELD)}
        * on (${DEVICE}) group_left () ${BUSIEST}
      )`,
  },
  {
    record: 'cluster:device_agents:count',
    expr: `count by (cluster, version) (${by(`${NODE}, instance, version`, series('device_agent_build_info'))})`,
  },
];

export const recordingEntry = ({ record, expr }: Recording): object => ({ record, expr: flat(expr) });
