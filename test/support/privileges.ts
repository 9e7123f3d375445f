import { CHART_VALUES, type HostPart } from '../../src/model/host-need.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
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

/** Whether the pod of the chart has a part of the host. */
export function hasPart(part: HostPart, manifests: readonly Manifest[]): boolean {
  const { spec } = (manifestOf(manifests, 'DaemonSet').spec as { template: { spec: PodSpec } }).template;
  const { privileged = false, capabilities } = spec.containers[0]?.securityContext ?? {};
  const mounts = (path: string): boolean => spec.volumes.some(({ hostPath }) => hostPath?.path === path);
  const parts: Readonly<Record<HostPart, boolean>> = {
    'device-nodes': mounts('/dev'),
    'kernel-log': privileged && mounts('/dev/kmsg'),
    'process-files': ['SYS_PTRACE', 'DAC_READ_SEARCH'].every((name) => capabilities?.add?.includes(name) === true),
    'process-ids': spec.hostPID === true,
    network: spec.hostNetwork === true,
    'admin-commands': privileged,
  };
  return parts[part];
}

const needLines = (families: readonly DeviceFamily[]): readonly string[] =>
  families.flatMap(({ name, needs = [] }) =>
    needs.map(({ check, part, problems }) => {
      const shown = problems.map((code) => `\`${code}\``).join(', ') || 'no read shows it';
      return `| \`${name}\` | \`${check}\` | \`${CHART_VALUES[part]}\` | ${shown} |`;
    }),
  );

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
export function privilegesPage(presets: readonly (readonly [string, readonly Manifest[]])[], families: readonly DeviceFamily[]): string {
  return `# Privileges

This page is generated from the pods that the chart makes with each of \`deploy/chart/presets\`. [security.md](security.md) explains each mount
and privilege. All pods run as UID 0 with a read-only root file system and without a token of the API server. \`publish\` adds a second pod on each node,
which has a token, no capability, and only \`/var/lib/device-agent\`, read-only. With \`publish.nodeTaint\` the token may patch nodes; only a policy limits that
to one taint of its own node: [publish.md](publish.md).

| Preset | Rights | Namespaces of the host | Host paths, read-only | Host paths, writable |
|---|---|---|---|---|
${presets.map(([preset, manifests]) => privilegesOf(preset, manifests)).join('\n')}

## Checks that need a part of the host

Families need \`/sys\` and \`/proc\`, and for some checks more. The problem, and the metric \`device_agent_checks_disabled\` with its code as \`reason\`, say
on a node with such devices that a part is not given. \`plugin.enabled\` includes \`dev.enabled\`.

| Family | Check | Value of the chart | Problem without it |
|---|---|---|---|
${needLines(families).join('\n')}
`;
}
