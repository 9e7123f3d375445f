import { flat } from './alerts.ts';
import { IDLE_BY_NAMESPACE, SHARE_BY_NAMESPACE } from './cost.ts';
import { agentsBy, BOARD_POWER, BUSY, by, DEVICE, grown, IDENTITY_OF_DEVICE, NODE, rate, SELECTOR, series, withHolder } from './promql.ts';

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
export const PRESENT = 'device:device_info:max';
export const BUSIEST = 'device:device_utilization_ratio:max';
export const HELD = 'device:container_device_allocation:max';

/** The devices that a sum over a fleet counts: a GPU in MIG mode and a physical function are the sum of their parts. */
export const COUNTED = 'device:device_info_without_parts:max';

const withIdentity = (expr: string): string => `${expr} * on (${DEVICE}) group_left (${IDENTITY}) ${PRESENT}`;

/**
 * How fast a total of a container grows. Each holder has a series of its own, which begins at 0 and stays for three minutes after its end: the samples
 * themselves lose least of it. So this is a plain `rate`.
 */
const rateOfHolder = (name: string): string => `rate(${series(`container_device_${name}_total`)}[5m])`;

/** Its sum by the namespace of the holder and the model of the device. */
const byNamespace = (expr: string): string =>
  `sum by (cluster, holder_namespace, family, model) (${grown(`${DEVICE}, holder_namespace`, withHolder(expr, ['namespace']))} * on (${DEVICE}) group_left (family, model) ${PRESENT})`;

/** How devices spend their time: the number of devices that are in the state, as a mean of five minutes. */
const timeOfDevices = (state: string): readonly Recording[] =>
  summed(
    `device_${state}_seconds`,
    'rate5m',
    `sum by (${NODE}, ${IDENTITY}) (${rate(DEVICE, series(`device_${state}_seconds_total`))} * on (${DEVICE}) group_left (${IDENTITY}) ${COUNTED})`,
  );

/** What containers use, by namespace. A second of a device within a second is one device: the sum over an hour is device hours. */
const usage: readonly Recording[] = [
  { record: SHARE_BY_NAMESPACE, expr: byNamespace(rateOfHolder('share_seconds')) },
  {
    record: IDLE_BY_NAMESPACE,
    expr: byNamespace(`${rateOfHolder('idle_seconds')} * ${rateOfHolder('share_seconds')} / (${rateOfHolder('allocated_seconds')} > 0)`),
  },
  { record: 'namespace:device_energy_joules:rate5m', expr: byNamespace(rateOfHolder('energy_joules')) },
  { record: 'namespace:device_energy_estimated_joules:rate5m', expr: byNamespace(rateOfHolder('energy_estimated_joules')) },
  ...['allocated', 'unallocated', 'unhealthy'].flatMap(timeOfDevices),
];

/** Rules that make the panels of a fleet as cheap as those of a node. Names are `level:metric:operation`. */
export const recordings: readonly Recording[] = [
  { record: PRESENT, expr: IDENTITY_OF_DEVICE },
  {
    record: COUNTED,
    expr: `
      ${PRESENT}
      unless on (${DEVICE}) label_replace(${by(`${NODE}, parent`, series('device_info', 'parent!=""'))}, "device", "$1", "parent", "(.+)")`,
  },
  { record: BUSIEST, expr: BUSY },
  {
    record: HELD,
    expr: by(`${DEVICE}, holder_namespace, resource`, withHolder(series('container_device_allocation', 'device!=""'), ['namespace'])),
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
    `sum by (${NODE}, ${IDENTITY}) (${withIdentity(`sum by (${DEVICE}) (${rate(`${DEVICE}, port`, series('device_received_bytes_total'))})`)})`,
  ),
  ...summed(
    'device_transmitted_bytes',
    'rate5m',
    `sum by (${NODE}, ${IDENTITY}) (${withIdentity(`sum by (${DEVICE}) (${rate(`${DEVICE}, port`, series('device_transmitted_bytes_total'))})`)})`,
  ),
  ...summed(
    'device_conditions',
    'count',
    `count by (${NODE}, condition, reason, severity) (${by(`${DEVICE}, condition, part, reason, severity`, series('device_health_condition'))})`,
  ),
  ...summed(
    'device_health_transitions',
    'increase1h',
    `sum by (${NODE}, state) (${grown(`${DEVICE}, state`, `increase(${series('device_health_transitions_total')}[1h])`)}) > 0`,
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
  {
    record: 'cluster:device_agents_silent:count',
    expr: `sum by (cluster) (${by(`${NODE}, instance`, `up and on (job, instance) ${agentsBy(SELECTOR)}`)} == bool 0)`,
  },
  ...usage,
];

export const recordingEntry = ({ record, expr }: Recording): object => ({ record, expr: flat(expr) });
