import { alertNames } from '../rules/rule-files.ts';
import { commentsOf } from './comments.ts';

export type Schema = Readonly<Record<string, unknown>>;

const text: Schema = { type: 'string' };
const flag: Schema = { type: 'boolean' };
const port = { type: 'integer', minimum: 1, maximum: 65_535 };
const count: Schema = { type: 'integer', minimum: 0 };
const anything: Schema = { type: 'object' };
const texts: Schema = { type: 'object', additionalProperties: { type: 'string' } };
const list: Schema = { type: 'array', items: { type: 'object' } };
const duration: Schema = { type: 'string', pattern: '^$|^([0-9]+(ms|s|m|h|d|w|y))+$' };
const path: Schema = { type: 'string', pattern: '^/' };
const optionalPath: Schema = { type: 'string', pattern: '^$|^/' };
const closed = (properties: Schema): Schema => ({ type: 'object', additionalProperties: false, properties });

const monitor = closed({
  ...{ enabled: flag, labels: texts, interval: duration, scrapeTimeout: duration },
  ...{ tlsConfig: anything, basicAuth: anything, relabelings: list, metricRelabelings: list },
});

const alert = closed({
  enabled: { ...flag, description: 'Whether the alert is a rule.' },
  severity: { enum: ['critical', 'warning', 'info'], description: 'The label severity of the alert.' },
  for: { ...duration, description: 'How long the expression must hold before the alert fires.' },
  keepFiringFor: { ...duration, description: 'How long the alert fires on after the expression has ended.' },
  threshold: { type: 'number', description: 'The number with which the expression compares.' },
});

const hostPath = {
  ...closed({ name: text, hostPath: path, mountPath: path, readOnly: flag, type: text, mountPropagation: text }),
  required: ['name', 'hostPath', 'mountPath'],
};

/** Helm's regular expressions have no look-ahead: the agent checks such a pattern itself. */
function withoutLookahead(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutLookahead);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => key !== 'pattern' || typeof value !== 'string' || !/\(\?[=!<]/.test(value));
  return Object.fromEntries(kept.map(([key, value]) => [key, withoutLookahead(value)]));
}

/** Gives each value the comment that `values.yaml` has above it. Throws where a value has none. */
function described(schema: Schema, comments: ReadonlyMap<string, string>, path = ''): Schema {
  const description = comments.get(path);
  const {
    properties,
    description: _,
    ...rest
  } = schema as { readonly properties?: Readonly<Record<string, Schema>>; readonly description?: string };
  const isLeaf = properties === undefined || path === 'config' || path === 'rules.alerts';
  if (isLeaf && description === undefined) throw new Error(`deploy/chart/values.yaml has no comment above ${path}`);
  const text = description === undefined ? {} : { description };
  if (isLeaf) return { ...schema, ...text };
  const inner = Object.entries(properties).map(([name, one]) => {
    const at = path === '' ? name : `${path}.${name}`;
    return [name, at === 'global' ? one : described(one, comments, at)];
  });
  return { ...rest, ...text, properties: Object.fromEntries(inner) };
}

/**
 * The schema of the chart's values. `config` is the schema of the configuration file, `families` are the names of the device families, `yaml` is the text of
 * `values.yaml`, whose comments describe the values.
 */
export function valuesSchema(config: Schema, families: readonly string[], yaml: string): Schema {
  return described(plainSchema(config, families), commentsOf(yaml));
}

function plainSchema(config: Schema, families: readonly string[]): Schema {
  const { $schema: _, definitions, $defs, ...own } = withoutLookahead(config) as Schema;
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Values of the chart device-agent',
    ...(definitions === undefined ? {} : { definitions }),
    ...($defs === undefined ? {} : { $defs }),
    ...closed({
      // Helm adds the values of all charts to those of a subchart.
      global: anything,
      image: closed({
        registry: text,
        repository: text,
        tag: text,
        digest: text,
        pullPolicy: { enum: ['Always', 'IfNotPresent', 'Never'] },
      }),
      imagePullSecrets: list,
      ...{ nameOverride: text, fullnameOverride: text, namespaceOverride: text, commonLabels: texts },
      port,
      config: { ...own, type: 'object' },
      restartOnConfigChange: flag,
      families: closed(Object.fromEntries(families.map((name) => [name, closed({ enabled: flag })]))),
      plugin: closed({ enabled: flag, directory: path }),
      kubelet: closed({ rootDir: path }),
      state: closed({ enabled: flag, hostPath: path }),
      nvidia: closed({ runtimeClassName: text, visibleDevices: flag, driverRoot: optionalPath }),
      dev: closed({ enabled: flag }),
      kmsg: closed({ enabled: flag, resources: anything }),
      processes: closed({ enabled: flag }),
      nvme: closed({ smart: closed({ enabled: flag }) }),
      publish: closed({
        ...{ enabled: flag, events: flag, resources: anything, extraArgs: { type: 'array', items: text } },
        deviceTaintRules: { enum: ['off', 'None', 'NoSchedule', 'NoExecute'] },
        nodeTaint: { enum: ['off', 'PreferNoSchedule', 'NoSchedule', 'NoExecute'] },
      }),
      hostPaths: { type: 'array', items: hostPath },
      webConfig: closed({ secretName: text, tls: flag, requiresClientCertificate: flag }),
      ...{ podMonitor: monitor, serviceMonitor: monitor, scrapeAnnotations: flag },
      service: closed({ enabled: flag, port: { ...port, type: ['integer', 'null'] }, annotations: texts }),
      rules: closed({
        ...{ enabled: flag, labels: texts, recording: flag, selector: text, runbooks: text },
        prices: { type: 'object', additionalProperties: { type: 'number', minimum: 0 } },
        dcgm: flag,
        fleet: flag,
        stall: closed({ enabled: flag, jobLabel: { type: 'string', pattern: '^[a-zA-Z_][a-zA-Z0-9_]*$' } }),
        alerts: closed(Object.fromEntries(alertNames.map((name) => [name, alert]))),
      }),
      fleet: closed({
        enabled: flag,
        prometheus: closed({ url: text, tenant: text, secret: text, secretKeys: texts }),
        extraArgs: { type: 'array', items: text },
        resources: anything,
      }),
      dashboards: closed({ enabled: flag, labels: texts, annotations: texts, namespace: text }),
      networkPolicy: closed({ enabled: flag, from: list }),
      test: closed({ hostAliases: list }),
      serviceAccount: closed({ create: flag, name: text, annotations: texts }),
      ...{ priorityClassName: text, resourceQuota: closed({ enabled: flag, pods: { type: ['string', 'integer'] } }) },
      updateStrategy: anything,
      ...{ revisionHistoryLimit: count, terminationGracePeriodSeconds: count, hostPID: flag, hostNetwork: flag, dnsPolicy: text },
      ...{ resources: anything, podSecurityContext: anything, securityContext: anything },
      ...{ nodeSelector: texts, affinity: anything, tolerations: list },
      ...{ podAnnotations: texts, podLabels: texts, daemonSetAnnotations: texts },
      extraArgs: { type: 'array', items: text },
      extraEnv: { type: 'array', items: { type: 'object', required: ['name'], properties: { name: text } } },
      ...{ extraVolumes: list, extraVolumeMounts: list, initContainers: list, sidecars: list, extraManifests: list },
    }),
  };
}
