import {
  CONDITION_TEXT,
  CONDITIONS_OF_DEVICE,
  CONSEQUENCES,
  DEVICE_NAME,
  HOLDER_OF_DEVICE,
  HOLDER_OF_UNRESOLVED,
  NAMES_IN_LINK,
  RECORD,
  REMEDY,
  SINCE,
  UNVERIFIED,
} from './annotations.ts';
import { ALLOCATED, agentsBy, by, DEVICE, NODE, RUNBOOKS, SELECTOR, series, THRESHOLD } from './promql.ts';

/** `critical` wakes a person, `warning` is for working hours, `info` is for the owner of the devices. */
export type AlertSeverity = 'critical' | 'warning' | 'info';

export interface Alert {
  readonly name: string;
  readonly severity: AlertSeverity;
  readonly expr: string;
  readonly for: string;
  readonly keepFiringFor?: string;
  /** Default of the placeholder in the expression. */
  readonly threshold?: number;
  readonly summary: string;
  readonly description: string;
  /** Who is affected. Absent for alerts on agents. */
  readonly holder?: string;
  /** What to do, in words. */
  readonly remedy: string;
  /** When it began. Absent where the alert is not about one condition. */
  readonly since?: string;
}

const CONDITION = 'condition, class, part, reason, remedy';

/**
 * The conditions that hold, each once. Leaves out those that recover or need no action, and the consequences of another condition: one fault
 * is one alert.
 */
const conditions = (matchers: string): string =>
  by(`${DEVICE}, ${CONDITION}`, series('device_health_condition', `${matchers},remedy!="none",cause=""`));

/** Leaves out the parts of a device whose own alert already tells the fault. */
const unlessWholeIs = (state: 'unhealthy' | 'sick'): string => `unless on (${DEVICE}) device:whole_${state}:bool`;

const ON_DEVICE = `${DEVICE_NAME} on node {{ $labels.node }}`;
const WHY = `${CONDITION_TEXT}. ${CONSEQUENCES}`;
const ON_NODE = 'on node {{ $labels.node }}';

/** Facts that the alerts of the same group use. The group evaluates them first. */
export const alertFacts: readonly { readonly record: string; readonly expr: string }[] = (
  [
    ['device:whole_unhealthy:bool', 'state="unhealthy"'],
    ['device:whole_sick:bool', 'state=~"unhealthy|degraded"'],
  ] as const
).map(([record, states]) => ({
  record,
  expr: `
    ${by(`${DEVICE}, parent`, series('device_info', 'parent!=""'))}
    * on (${NODE}, parent) group_left ()
    ${by(`${NODE}, parent`, `label_replace(${series('device_health', states)} == 1, "parent", "$1", "device", "(.+)")`)}`,
}));

