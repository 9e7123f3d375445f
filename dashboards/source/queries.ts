import { agentsBy, by, DEVICE } from '../../deploy/rules/promql.ts';
import type { Panel, Query, ValueText, Variable } from './board.ts';

export const CLUSTER: Variable = { name: 'cluster', label: 'Cluster', query: 'label_values(device_agent_build_info, cluster)' };
export const NODE: Variable = { name: 'node', label: 'Node', query: 'label_values(device_agent_build_info{cluster=~"$cluster"}, node)' };

/** Matchers of the selected nodes. */
const ON_NODES = 'cluster=~"$cluster", node=~"$node"';

export const series = (name: string, matchers = ''): string => `${name}{${matchers === '' ? ON_NODES : `${ON_NODES}, ${matchers}`}}`;
export const rate = (name: string, matchers = ''): string => `rate(${series(name, matchers)}[$__rate_interval])`;
/** 0 instead of nothing, but only where `known` has series: of an agent that does not answer, nothing is known. */
export const orZero = (expr: string, known: string): string => `${expr} or 0 * count(${known})`;
/** How many series are 0; nothing where there are none. */
export const zeros = (expr: string): string => `sum(${expr} == bool 0)`;
export const query = (expr: string, legend?: string): Query => (legend === undefined ? { expr } : { expr, legend });

/** Gives the labels of a holder one name each, whatever the scrape calls them. */
export function withHolder(expr: string, labels: readonly string[] = ['namespace', 'pod', 'container']): string {
  return labels.reduce((inner, label) => `label_replace(${inner}, "holder_${label}", "$1", "\${prefix}${label}", "(.*)")`, expr);
}

export const HOLDER = 'holder_namespace, holder_pod, holder_container';

/** Agents whose kubelet answers: only they know who holds what. */
export const ASKED = `${series('device_agent_podresources_up')} == 1`;

/** How many devices have the verdict. */
export const inState = (state: string): string => `sum(${by(DEVICE, series('device_health', `state="${state}"`))})`;

/** The other stats count nothing of an agent that does not answer. */
export const SILENT_AGENTS: Panel = {
  ...{ kind: 'stat', title: 'Agents that do not answer', unit: 'none', width: 4, badFrom: 1 },
  description: 'Their devices are in no other number. An agent whose scrape target is gone is not counted: see DeviceAgentGone.',
  queries: [query(zeros(by('cluster, node, instance', `up{${ON_NODES}} and on (job, instance) ${agentsBy(ON_NODES)}`)))],
};

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
