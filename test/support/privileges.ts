import { type Manifest, manifestOf } from './chart.ts';

interface Container {
  readonly securityContext: {
    readonly privileged?: boolean;
    readonly capabilities?: { readonly drop: readonly string[]; readonly add?: readonly string[] };
  };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}
interface PodSpec {
  readonly hostPID?: boolean;
  readonly hostNetwork?: boolean;
  readonly runtimeClassName?: string;
  readonly containers: readonly Container[];
  readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
}

/** One line of the table of privileges: what the pod of a set of values may do on the host. */
function privilegesOf(preset: string, manifests: readonly Manifest[]): string {
  const { spec } = (manifestOf(manifests, 'DaemonSet').spec as { template: { spec: PodSpec } }).template;
  const [agent] = spec.containers;
  if (agent === undefined) throw new Error('no container');
  const paths = (isReadOnly: boolean): string =>
    agent.volumeMounts
      .filter(({ readOnly = false }) => readOnly === isReadOnly)
      .flatMap(({ name }) => spec.volumes.find((volume) => volume.name === name)?.hostPath?.path ?? [])
      .map((path) => `\`${path}\``)
      .join(', ');
  const { privileged = false, capabilities } = agent.securityContext;
  const added = capabilities?.add?.map((name) => `**${name}**`).join(', ') ?? 'no capability';
  const rights = privileged ? '**privileged**' : `${added} (drops ${capabilities?.drop.join(', ')})`;
  const namespaces = [spec.hostPID === true ? 'PID' : '', spec.hostNetwork === true ? 'network' : ''].filter((name) => name !== '');
  return `| \`${preset}\` | ${rights} | ${namespaces.join(', ') || 'none'} | ${paths(true)} | ${paths(false)} |`;
}

/** The page with one line for each set of values. */
export function privilegesPage(presets: readonly (readonly [string, readonly Manifest[]])[]): string {
  return `# Privileges

This page is generated from the pods that the chart makes with each of \`deploy/chart/presets\`. [security.md](security.md) explains each mount
and privilege. All pods run as UID 0 with a read-only root file system and without a token of the API server.

| Preset | Rights | Namespaces of the host | Host paths, read-only | Host paths, writable |
|---|---|---|---|---|
${presets.map(([preset, manifests]) => privilegesOf(preset, manifests)).join('\n')}
`;
}