export const deviceAlerts: readonly Alert[] = [
  {
    name: 'DeviceUnhealthy',
    severity: 'critical',
    expr: `
      ${conditions('severity="fatal",class="latched",condition!="DeviceMissing"')}
      ${unlessWholeIs('unhealthy')}`,
    for: '1m',
    summary: `${ON_DEVICE} is out of service: {{ $labels.condition }}.`,
    description: `${WHY}${UNVERIFIED}The fault stays until an operator acts.`,
    holder: HOLDER_OF_DEVICE,
    remedy: REMEDY,
    since: SINCE,
  },
  {
    name: 'DeviceOutOfService',
    severity: 'critical',
    expr: `
      ${conditions('severity="fatal",class!="latched"')}
      ${unlessWholeIs('unhealthy')}`,
    for: '2m',
    keepFiringFor: '5m',
    summary: `${ON_DEVICE} is out of service: {{ $labels.condition }}.`,
    description: `${WHY}${UNVERIFIED}The device returns to service when the condition ends.`,
    holder: HOLDER_OF_DEVICE,
    remedy: REMEDY,
    since: SINCE,
  },
  {
    name: 'DeviceMissing',
    severity: 'critical',
    expr: `
      ${conditions('condition="DeviceMissing"')}
      ${unlessWholeIs('unhealthy')}`,
    for: '2m',
    summary: `${ON_DEVICE} has disappeared.`,
    description: 'The probe reads its family and no longer finds the device.',
    holder: HOLDER_OF_DEVICE,
    remedy:
      'Search the kernel log and `lspci` for the device. Drain the node, then reboot it or reseat the device. If you removed the device, ignore the condition for it with `health.ignore`, or wait until `device.missing-retention` is over.',
  },
  {
    name: 'DeviceExpectedMissing',
    severity: 'critical',
    expr: `
      ${by(`${NODE}, family`, series('device_agent_present_devices'))}
      < ${by(`${NODE}, family`, series('device_agent_expected_devices'))}
      unless on (${NODE}, family) ${by(`${NODE}, family`, `${series('device_agent_probe_success')} == 0`)}
      unless on (${NODE}, family) ${by(`${NODE}, family`, `${series('device_agent_devices', 'state="missing"')} > 0`)}`,
    for: '5m',
    summary: `Node {{ $labels.node }} has {{ $value }} {{ $labels.family }} devices, fewer than expected.`,
    description:
      'device_agent_expected_devices has the number that the configuration expects. The agent may never have seen the missing device.',
    remedy: 'Search `lspci` and the kernel log for the device. Correct `expect` in the configuration if the node has fewer devices.',
  },
  {
    name: 'DeviceDegraded',
    severity: 'warning',
    expr: `
      ${conditions('severity="degraded",class!~"rate|no-data"')}
      ${unlessWholeIs('sick')}`,
    for: '15m',
    keepFiringFor: '15m',
    summary: `${ON_DEVICE} is degraded: {{ $labels.condition }}.`,
    description: `${WHY}${UNVERIFIED}The device stays in service.`,
    holder: HOLDER_OF_DEVICE,
    remedy: REMEDY,
    since: SINCE,
  },
  {
    name: 'DeviceErrorsGrow',
    severity: 'warning',
    expr: `
      ${conditions('severity="degraded",class="rate"')}
      ${unlessWholeIs('sick')}`,
    for: '1m',
    keepFiringFor: '30m',
    summary: `${ON_DEVICE} counts errors faster than it should: {{ $labels.condition }}.`,
    description: `${WHY}${UNVERIFIED}The device stays in service.`,
    holder: HOLDER_OF_DEVICE,
    remedy: REMEDY,
    since: SINCE,
  },
  {
    name: 'DeviceUnknown',
    severity: 'warning',
    expr: `
      ${by(DEVICE, `${series('device_health', 'state="unknown"')} == 1`)}
      unless on (${DEVICE}) ${by(DEVICE, `${series('device_present')} == 0`)}
      unless on (${DEVICE}) ${by(DEVICE, series('device_health_condition', 'severity="fatal"'))}
      unless on (${DEVICE}) (
        ${by(`${DEVICE}, family`, series('device_info'))}
        * on (${NODE}, family) group_left () ${by(`${NODE}, family`, `${series('device_agent_probe_success')} == 0`)}
      )
      ${unlessWholeIs('unhealthy')}`,
    for: '5m',
    summary: `The health of ${ON_DEVICE} is unknown.`,
    description: `${CONDITIONS_OF_DEVICE}The device was not read for a while, or its data does not show its health. The agent reads other devices of the family. device_agent_problems has the failed reads.`,
    holder: HOLDER_OF_DEVICE,
    remedy: 'Run `device-agent doctor` in the agent of the node. docs/problems.md has the remedy for each code.',
  },
  {
    name: 'DeviceUnresolved',
    severity: 'warning',
    expr: `count by (${NODE}, resource, reason) (${series('container_device_unresolved')})`,
    for: '10m',
    summary: `{{ $value }} allocated ids of {{ $labels.resource }} ${ON_NODE} belong to no device that the agent knows.`,
    description: 'Containers hold ids of the resource, but no metric of a device can be attributed to them. Reason: {{ $labels.reason }}.',
    holder: HOLDER_OF_UNRESOLVED,
    remedy: 'Run `device-agent doctor` in the agent of the node. If the resource is a pool, configure a rule in `join.rules`.',
  },
  {
    name: 'DeviceAllocationRefused',
    severity: 'warning',
    expr: `${by(`${NODE}, resource, result`, `increase(${series('device_agent_plugin_allocations_total', 'result!="ok"')}[15m]) > 0`)}`,
    for: '0m',
    keepFiringFor: '15m',
    summary: `The device plugin refused {{ $labels.resource }} to a container ${ON_NODE}: {{ $labels.result }}.`,
    description: 'The pod fails to start with the reason in its events.',
    remedy: 'Read the events of the pod and the log of the agent.',
  },
  {
    name: 'DeviceRepeatOffender',
    severity: 'warning',
    expr: `
      ${by(DEVICE, series('device_unhealthy_incidents'))} >= ${THRESHOLD}
      unless on (${DEVICE}) (
        ${by(`${DEVICE}, parent`, series('device_info', 'parent!=""'))}
        * on (${NODE}, parent) group_left ()
        ${by(`${NODE}, parent`, `label_replace(${series('device_unhealthy_incidents')}, "parent", "$1", "device", "(.+)")`)}
      )`,
    for: '0m',
    threshold: 3,
    summary: `${ON_DEVICE} was out of service {{ $value }} times within a week.`,
    description: 'It returned to service each time, and failed again. `device-agent incidents` has the conditions.',
    holder: HOLDER_OF_DEVICE,
    remedy:
      'Run `device-agent incidents --by device` in the agent of the node. If the fault stays when the holders change, take the device out of use and replace it.',
  },
  {
    name: 'DeviceIdle',
    severity: 'info',
    expr: `
      ${by(DEVICE, `max_over_time(${series('device_utilization_ratio')}[2h])`)} < ${THRESHOLD}
      and on (${DEVICE}) ${ALLOCATED}
      and on (${DEVICE}) ${by(DEVICE, `${series('container_device_allocation', 'device!=""')} offset 2h`)}`,
    for: '1h',
    threshold: 0.01,
    summary: `${ON_DEVICE} is allocated and was idle for hours.`,
    description: 'No engine of the device was busier than {{ $value | humanizePercentage }} within two hours.',
    holder: HOLDER_OF_DEVICE,
    remedy: 'Ask the owner of the pod. End the pod to free the device.',
  },
];

