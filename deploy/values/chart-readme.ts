import { parse, stringify } from 'yaml';
import type { Schema } from './values-schema.ts';

/** The README of the chart: what somebody needs who has only the chart. `schema` has the descriptions, `yaml` the defaults. */
export function chartReadme(schema: Schema, yaml: string): string {
  const defaults = parse(yaml) as object;
  const rows = valuesIn(schema).map(
    ({ path, description }) => `| \`${path}\` | ${defaultText(defaults, path)} | ${description.replaceAll('|', '\\|')} |`,
  );
  return `<!-- Generated from deploy/values/chart-readme.ts and the comments of values.yaml by \`npm run generate\`. Edit there. -->

${HEAD}
## Values

| Value | Default | Meaning |
|---|---|---|
${rows.join('\n')}
`;
}

interface Described {
  readonly path: string;
  readonly description: string;
}

/** The values with their descriptions: what the schema names, without the keys of \`config\` and the settings of single alerts. */
export function valuesIn(schema: Schema, path = ''): readonly Described[] {
  const { properties, description = '' } = schema as {
    readonly properties?: Readonly<Record<string, Schema>>;
    readonly description?: string;
  };
  if (properties === undefined || path === 'config' || path === 'rules.alerts') return [{ path, description }];
  return Object.entries(properties).flatMap(([name, inner]) =>
    name === 'global' ? [] : valuesIn(inner, path === '' ? name : `${path}.${name}`),
  );
}

function defaultText(defaults: object, path: string): string {
  const value = path.split('.').reduce<unknown>((at, name) => (at as Readonly<Record<string, unknown>> | undefined)?.[name], defaults);
  const text = stringify(value, { collectionStyle: 'flow', lineWidth: 0, defaultStringType: 'PLAIN' }).trim();
  return `\`${value === '' ? '""' : text}\``;
}

const HEAD = `# device-agent

One agent for each node of a cluster. It knows which pod holds which device, how that device is doing, and whether it is healthy. It serves this to
Prometheus, on a page, and, if you want it, to the kubelet and to the API server.

## Install

You need Kubernetes 1.26 or later, helm 3, and the image in a registry that the nodes reach. From the folder of this chart:

\`\`\`
kubectl create namespace device-agent
kubectl label namespace device-agent pod-security.kubernetes.io/enforce=privileged
helm install device-agent . --namespace device-agent --set image.registry=REGISTRY --wait
kubectl -n device-agent exec ds/device-agent -- device-agent doctor
helm test device-agent --namespace device-agent                  # needs DNS in the cluster
\`\`\`

The label admits hostPath volumes; the container itself has no capability and is not privileged. \`doctor\` ends with status 1 when it has findings, and names the
remedy of each. \`presets\` has values for common cases, for \`-f\`:

\`\`\`
helm upgrade device-agent . --namespace device-agent --reset-then-reuse-values -f presets/prometheus-operator.yaml
\`\`\`

The page of an agent, with its runbooks:

\`\`\`
kubectl -n device-agent port-forward ds/device-agent 9835     # then open port 9835 of this machine
\`\`\`

## Upgrade and roll back

The new agent of a node starts before the old one ends. A change of \`config\` alone restarts nothing. \`helm rollback\` brings the old objects back. Before a rollback
to a revision without the publisher, or without one of its taints, switch that off by \`helm upgrade\`: only then a hook removes what the publisher wrote.

## Uninstall

\`\`\`
helm uninstall device-agent --namespace device-agent
\`\`\`

| What | After the uninstallation |
|---|---|
| Conditions, taint rules and taints of the publisher | A hook removes them from all nodes before the publisher goes. It waits up to four minutes. If a node does not answer, the uninstallation stops and names how many; then repair the node, or run \`helm uninstall --no-hooks\` |
| Events of the publisher | The API server deletes them after an hour |
| Resources of the device plugin | The kubelet sets their allocatable number to 0 at once, and keeps the capacity for five minutes. Pods keep their devices |
| \`state.hostPath\` on each node | Stays. Delete it there if you do not install the chart again |
| The directories \`/var/run/cdi\`, \`/etc/cdi\`, \`plugins\` and \`device-plugins\` of the kubelet | Stay; the kubelet or the agent's pod makes those that are missing, and they are empty then |
| A pod of \`helm test\` that failed | Stays with its log: \`kubectl -n device-agent delete pod device-agent-test\` |
| The namespace | Stays |

## Settings that the chart refuses

Some keys of \`config\` have a value of the chart instead, because other objects must know them too: \`web.listen-address\` (\`port\`), \`web.config.file\`
(\`webConfig\`), \`state.file\` (\`state\`), \`path.sysfs\`, \`path.procfs\` and \`path.dev\` (mounts of the chart). Helm then prints a sentence that says which.
`;
