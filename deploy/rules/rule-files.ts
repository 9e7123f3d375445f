import { stringify } from 'yaml';
import { agentAlerts, alertEntry, alertFacts, deviceAlerts, flat } from './alerts.ts';
import { costs, priceRule } from './cost.ts';
import { dcgmGroup } from './dcgm.ts';
import { fleetGroup } from './fleet.ts';
import { fleetPageGroup } from './fleet-page.ts';
import { DEFAULT_RUNBOOKS, RUNBOOKS, SELECTOR, THRESHOLD } from './promql.ts';
import { recordingEntry, recordings } from './recording.ts';
import { JOB_LABEL, stallGroup } from './stall.ts';

const HEAD = `# Generated from deploy/rules/*.ts by \`npm run generate\`. Edit there.
# One fault raises one alert: while a device is out of service, the alerts of its parts (MIG instances, virtual functions) are silent, and
# while a probe can read nothing, DeviceProbeFails replaces the alerts of all its devices.
# The label \`node\` must name the node: docs/prometheus.md has the scrape configuration.
`;

const COST_HEAD = `# Generated from deploy/rules/*.ts by \`npm run generate\`. Edit there.
# Cost of devices by namespace. It needs the recording rules of deploy/rules.yaml. The price below is an example: replace it by your own.
# A price is money for one device and one hour. \`priced\` is a model or a family of devices; docs/usage.md explains it.
`;

/** The text of rules with the address of the runbooks. As a value it keeps its quotes; in a text it would lose them. */
const withRunbooks = (groups: readonly object[]): string =>
  stringify({ groups }, (_, value) => (typeof value === 'string' ? value.replace(RUNBOOKS, DEFAULT_RUNBOOKS) : value), { lineWidth: 0 });

const STALL_HEAD = `# Generated from deploy/rules/*.ts by \`npm run generate\`. Edit there.
# Containers that wait, and the ranks of a job compared over nodes: docs/waiting.md. Load this file only if you want it. It needs kube_pod_labels of
# kube-state-metrics with the label of the job: replace label_batch_kubernetes_io_job_name by that of your jobs.
`;

const DCGM_HEAD = `# Generated from deploy/rules/*.ts by \`npm run generate\`. Edit there.
# Series of device-agent under the names, units and labels of dcgm-exporter: docs/migration.md. Load this file where boards, autoscalers or alerts ask for
# those names, and not beside a dcgm-exporter that Prometheus scrapes.
`;

const FLEET_HEAD = `# Generated from deploy/rules/*.ts by \`npm run generate\`. Edit there.
# What only a fleet answers, and what \`device-agent fleet\` shows: docs/fleet.md. It needs the recording rules of deploy/rules.yaml.
`;

/** The prices come first, because a group evaluates its rules in order. */
const costGroup = (prices: Readonly<Record<string, number>>): object => ({
  name: 'device-cost',
  interval: '1m',
  rules: [...Object.entries(prices).map(([priced, price]) => priceRule(priced, price)), ...costs],
});

const groups = [
  { name: 'device-fleet', interval: '1m', rules: recordings.map(recordingEntry) },
  { name: 'devices', rules: [...alertFacts.map(recordingEntry), ...deviceAlerts.map((alert) => alertEntry('devices', alert))] },
  { name: 'device-agents', rules: agentAlerts.map((alert) => alertEntry('agents', alert)) },
];

const alerts = [...deviceAlerts, ...agentAlerts];

/** Names of all alerts. */
export const alertNames = alerts.map(({ name }) => name);

/** Defaults of the chart's values for each alert. */
const alertDefaults = Object.fromEntries(
  alerts.map(({ name, severity, for: duration, keepFiringFor, threshold }) => [
    name,
    {
      enabled: true,
      severity,
      for: duration,
      ...(keepFiringFor === undefined ? {} : { keepFiringFor }),
      ...(threshold === undefined ? {} : { threshold }),
    },
  ]),
);

/** The generated files by path: the plain rule file, and the chart's with placeholders. */
export function ruleFiles(): Readonly<Record<string, string>> {
  const withPlaceholders = stringify({ groups }, { lineWidth: 0 });
  const thresholds = alerts.flatMap(({ threshold }) => (threshold === undefined ? [] : [threshold]));
  const dcgm = stringify({ groups: [dcgmGroup] }, { lineWidth: 0 });
  const fleet = stringify(
    {
      groups: [fleetPageGroup, fleetGroup].map(({ rules, ...group }) => ({
        ...group,
        rules: rules.map(({ expr, ...rule }) => ({ ...rule, expr: flat(expr) })),
      })),
    },
    { lineWidth: 0 },
  );
  const stall = stringify({ groups: [stallGroup] }, { lineWidth: 0 });
  let next = 0;
  const plain = plainOf(withRunbooks(groups).replaceAll(THRESHOLD, () => String(thresholds[next++])));
  return {
    'deploy/rules.yaml': HEAD + plain,
    'deploy/rules-cost.yaml': COST_HEAD + stringify({ groups: [costGroup({ nvidia: 2.5 })] }, { lineWidth: 0 }),
    'deploy/rules-stall.yaml': STALL_HEAD + withRunbooks([stallGroup]),
    'deploy/rules-dcgm.yaml': DCGM_HEAD + plainOf(dcgm),
    'deploy/rules-fleet.yaml': FLEET_HEAD + plainOf(fleet),
    'deploy/chart/files/rules-fleet.yaml': fleet,
    'deploy/chart/files/rules-dcgm.yaml': dcgm,
    'deploy/chart/files/rules-cost.yaml': stringify({ groups: [costGroup({})] }, { lineWidth: 0 }),
    'deploy/chart/files/rules-stall.yaml': stall.replaceAll(JOB_LABEL, '__job_label__'),
    'deploy/chart/files/rules.yaml': HEAD + withPlaceholders,
    'deploy/chart/files/alert-defaults.yaml': HEAD + stringify(alertDefaults),
  };
}

/** The rules without the administrator's choices. */
function plainOf(rules: string): string {
  return rules.replaceAll(`,${SELECTOR}`, '').replaceAll(`{${SELECTOR}}`, '');
}
