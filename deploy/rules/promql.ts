/**
 * Placeholders in generated expressions. The plain rule file and the chart fill them in: the first with defaults, the second with values.
 */
export const SELECTOR = '__selector__';
export const THRESHOLD = '__threshold__';
export const RUNBOOKS = '__runbooks__';
/** The address of the agents with the default names of the chart. Each of them serves the runbooks. */
const SERVICE = 'http://device-agent.device-agent.svc:9835';
/** Template text: `then` with the address of the agent of the alert's node in `$page`; `otherwise` where that agent tells none. */
export const onPageOfNode = (then: string, otherwise = ''): string =>
  `{{ with query (printf "device_agent_web_info{cluster=%q,node=%q}" $labels.cluster $labels.node) }}{{ $page := (first .).Labels.url }}${then}${otherwise === '' ? '' : `{{ else }}${otherwise}`}{{ end }}`;
export const DEFAULT_RUNBOOKS = `${onPageOfNode('{{ $page }}', SERVICE)}/docs/runbooks`;

/** Labels that name a device in a fleet. `cluster` is absent within one cluster, which Prometheus treats as an empty label. */
export const DEVICE = 'cluster, node, device';
export const NODE = 'cluster, node';

/** A metric with its matchers and the administrator's selector. A trailing comma is valid in PromQL. */
export function series(name: string, matchers = ''): string {
  return `${name}{${matchers === '' ? '' : `${matchers},`}${SELECTOR}}`;
}

/** One value for each combination of the labels, without the labels of the scrape. */
export const by = (labels: string, expression: string): string => `max by (${labels}) (${expression})`;

/**
 * How fast a counter of a device grows, as a mean of five minutes: one value for each combination of the labels. `max` first makes one series of those
 * that tell the same counter: of the old and the new pod of the agent at a rollout, and of several jobs that scrape it. The growth of each alone lacks
 * what happens between the last value of one and the first of the next.
 */
export const rate = (labels: string, counter: string): string => `rate(${by(labels, counter)}[5m:1m])`;

/**
 * The sum of what counters grew, where series end and begin anyway or events are rare. Jobs that scrape the same agent give the same growth, so one of
 * them counts.
 */
export const grown = (labels: string, growth: string): string => by(labels, `sum by (${labels}, job) (${growth})`);

/**
 * The agents that answered within the last day. A firing alert DeviceAgentDown remembers its agent for longer, so that it does not end
 * before the agent answers or its target is gone.
 */
export const agentsBy = (matchers: string): string =>
  `(last_over_time(device_agent_build_info{${matchers}}[1d]) or last_over_time(ALERTS{alertname="DeviceAgentDown",alertstate="firing"}[1d]))`;

/** Matcher of the sensors that measure a whole board, without its parts and averages. */
export const WHOLE_BOARD = 'sensor!~"module.*|.*_average"';

/** One value for each device: the power of the whole board. */
export const BOARD_POWER = by(DEVICE, series('device_power_watts', WHOLE_BOARD));

/** One value for each device: how busy its busiest engine is. */
export const BUSY = by(DEVICE, series('device_utilization_ratio'));

/** The devices that a container holds, one value for each. */
export const ALLOCATED = by(DEVICE, series('container_device_allocation', 'device!=""'));

/**
 * One value for each device, with its family, kind and model. Two devices of one name, as on nodes without the label `node`, must not make
 * a whole rule fail: `topk` takes one of them.
 */
export const IDENTITY_OF_DEVICE = `topk by (${DEVICE}) (1, ${by(`${DEVICE}, family, kind, model`, series('device_info'))})`;

/** Gives labels of a holder one name each, however the scrape named them. */
export function withHolder(expression: string, labels: readonly string[]): string {
  return labels
    .flatMap((label) => ['', 'exported_', 'workload_'].map((prefix) => ({ label, from: `${prefix}${label}` })))
    .reduce((inner, { label, from }) => `label_replace(${inner}, "holder_${label}", "$1", "${from}", "(.+)")`, expression);
}
