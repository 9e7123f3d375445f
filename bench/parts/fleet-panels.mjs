// The rules as they are delivered, and the panels of a fleet: each over recorded series, and as it would be without them.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const RULES = fileURLToPath(new URL('../../deploy/rules.yaml', import.meta.url));

export const ruleGroups = () => parse(readFileSync(RULES, 'utf8')).groups;

export const recordings = ruleGroups()
  .flatMap(({ rules }) => rules)
  .filter(({ record }) => record !== undefined);
const byName = new Map(recordings.map(({ record, expr }) => [record, expr]));

/** Rules over raw series, and those over what other rules record. */
export const [overRaw, overRecorded] = [false, true].map((wanted) =>
  recordings.filter(({ expr }) => [...byName.keys()].some((name) => expr.includes(name)) === wanted),
);

/** `kind`: a graph asks for a range, a table for the last moment. */
const graph = (expr) => ({ kind: 'graph', expr });
const table = (expr) => ({ kind: 'table', expr });
const PANELS = [
  graph('sum by (state) (cluster:devices:count)'),
  graph('sum by (family, model) (cluster:devices:count)'),
  graph('sum by (family) (cluster:devices_allocated:count)'),
  graph('sum by (family) (cluster:devices_idle_allocated:count)'),
  graph('sum by (family, model) (cluster:device_power_watts:sum)'),
  graph('sum by (family) (cluster:device_received_bytes:rate5m)'),
  graph('sum by (family) (cluster:device_transmitted_bytes:rate5m)'),
  graph('sum by (condition, severity) (cluster:device_conditions:count)'),
  graph('namespace:devices_allocated:count'),
  graph('namespace:device_utilization_ratio:avg'),
  graph('cluster:device_utilization_ratio:avg'),
  graph('sum by (state) (cluster:device_health_transitions:increase1h)'),
  graph('topk(20, node:devices:count{state="unhealthy"})'),
  table('topk(20, node:devices:count{state="unhealthy"})'),
  table('namespace:devices_allocated:count'),
  table('sum by (version) (cluster:device_agents:count)'),
];

export const panels = PANELS.map((panel) => ({ ...panel, raw: rawOf(panel.expr) }));

/** Puts the expressions of the rules in the place of what they record. A matcher of the state goes to the metric that has the state. */
function rawOf(expr) {
  return expr.replaceAll(/(?:cluster|node|namespace):[a-z_]+:[a-z0-9_]+(\{state="\w+"\})?/g, (whole, matcher = '') => {
    const rule = byName.get(whole.slice(0, whole.length - matcher.length));
    if (rule === undefined) throw new Error(`${whole}: no rule records it`);
    return `(${rawOf(rule).replace('device_health == 1', `device_health${matcher} == 1`)})`;
  });
}
