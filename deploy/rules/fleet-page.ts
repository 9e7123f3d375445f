import { by, DEVICE, NODE, series, withHolder } from './promql.ts';
import { COUNTED, HELD } from './recording.ts';

interface Recording {
  readonly record: string;
  readonly expr: string;
}

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

/** A fault that counts, with the facts of its device that a person needs. A GPU also has the label `index`, for its short name. */
const FAULT = 'device:device_fault:since_timestamp_seconds';
const FACTS = 'family, kind, model, serial, driver, firmware, pci_address';
const withIndex = (expr: string): string =>
  `(${expr} * on (${DEVICE}) group_left (index) topk by (${DEVICE}) (1, ${by(`${DEVICE}, index`, series('device_nvidia_info', 'index!=""'))}) or on (${DEVICE}, condition, part, reason) ${expr})`;
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
];

/** What the page of a fleet shows of each node and fault: docs/fleet.md. It reads what `deploy/rules.yaml` recorded. */
export const fleetPageGroup = { name: 'device-fleet-page', interval: '1m', rules: recordings };
