import { quoted } from './promql.ts';

export interface Question {
  /** Subject of the question, for people: `health of devices`. */
  readonly about: string;
  readonly expr: string;
  /** Not every Prometheus has these series, so a missing answer is no problem. */
  readonly isOptional?: true;
}

const DAY = '[1d]';
const byNamespace = (name: string): string => `sum by (cluster, holder_namespace) (${name})`;

/** All that a fleet is made of: series that rules recorded, at one moment. `groupLabel`: the label of kube_node_labels that groups nodes on the map. */
export const questionsOf = (groupLabel: string) =>
  ({
    heard: { about: 'agents that answer', expr: 'node:device_agent_heard:timestamp_seconds' },
    wasHeard: { about: 'agents of the last day', expr: `last_over_time(node:device_agent_heard:timestamp_seconds${DAY})` },
    reads: { about: 'reads of the agents', expr: 'node:device_agent_snapshots:changes5m' },
    levels: { about: 'health of devices', expr: 'node:devices_by_level:count' },
    heldLevels: { about: 'devices that are held', expr: 'node:devices_held_by_level:count' },
    devices: { about: 'devices of the last day', expr: `last_over_time(node:devices_without_parts:count${DAY})` },
    use: { about: 'use of devices', expr: 'node:device_utilization_ratio:avg' },
    faults: { about: 'faults', expr: 'device:device_fault:since_timestamp_seconds' },
    hit: { about: 'holders of faulty devices', expr: 'device:device_fault_holder:max' },
    namespaces: {
      about: 'namespaces on nodes',
      expr: 'count by (cluster, node, holder_namespace) (device:container_device_allocation:max)',
    },
    heldNow: { about: 'devices of namespaces', expr: 'namespace:devices_held:count' },
    heldHours: { about: 'device hours of namespaces', expr: byNamespace('namespace:device_share_hours:sum1d') },
    idleHours: { about: 'idle hours of namespaces', expr: byNamespace('namespace:device_idle_share_hours:sum1d') },
    idleCost: { about: 'idle cost of namespaces', expr: byNamespace('namespace:device_idle_cost:sum1d'), isOptional: true },
    waiting: { about: 'containers that wait', expr: 'sum by (family, kind, model) (model:devices_waiting:count)', isOptional: true },
    outliers: { about: 'devices and their twins', expr: 'device:device_worse_than_twins:current' },
    medians: { about: 'devices and their twins', expr: 'model:device_compared:median' },
    pages: { about: 'pages of the nodes', expr: 'max by (cluster, node, url) (device_agent_web_info)', isOptional: true },
    groups: {
      about: 'groups of nodes',
      expr: `max by (cluster, node, ${groupLabel}) (kube_node_labels{${groupLabel}!=""})`,
      isOptional: true,
    },
  }) as const satisfies Readonly<Record<string, Question>>;

export type QuestionName = keyof ReturnType<typeof questionsOf>;

/** A series of one node. An empty label is none. */
export const ofNode = (name: string, { cluster = '', node }: { readonly cluster?: string | undefined; readonly node: string }): string =>
  `${name}{cluster=${quoted(cluster)},node=${quoted(node)}}`;

/** Selectors of the containers of a namespace, or of one pod: one for each way in which a scrape names their labels. `range`: such as `[1d]`. */
export function ofHolder(name: string, namespace: string, pod: string | undefined, range = ''): readonly string[] {
  return ['', 'exported_', 'workload_'].map((prefix) => {
    const names = [`${prefix}namespace=${quoted(namespace)}`, ...(pod === undefined ? [] : [`${prefix}pod=${quoted(pod)}`])];
    const others = prefix === '' ? ['exported_namespace=""', 'workload_namespace=""'] : [];
    return `${name}{${[...names, ...others].join(',')}}${range}`;
  });
}
