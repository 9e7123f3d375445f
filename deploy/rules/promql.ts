/**
 * Placeholders in generated expressions. The plain rule file and the chart fill them in: the first with defaults, the second with values.
 */
export const SELECTOR = '__selector__';
export const THRESHOLD = '__threshold__';
export const RUNBOOKS = '__runbooks__';
/** The agents serve their runbooks: this is their address with the default names of the chart. */
export const DEFAULT_RUNBOOKS = 'http://device-agent.device-agent.svc:9835/docs/runbooks';

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
 * Growth of a counter, one value for each combination of the labels. A new pod of the agent has series of its own: while the range covers
 * both, each has a part of the growth, so they add up. Jobs that scrape the same agent give the same growth, so one of them counts.
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

/** Gives the holder's namespace one name, however the scrape named it. */
export function withHolderNamespace(expression: string): string {
  return ['namespace', 'exported_namespace', 'workload_namespace'].reduce(
    (inner, label) => `label_replace(${inner}, "holder_namespace", "$1", "${label}", "(.+)")`,
    expression,
  );
}
