import { IDLE_BY_NAMESPACE, SHARE_BY_NAMESPACE } from './cost.ts';
import { by, DEVICE, grown, NODE, rate, series, withHolder } from './promql.ts';
import { BUSIEST, COUNTED, HELD, PRESENT } from './recording.ts';

interface Recording {
  readonly record: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly expr: string;
}

const MODEL = 'cluster, family, kind, model';
const identified = (expr: string): string => `${expr} * on (${DEVICE}) group_left (family, kind, model) ${PRESENT}`;

/** Devices that are held and worked for at least half of ten minutes: an idle device has a low clock and is cool. */
const WORKING = 'device:device_working:max';
const COMPARED = 'device:device_compared:current';
const MEDIAN = 'model:device_compared:median';
const WORSE = 'device:device_worse_than_twins:current';

/** The clock that work runs with. Those of memory and video say nothing of it, and a name that is not here is not compared. */
const WORK_CLOCK = 'clock=~"sm|graphics[0-9]*|gt0|ai|npu"';
const LINK_ERRORS = ['device_symbol_errors_total', 'device_pcie_errors_total', 'device_pcie_replays_total'];

const working = (expr: string): string => identified(`(${expr} and on (${DEVICE}) ${WORKING})`);
/** The growth of an hour, each counter by a name of its own, so that a device without one of them has the sum of the others. */
const linkErrors = LINK_ERRORS.map(
  (name) => `label_replace(${grown(DEVICE, `increase(${series(name)}[1h])`)}, "counter", "${name}", "", "")`,
).join('\nor ');

const QUANTITIES = [
  {
    what: 'clock',
    expr: working(by(DEVICE, `avg_over_time(${series('device_clock_hertz', WORK_CLOCK)}[10m])`)),
    worse: (own: string, twins: string): string => `${own} < on (${MODEL}) group_left () (0.9 * ${twins})`,
  },
  {
    what: 'temperature',
    expr: working(by(DEVICE, `avg_over_time(${series('device_temperature_celsius')}[10m])`)),
    worse: (own: string, twins: string): string => `${own} > on (${MODEL}) group_left () (10 + ${twins})`,
  },
  {
    what: 'link errors',
    expr: identified(`sum by (${DEVICE}) (${linkErrors})`),
    worse: (own: string, twins: string): string => `(${own} > on (${MODEL}) group_left () (10 * ${twins})) >= 10`,
  },
] as const;

/** A median of fewer than four devices says more of the one than of the others. */
const twins: readonly Recording[] = QUANTITIES.flatMap(({ what, expr, worse }) => {
  const of = (name: string): string => `${name}{what="${what}"}`;
  return [
    { record: COMPARED, labels: { what }, expr },
    {
      record: MEDIAN,
      labels: { what },
      expr: `quantile by (${MODEL}) (0.5, ${of(COMPARED)}) and on (${MODEL}) (count by (${MODEL}) (${of(COMPARED)}) >= 4)`,
    },
    { record: WORSE, labels: { what }, expr: worse(of(COMPARED), of(MEDIAN)) },
  ];
});

const USE = 'device:device_use:max';
const BROKEN = `(${by(DEVICE, `${series('device_health', 'state="unhealthy"')} == 1`)} or ${by(DEVICE, `${series('device_present')} == 0`)})`;
const HOLDER = ['namespace', 'pod', 'container'];
const OF_HOLDER = HOLDER.map((label) => `holder_${label}`).join(', ');

/**
 * Each device in one state. Free needs what shows it: a verdict, and time that the agent counted as held by nobody. A device whose holder or verdict
 * nobody knows is unknown.
 */
