import { by, DEVICE } from '../../deploy/rules/promql.ts';
import type { Query, ValueText, Variable } from './board.ts';

export const CLUSTER: Variable = { name: 'cluster', label: 'Cluster', query: 'label_values(device_agent_build_info, cluster)' };
export const NODE: Variable = { name: 'node', label: 'Node', query: 'label_values(device_agent_build_info{cluster=~"$cluster"}, node)' };

/** Matchers of the selected nodes. */
const ON_NODES = 'cluster=~"$cluster", node=~"$node"';

export const series = (name: string, matchers = ''): string => `${name}{${matchers === '' ? ON_NODES : `${ON_NODES}, ${matchers}`}}`;
export const rate = (name: string, matchers = ''): string => `rate(${series(name, matchers)}[$__rate_interval])`;
export const orZero = (expr: string): string => `${expr} or vector(0)`;
export const query = (expr: string, legend?: string): Query => (legend === undefined ? { expr } : { expr, legend });

/** Gives the labels of a holder one name each, whatever the scrape calls them. */
export function withHolder(expr: string, labels: readonly string[] = ['namespace', 'pod', 'container']): string {
  return labels.reduce((inner, label) => `label_replace(${inner}, "holder_${label}", "$1", "\${prefix}${label}", "(.*)")`, expr);
}

export const HOLDER = 'holder_namespace, holder_pod, holder_container';

/** Adds identity to an expression with one value for each device. */
export function withIdentity(expr: string, labels: string): string {
  return `${expr} * on (${DEVICE}) group_left (${labels}) topk by (${DEVICE}) (1, ${by(`${DEVICE}, ${labels}`, series('device_info'))})`;
}

/** One number for the state of each device, for a state timeline. */
export function stateNumber(matchers = ''): string {
  const one = (state: string): string =>
    by(`${DEVICE}, state`, series('device_health', `state="${state}"${matchers === '' ? '' : `, ${matchers}`}`));
  return `sum by (${DEVICE}) (${one('degraded')} or ${one('unhealthy')} * 2 or ${one('unknown')} * 3)`;
}

export const STATE_TEXTS: readonly ValueText[] = [
  { value: '0', text: 'healthy', color: 'green' },
  { value: '1', text: 'degraded', color: 'yellow' },
  { value: '2', text: 'unhealthy', color: 'red' },
  { value: '3', text: 'unknown', color: 'purple' },
];

export const UP_DOWN: readonly ValueText[] = [
  { value: '0', text: 'down', color: 'red' },
  { value: '1', text: 'up', color: 'green' },
];

export const HELD: readonly ValueText[] = [{ value: '1', text: 'held', color: 'blue' }];
export const HOLDS: readonly ValueText[] = [{ value: '1', text: 'holds', color: 'orange' }];
