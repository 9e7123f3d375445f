import { parseAllDocuments, stringify } from 'yaml';

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
}

const HEAD =
  '# Generated from deploy/chart by `npm run generate`, which needs helm. Change the values there, or patch this in an overlay of your own.\n';

const namespace = {
  ...{ apiVersion: 'v1', kind: 'Namespace' },
  // hostPath volumes violate the baseline level.
  metadata: { name: 'device-agent', labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } },
};

/** The presets with an overlay. Others are for helm, whose `template` makes plain manifests of any values. */
const OVERLAYS = ['device-plugin', 'kernel-log', 'nvidia', 'prometheus-operator', 'publish'];

/**
 * The plain manifests of the chart by path: with its default values, and with some presets. `render` returns the text of `helm template` with further
 * arguments, `read` the text of a file of the project.
 */
export function kustomizeFiles(
  render: (...words: readonly string[]) => string,
  read: (path: string) => string,
): Readonly<Record<string, string>> {
  const files: Record<string, string> = {};
  const add = (folder: string, comment: string, manifests: readonly object[]): void => {
    files[`deploy/kustomize/${folder}/manifests.yaml`] = HEAD + manifests.map((one) => stringify(one, { lineWidth: 0 })).join('---\n');
    files[`deploy/kustomize/${folder}/kustomization.yaml`] =
      `${comment}apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [manifests.yaml]\n`;
  };
  add('base', '# The least privilege that works: monitoring only.\n', [namespace, ...plain(render())]);
  for (const name of OVERLAYS) {
    const preset = `deploy/chart/presets/${name}.yaml`;
    // Dashboards are files of their own, for an import: dashboards/*.json.
    const manifests = plain(render('-f', preset, '--set=dashboards.enabled=false'));
    add(`overlays/${name}`, read(preset).replace(/^[^#][\s\S]*/m, ''), [namespace, ...manifests]);
  }
  for (const kind of ['PodMonitor', 'ServiceMonitor']) {
    const value = `${kind[0]?.toLowerCase()}${kind.slice(1)}`;
    const monitor = plain(render(`--set=${value}.enabled=true`)).find((one) => one.kind === kind);
    files[`deploy/kustomize/monitoring/${kind.toLowerCase()}.yaml`] = HEAD + stringify(monitor, { lineWidth: 0 });
  }
  return files;
}

/** The objects that stay in the cluster, without what only helm uses. */
function plain(text: string): readonly Manifest[] {
  const manifests = parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null && manifest.metadata.annotations?.['helm.sh/hook'] === undefined);
  return manifests.map((manifest) => withoutHelm(manifest) as Manifest);
}

function withoutHelm(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutHelm);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'helm.sh/chart' && key !== 'app.kubernetes.io/managed-by');
  return Object.fromEntries(kept.map(([key, one]) => [key, withoutHelm(one)]));
}
