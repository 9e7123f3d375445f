import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { daemonSet, imageStart } from '../../support/image.ts';

/** The command line that the image begins with, without its arguments: those are the manifest's. */
export function entrypoint(): readonly string[] {
  return imageStart('deploy/Dockerfile').entrypoint;
}

/**
 * Lays out what the image holds, as far as it can be had without a registry: this machine's Node with the libraries that it is
 * linked to, and the bundle where the entry point expects it.
 */
export function layOutImage(directory: string): void {
  const words = entrypoint();
  const [node = ''] = words;
  const program = words.find((word) => word.endsWith('/main.js')) ?? '';
  const libraries = execFileSync('ldd', [process.execPath], { encoding: 'utf8' }).match(/\/\S+/g) ?? [];
  const place = node.startsWith('/') ? node : join('/bin', node);
  for (const [from, to] of [[process.execPath, place], ...libraries.map((path) => [path, path])] as [string, string][]) {
    mkdirSync(join(directory, dirname(to)), { recursive: true });
    cpSync(from, join(directory, to), { dereference: true });
  }
  execFileSync(process.execPath, ['scripts/bundle.mjs', join(directory, dirname(program))], { stdio: 'pipe' });
}

export interface Container {
  readonly env: readonly { readonly name: string }[];
  readonly volumeMounts: readonly { readonly name: string }[];
  readonly resources: { readonly requests: { readonly cpu: string }; readonly limits: object };
}

interface Template {
  readonly metadata: object;
  readonly spec: {
    readonly containers: readonly Container[];
    readonly serviceAccountName?: string;
    readonly volumes: readonly { readonly name: string; readonly hostPath?: { readonly path: string } }[];
  };
}

interface Pod extends Template {
  readonly apiVersion: string;
  readonly kind: string;
}

interface DaemonSet {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly template: Template };
}

/**
 * The pod of the DaemonSet as a static one, word for word but for where its volumes lie on the machine, and without what only an API server has: the
 * configuration and the service account.
 */
export function daemonSetPod(hostPaths: Readonly<Record<string, string>>): Pod {
  const set = daemonSet<DaemonSet>();
  const { metadata, spec } = set.spec.template;
  const { serviceAccountName: _, ...rest } = spec;
  const volumes = spec.volumes.flatMap(({ name, hostPath }) =>
    hostPath === undefined ? [] : [{ name, hostPath: { ...hostPath, path: hostPaths[name] ?? hostPath.path } }],
  );
  const containers = spec.containers.map((container) => ({
    ...container,
    env: container.env.filter((one) => one.name !== 'DEVICE_AGENT_CONFIG_FILE'),
    volumeMounts: container.volumeMounts.filter((one) => volumes.some(({ name }) => name === one.name)),
  }));
  const { name, namespace } = set.metadata;
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name, namespace }, spec: { ...rest, containers, volumes } };
}
