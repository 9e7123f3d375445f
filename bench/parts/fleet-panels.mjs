// The rules as they are delivered, and the panels of a fleet: each over recorded series, and as it would be without them.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export const RULES = fileURLToPath(new URL('../../deploy/rules.yaml', import.meta.url));

export const ruleGroups = () => parse(readFileSync(RULES, 'utf8')).groups;

const recordings = ruleGroups()
  .flatMap(({ rules }) => rules)
  .filter(({ record }) => record !== undefined);
const byName = new Map(recordings.map(({ record, expr }) => [record, expr]));

/** Rules that a fleet records only when it has prices. Their panels have no data here. */
const COST = /:device_(?:idle_)?cost_per_hour:/;

/** The recording rules in steps, each of which needs only what the steps before it record. */
export const recordingSteps = [0, 1, 2, 3].map((depth) => recordings.filter(({ expr }) => depthOf(expr) === depth));

function depthOf(expr) {
  const needed = [...byName].filter(([name]) => expr.includes(name));
  return needed.length === 0 ? 0 : 1 + Math.max(...needed.map(([, inner]) => depthOf(inner)));
}

/**
 * The panels of the fleet's dashboard with all clusters selected; `kind`: a graph asks for a range, all others for the last moment. `raw`
 * asks for the same without recorded series.
 */
export function panelsOf(dashboard) {
  const { panels } = JSON.parse(readFileSync(dashboard, 'utf8'));
  return panels.flatMap(({ type, title, targets = [] }) =>
    targets
      .filter(({ expr }) => !COST.test(expr))
      .map(({ expr: template }) => {
        const expr = template
          .replaceAll('cluster=~"$cluster"', 'cluster=~".*"')

          .replaceAll('$__range', '2h');
        return { title, kind: type === 'timeseries' ? 'graph' : 'table', expr, raw: rawOf(expr) };
      }),
  );
}

/** Puts the expressions of the rules in the place of what they record. A matcher of the state goes to the metric that has the state. */
function rawOf(expr) {
  // A range of an expression, other than that of a series, needs a step.
  const stepped = expr.replaceAll(/(:[a-z0-9_]+\{[^}]*\}\[2h)\]/g, '$1:1m]');
  return stepped.replaceAll(/((?:cluster|node|namespace|device):[a-z_]+:[a-z0-9_]+)(\{[^}]*\})?/g, (_, name, matchers = '') => {
    const rule = byName.get(name);
    if (rule === undefined) throw new Error(`${name}: no rule records it; adapt deploy/rules/recording.ts or the dashboard`);
    const [state = ''] = /state=~?"[^"]*"/.exec(matchers) ?? [];
    return `(${rawOf(rule).replace('device_health == 1', `device_health{${state}} == 1`)})`;
  });
}