const capacity: readonly Recording[] = [
  { record: USE, labels: { state: 'out_of_service' }, expr: `${COUNTED} and on (${DEVICE}) ${BROKEN}` },
  {
    record: USE,
    labels: { state: 'held' },
    expr: `${COUNTED} and on (${DEVICE}) ${HELD} unless on (${DEVICE}) ${USE}{state="out_of_service"}`,
  },
  {
    record: USE,
    labels: { state: 'free' },
    expr: `
      ${COUNTED} and on (${DEVICE}) (${by(DEVICE, series('device_healthy'))} == 1)
      and on (${DEVICE}) (${rate(DEVICE, series('device_unallocated_seconds_total'))} > 0)
      unless on (${DEVICE}) ${USE}{state=~"out_of_service|held"}`,
  },
  { record: USE, labels: { state: 'unknown' }, expr: `${COUNTED} unless on (${DEVICE}) ${USE}{state=~"out_of_service|held|free"}` },
  { record: 'model:devices:count', expr: `count by (${MODEL}, state) (${USE})` },
  {
    record: 'model:devices_waiting:count',
    expr: `
      count by (${MODEL}) (${identified(
        by(
          DEVICE,
          `${by(`${DEVICE}, ${OF_HOLDER}`, withHolder(series('container_device_allocation', 'device!=""'), HOLDER))}
        and on (${NODE}, ${OF_HOLDER}) (${by(`${NODE}, ${OF_HOLDER}`, withHolder(series('container_device_waiting'), HOLDER))} == 1)`,
        ),
      )})`,
  },
];

/** Values of one minute, summed over a day: hours, or the money of an hour. */
const overDay = (name: string): string => `sum by (cluster, holder_namespace, family, model) (sum_over_time(${name}[1d])) / 60`;

const namespaces: readonly Recording[] = [
  { record: 'namespace:device_share_hours:sum1d', expr: overDay(SHARE_BY_NAMESPACE) },
  { record: 'namespace:device_idle_share_hours:sum1d', expr: overDay(IDLE_BY_NAMESPACE) },
  { record: 'namespace:device_idle_cost:sum1d', expr: overDay('namespace:device_idle_cost_per_hour:rate5m') },
];

const FAULT = 'device:device_fault_since_timestamp_seconds:max';
const REPAIR = 'device:device_repair_seconds:last';
const SINCE = by(DEVICE, series('device_health_since_timestamp_seconds'));
const IN_SERVICE = `(${by(DEVICE, series('device_healthy'))} == 1)`;
const BOARD = 'family, kind, model, serial';
const IDENTITY_WITH_SERIAL = `topk by (${DEVICE}) (1, ${by(`${DEVICE}, ${BOARD}`, series('device_info'))})`;

/**
 * A repair has one sample, at the minute in which a device that was out of service is seen in service. A fault stays open while nothing shows that:
 * a node that is off for its repair is silent. So the repair reads the fault of the minute before, and comes first.
 */
const repairs: readonly Recording[] = [
  {
    record: REPAIR,
    expr: `((${SINCE} and on (${DEVICE}) ${IN_SERVICE}) - on (${DEVICE}) ${FAULT} > 0) * on (${DEVICE}) group_left (${BOARD}) ${IDENTITY_WITH_SERIAL}`,
  },
  {
    record: FAULT,
    expr: `
      (${SINCE} and on (${DEVICE}) ${by(DEVICE, `${series('device_health', 'state="unhealthy"')} == 1`)} unless on (${DEVICE}) ${FAULT})
      or (${FAULT} > time() - 30 * 86400 unless on (${DEVICE}) ${IN_SERVICE})`,
  },
  {
    record: 'model:device_repair_seconds:avg30d',
    expr: `sum by (${MODEL}) (sum_over_time(${REPAIR}[30d])) / sum by (${MODEL}) (count_over_time(${REPAIR}[30d]))`,
  },
  {
    record: 'serial:device_repairs:count30d',
    expr: `sum by (cluster, ${BOARD}) (count_over_time(${REPAIR}{serial!=""}[30d]))`,
  },
];

/** What only a fleet answers. It reads what `deploy/rules.yaml` recorded. */
export const fleetGroup = {
  name: 'device-fleet-questions',
  interval: '1m',
  rules: [
    {
      record: WORKING,
      expr: `(avg_over_time(${BUSIEST}[10m]) >= 0.5) and on (${DEVICE}) ${HELD}`,
    },
    ...twins,
    { record: 'node:devices_worse_than_twins:count', expr: `count by (${NODE}, family, kind, model, what) (${WORSE})` },
    ...capacity,
    ...namespaces,
    ...repairs,
  ],
};
