import { CHART_VALUES, type HostPart } from '../../src/model/declaration.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { type Manifest, manifestOf } from './chart.ts';

interface Container {
  readonly name: string;
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
    'kernel-log': spec.containers.some(({ name, securityContext }) => name === 'kernel-log' && securityContext.privileged === true),
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

interface HostPaths {
  readonly readOnly: readonly string[];
  readonly writable: readonly string[];
}

/** The paths of the host that the pod of a set of values mounts. */
function hostPathsOf(manifests: readonly Manifest[]): HostPaths {
  const { agent, volumes } = podOf(manifests);
  const paths = (isReadOnly: boolean): readonly string[] =>
    agent.volumeMounts
      .filter(({ readOnly = false }) => readOnly === isReadOnly)
      .flatMap(({ name }) => volumes.find((volume) => volume.name === name)?.hostPath?.path ?? []);
  return { readOnly: paths(true), writable: paths(false) };
}

function podOf(manifests: readonly Manifest[]): PodSpec & { readonly agent: Container } {
  const { spec } = (manifestOf(manifests, 'DaemonSet').spec as { template: { spec: PodSpec } }).template;
  const [agent] = spec.containers;
  if (agent === undefined) throw new Error('no container');
  return { ...spec, agent };
}

/** One line of the table of privileges: what the pod of a set of values may do on the host, beyond the paths that all sets have. */
function privilegesOf(preset: string, manifests: readonly Manifest[], common: HostPaths): string {
  const { agent, hostPID, hostNetwork } = podOf(manifests);
  const { privileged = false, capabilities } = agent.securityContext;
  const added = capabilities?.add?.map((name) => `**${name}**`).join(', ') ?? 'no capability';
  const rights = privileged ? '**privileged**' : added;
  const namespaces = [hostPID === true ? 'PID' : '', hostNetwork === true ? 'network' : ''].filter((name) => name !== '');
  const { readOnly, writable } = hostPathsOf(manifests);
  const [reads, writes] = [beyond(readOnly, common.readOnly), beyond(writable, common.writable)].map(listed);
  return `| \`${preset}\` | ${rights} | ${namespaces.join(', ') || 'none'} | ${reads} | ${writes} |`;
}

const beyond = (paths: readonly string[], common: readonly string[]): readonly string[] => paths.filter((path) => !common.includes(path));
const listed = (paths: readonly string[]): string => paths.map((path) => `\`${path}\``).join(', ');

const TITLE = '## What each preset of the chart may do\n';

/** The page with its generated part: one line for each set of values, and one for each check that needs a part of the host. */
export function withPrivileges(
  page: string,
  presets: readonly (readonly [string, readonly Manifest[]])[],
  families: readonly DeviceFamily[],
): string {
  const all = presets.map(([, manifests]) => hostPathsOf(manifests));
  const inAll = (paths: keyof HostPaths): readonly string[] =>
    (all[0]?.[paths] ?? []).filter((path) => all.every((one) => one[paths].includes(path)));
  const common: HostPaths = { readOnly: inAll('readOnly'), writable: inAll('writable') };
  const part = `${TITLE}
This part is generated from the pods that the chart makes with each of \`deploy/chart/presets\`. All of them run as UID 0 with a read-only root file
system and without a token of the API server. Those without the right **privileged** drop all capabilities but the named ones. All read ${listed(common.readOnly)} of the host, and write ${listed(common.writable)}. \`publish\` adds a second
pod on each node, which has a token, no capability, and only \`/var/lib/device-agent\`, read-only ([rights](publish.md#rights)). \`kernel-log\` adds a
second container, which is privileged and has only \`/dev/kmsg\`, read-only ([why](#the-reader-of-the-kernel-log)).

| Preset | Rights | Namespaces of the host | Further paths, read-only | Further paths, writable |
|---|---|---|---|---|
${presets.map(([preset, manifests]) => privilegesOf(preset, manifests, common)).join('\n')}

Families need \`/sys\` and \`/proc\`, and for some checks more. The problem, and the metric \`device_agent_checks_disabled\` with its code as \`reason\`, say
on a node with such devices that a part is not given. \`plugin.enabled\` includes \`dev.enabled\`.

| Family | Check | Value of the chart | Problem without it |
|---|---|---|---|
${needLines(families).join('\n')}

`;
  const [before = '', rest = ''] = page.split(TITLE);
  return before + part + rest.slice(rest.indexOf('\n## ') + 1);
}