const SEEN = `last_over_time(${series('device_agent_build_info')}[1d])`;
/** Only targets that were agents, so that other jobs and replaced pods do not alert. */
const DOWN = `up == 0 and on (job, instance) ${agentsBy(SELECTOR)}`;

export const agentAlerts: readonly Alert[] = [
  {
    name: 'DeviceAgentDown',
    severity: 'warning',
    expr: by(`${NODE}, job, instance`, DOWN),
    for: '5m',
    summary: `The agent {{ if $labels.node }}${ON_NODE}{{ else }}at {{ $labels.instance }}{{ end }} does not answer.`,
    description: 'The state of the devices of the node is unknown.',
    remedy: 'Read the log of its container: `kubectl logs` with the label app.kubernetes.io/name=device-agent.',
  },
  {
    name: 'DeviceAgentGone',
    severity: 'warning',
    // Where kube-state-metrics knows the nodes, a node that was removed does not alert.
    expr: `
      (
        ${by(NODE, `last_over_time(${series('device_agent_build_info', 'node!=""')}[6h])`)}
        unless on (${NODE}) ${by(NODE, series('device_agent_build_info'))}
        unless on (${NODE}) ${by(NODE, DOWN)}
      )
      unless on (${NODE}) (
        ${by(NODE, `last_over_time(${series('device_agent_build_info', 'node!=""')}[6h])`)} and on () kube_node_info
        unless on (node) kube_node_info
      )`,
    for: '10m',
    summary: `The agent ${ON_NODE} has disappeared together with its scrape target.`,
    description: 'An agent ran on the node within the last six hours. The state of the devices of the node is unknown.',
    remedy: 'Check the pods of the DaemonSet on the node. If you removed the node, ignore the alert: it ends within six hours.',
  },
  {
    name: 'DeviceAgentRestarts',
    severity: 'warning',
    // The latest start of all targets of a node counts: while a rollout has two agents on a node, each scrape shows another one.
    expr: `
      changes(
        ${by(NODE, `max_over_time(${series('process_start_time_seconds')}[2m]) and on (job, instance) ${SEEN}`)}[1h:1m]
      ) >= ${THRESHOLD}`,
    for: '0m',
    keepFiringFor: '15m',
    threshold: 4,
    summary: `The agent ${ON_NODE} started {{ $value }} times within an hour.`,
    description:
      'Each start begins the waiting times of other alerts anew, and the kubelet offers no device of the plugin until the agent has registered again.',
    remedy: 'Read why the container ended: `kubectl describe pod`, and `kubectl logs --previous`.',
  },
  {
    name: 'DevicePublisherWithoutAgent',
    severity: 'warning',
    // The publisher says unknown, the agent does not. While the agent does not answer, its own alerts tell it. kube-state-metrics has the condition.
    expr: `
      ${by(NODE, 'kube_node_status_condition{condition="DevicesUnknown",status="true"} == 1')}
      unless on (${NODE}) ${by(NODE, `${series('device_agent_devices', 'state="unknown"')} > 0`)}
      unless on (${NODE}) ${by(NODE, `${series('device_agent_probe_success')} == 0`)}
      unless on (${NODE}) (
        ${by(NODE, `last_over_time(${series('device_agent_build_info', 'node!=""')}[6h])`)}
        unless on (${NODE}) ${by(NODE, series('device_agent_build_info'))}
      )`,
    for: '10m',
    summary: `The publisher ${ON_NODE} gets nothing from the agent.`,
    description: 'The conditions of the node are unknown, although the agent knows its devices. Taints stay as they are.',
    remedy: 'Read the log of the publisher, and run `device-agent doctor` in the agent of the node.',
  },
  {
    name: 'DeviceAgentStandsStill',
    severity: 'warning',
    expr: `${by(NODE, `time() - ${series('device_agent_snapshot_timestamp_seconds')}`)} > ${THRESHOLD}`,
    for: '2m',
    threshold: 120,
    summary: `The data of the agent ${ON_NODE} is {{ $value | humanizeDuration }} old.`,
    description:
      'The agent answers, but it has stopped producing snapshots. Raise the threshold where refresh.interval is longer than a minute.',
    remedy: 'Read the log of the agent. Restart the agent if the log shows no reason.',
  },
  {
    name: 'DeviceAgentCannotAskKubelet',
    severity: 'warning',
    expr: `${by(NODE, `${series('device_agent_podresources_up')} == 0`)}`,
    for: '5m',
    summary: `The agent ${ON_NODE} cannot ask the kubelet which container holds which device.`,
    description:
      'Readings and health of devices go on. Attribution to containers is as old as the last answer. device_agent_podresources_problem has the reason.',
    remedy: 'Run `device-agent doctor` in the agent of the node.',
  },
  {
    name: 'DeviceProbeFails',
    severity: 'warning',
    // Silent while somebody has asked for the driver, and not after the time that was asked.
    expr: `
      ${by(`${NODE}, family`, `${series('device_agent_probe_success')} == 0`)}
      unless on (${NODE}, family) (
        ${by(`${DEVICE}, family`, series('device_info'))}
        and on (${DEVICE}) ${by(DEVICE, `${series('device_nvidia_driver_release_end_timestamp_seconds')} > time()`)}
      )`,
    for: '5m',
    summary: `The agent ${ON_NODE} can read no {{ $labels.family }} device.`,
    description: 'The health of all these devices is unknown. device_agent_problems has the code.',
    remedy: 'Run `device-agent doctor` in the agent of the node. docs/problems.md has the remedy for each code.',
  },
  {
    name: 'DevicePluginNotFollowed',
    severity: 'critical',
    expr: `${by(`${NODE}, resource`, `${series('device_agent_plugin_registered')} == 0`)}`,
    for: '2m',
    summary: `The kubelet ${ON_NODE} does not follow the devices of {{ $labels.resource }}.`,
    description: 'The kubelet cannot allocate these devices to new pods. device_agent_plugin_registrations_total has the reason.',
    remedy: "Check that the kubelet's device-plugins directory is mounted writable. Run `device-agent doctor` in the agent of the node.",
  },
  {
    name: 'DevicePluginOfferDiffers',
    severity: 'critical',
    expr: `${by(`${NODE}, resource`, `${series('device_agent_plugin_differing_devices')} > 0`)}`,
    for: '2m',
    summary: `The kubelet ${ON_NODE} offers other devices of {{ $labels.resource }} than the agent serves.`,
    description:
      '{{ $value }} device ids differ. Pods can get a device that is not healthy or not there, and fail, or sound devices are not used. The agent corrects the kubelet, so another plugin of the resource undoes that.',
    remedy:
      'Find the other plugin of the resource on the node, and remove one of the two. Run `device-agent doctor` in the agent of the node.',
  },
  {
    name: 'DeviceAgentConfigRejected',
    severity: 'warning',
    expr: `
      ${by(NODE, `${series('device_agent_config_last_reload_successful')} == 0`)}
      or ${by(NODE, `${series('device_agent_web_config_last_reload_successful')} == 0`)}`,
    for: '5m',
    summary: `The agent ${ON_NODE} does not accept its new configuration.`,
    description: 'It keeps the last valid configuration. After a restart it would not start. Its log names file, line and reason.',
    remedy: 'Run `device-agent config check` on the file, then correct it.',
  },
  {
    name: 'DeviceAgentSocketAway',
    severity: 'warning',
    expr: `${by(`${NODE}, socket`, `${series('device_agent_socket_up')} == 0`)}`,
    for: '5m',
    summary: `Clients do not reach the agent ${ON_NODE} at its socket {{ $labels.socket }}.`,
    description:
      'Without the socket control, publish and the commands of the node get no answer. Device plugins that ask by another socket mostly take silence for health.',
    remedy:
      'Run `device-agent doctor` in the agent of the node: it names path and cause. The agent makes the socket again when the cause is gone.',
  },
  {
    name: 'DeviceAgentWithoutNode',
    severity: 'info',
    expr: `count by (cluster, job) (${series('device_agent_build_info', 'node=""')})`,
    for: '15m',
    summary: '{{ $value }} agents of job {{ $labels.job }} are scraped without the label node.',
    description: 'The rules and dashboards distinguish devices of different nodes by the label node.',
    remedy: 'Add the relabeling of docs/prometheus.md to the scrape configuration.',
  },
];

/** One alert as an entry of a rule file. `page` has a section with its name. */
export function alertEntry(
  page: 'devices' | 'agents',
  { name, severity, expr, for: duration, keepFiringFor, summary, description, holder, remedy, since }: Alert,
): object {
  return {
    alert: name,
    expr: flat(expr),
    ...(duration === '0m' ? {} : { for: duration }),
    ...(keepFiringFor === undefined ? {} : { keep_firing_for: keepFiringFor }),
    labels: { severity },
    annotations: {
      summary,
      description,
      ...(holder === undefined ? {} : { holder }),
      ...(since === undefined ? {} : { since }),
      remedy,
      ...(holder === HOLDER_OF_DEVICE ? { record_url: RECORD } : {}),
      runbook_url: `${RUNBOOKS}/${page}.md${NAMES_IN_LINK}#${name.toLowerCase()}`,
    },
  };
}

/** Removes the indentation of the source and keeps its line breaks. */
export const flat = (expr: string): string =>
  expr
    .trim()
    .split('\n')
    .map((line) => line.trim())
    .join('\n');
