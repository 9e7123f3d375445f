import { readFileSync } from 'node:fs';
import { parse, parseAllDocuments } from 'yaml';

/** One agent, as service discovery finds it. */
export interface Target {
  readonly address: string;
  readonly node: string;
}

/** The ways to scrape that are shipped or usual. The label `cluster` tells their series apart in one Prometheus. */
export const WAYS = ['podmonitor', 'servicemonitor', 'plain', 'annotations'] as const;
export type Way = (typeof WAYS)[number];

interface Relabeling {
  readonly sourceLabels?: readonly string[];
  readonly targetLabel?: string;
  readonly regex?: string;
  readonly action?: string;
}
interface Endpoint {
  readonly honorLabels: boolean;
  readonly relabelings: readonly Relabeling[];
}
interface Monitor {
  readonly kind: string;
  readonly spec: { readonly podMetricsEndpoints?: readonly Endpoint[]; readonly endpoints?: readonly Endpoint[] };
}
interface ScrapeConfig {
  readonly honor_labels?: boolean;
  readonly relabel_configs: readonly object[];
}

const monitoring = (file: string): readonly Monitor[] =>
  parseAllDocuments(readFileSync(`deploy/kustomize/monitoring/${file}`, 'utf8')).map((document) => document.toJS() as Monitor);

/** What the operator makes of an endpoint: its own labels first, then the relabelings of the monitor. */
function ofOperator(endpoint: Endpoint | undefined, own: readonly string[]): ScrapeConfig {
  if (endpoint === undefined) throw new Error('the monitor has no endpoint');
  const generated = own.map((label) => ({ source_labels: [`__meta_kubernetes_${label}`], target_label: TARGET_LABELS[label] }));
  const added = endpoint.relabelings.map(({ sourceLabels, targetLabel, regex, action }) => ({
    ...(sourceLabels && { source_labels: sourceLabels }),
    ...(targetLabel && { target_label: targetLabel }),
    ...(regex && { regex }),
    ...(action && { action }),
  }));
  return { honor_labels: endpoint.honorLabels, relabel_configs: [...generated, ...added] };
}

const TARGET_LABELS: Readonly<Record<string, string>> = {
  namespace: 'namespace',
  pod_name: 'pod',
  pod_container_name: 'container',
  service_name: 'service',
};
const AGENT = ['namespace', 'pod_name', 'pod_container_name'];

/** Target labels that name the agent's pod, as users add them. */
const named = AGENT.map((label) => ({ source_labels: [`__meta_kubernetes_${label}`], target_label: TARGET_LABELS[label] }));

const shipped: Readonly<Record<Way, () => ScrapeConfig>> = {
  podmonitor: () => ofOperator(monitoring('podmonitor.yaml')[0]?.spec.podMetricsEndpoints?.[0], AGENT),
  servicemonitor: () =>
    ofOperator(monitoring('servicemonitor.yaml').find(({ kind }) => kind === 'ServiceMonitor')?.spec.endpoints?.[0], [
      ...AGENT,
      'service_name',
    ]),
  plain() {
    const { scrape_configs } = parse(readFileSync('deploy/prometheus/scrape-config.yaml', 'utf8')) as { scrape_configs: ScrapeConfig[] };
    const [config] = scrape_configs;
    if (config === undefined) throw new Error('no scrape configuration');
    return { ...config, relabel_configs: [...config.relabel_configs, ...named] };
  },
  // A job for all pods with the annotation prometheus.io/scrape, as charts of Prometheus ship it.
  annotations: () => ({
    honor_labels: false,
    relabel_configs: [
      { source_labels: ['__meta_kubernetes_pod_annotation_prometheus_io_scrape'], action: 'keep', regex: 'true' },
      { source_labels: ['__meta_kubernetes_pod_node_name'], target_label: 'node' },
      ...named,
    ],
  }),
};

/** One job of Prometheus. The labels of service discovery are given instead of discovered. */
export function scrapeJob(way: Way, targets: readonly Target[], cluster: string = way): object {
  const { honor_labels, relabel_configs } = shipped[way]();
  return {
    job_name: cluster,
    // An answer may take as long: on a busy machine one second is too short.
    scrape_interval: '5s',
    honor_labels,
    relabel_configs,
    static_configs: targets.map(({ address, node }) => ({
      targets: [address],
      labels: {
        cluster,
        __meta_kubernetes_namespace: 'monitoring',
        __meta_kubernetes_pod_name: `device-agent-${node}`,
        __meta_kubernetes_pod_container_name: 'device-agent',
        __meta_kubernetes_service_name: 'device-agent',
        __meta_kubernetes_pod_node_name: node,
        __meta_kubernetes_pod_label_app_kubernetes_io_name: 'device-agent',
        __meta_kubernetes_pod_container_port_name: 'metrics',
        __meta_kubernetes_pod_annotation_prometheus_io_scrape: 'true',
      },
    })),
  };
}

/** The shipped rules with short times, so that a test need not wait for minutes. */
export function quickRules(path = 'deploy/rules.yaml'): string {
  return readFileSync(path, 'utf8')
    .replaceAll(/interval: 1m$/gm, 'interval: 1s')
    .replaceAll(/\[5m:1m\]/g, '[1m:1s]')
    .replaceAll(/^(\s+for: ).*$/gm, '$11s')
    .replaceAll(/^(\s+keep_firing_for: ).*$/gm, '$11s');
}
