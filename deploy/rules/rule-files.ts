import { stringify } from 'yaml';
import { agentAlerts, alertEntry, alertFacts, deviceAlerts } from './alerts.ts';
import { RUNBOOKS, SELECTOR, THRESHOLD } from './promql.ts';
import { recordingEntry, recordings } from './recording.ts';

const HEAD = `# Generated from deploy/rules/*.ts by \`npm run generate\`. Edit there.
# One fault raises one alert: while a device is out of service, the alerts of its parts (MIG instances, virtual functions) are silent, and
# while a probe can read nothing, DeviceProbeFails replaces the alerts of all its devices.
# The label \`node\` must name the node: docs/prometheus.md has the scrape configuration.
`;

const groups = [
  { name: 'device-fleet', interval: '1m', rules: recordings.map(recordingEntry) },
  { name: 'devices', rules: [...alertFacts.map(recordingEntry), ...deviceAlerts.map(alertEntry)] },
  { name: 'device-agents', rules: agentAlerts.map(alertEntry) },
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
  let next = 0;
  const plain = withPlaceholders
    .replaceAll(THRESHOLD, () => String(thresholds[next++]))
    .replaceAll(`,${SELECTOR}`, '')
    .replaceAll(`{${SELECTOR}}`, '')
    .replaceAll(RUNBOOKS, 'docs/runbooks');
  return {
    'deploy/rules.yaml': HEAD + plain,
    'deploy/chart/files/rules.yaml': HEAD + withPlaceholders,
    'deploy/chart/files/alert-defaults.yaml': HEAD + stringify(alertDefaults),
  };
}
