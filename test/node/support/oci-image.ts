import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** What a registry's client says when there is no way to it. */
export const OFFLINE =
  /\b(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ETIMEDOUT|ENOTCACHED)\b|Could not resolve|Failed to fetch/;

export interface ContainerConfig {
  readonly architecture: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly ExposedPorts: Readonly<Record<string, object>>;
    readonly Labels: Readonly<Record<string, string>>;
  };
}

/** Why the image cannot be made and unpacked here; undefined when it can. */
export function whyNoImage(): string | undefined {
  for (const program of ['umoci', 'apt-get', 'dpkg-deb']) {
    if (spawnSync(program, ['--version']).error !== undefined) return `there is no ${program}`;
  }
  return process.getuid?.() === 0 ? undefined : 'it takes root to unpack it';
}

/** Makes the image into a layout. Gives why not, when a registry of packages is out of reach. */
export function makeImage(layout: string, ...flags: readonly string[]): string | undefined {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/make-image.mjs', ...flags, layout], { encoding: 'utf8' });
  if (status === 0) return undefined;
  if (OFFLINE.test(stderr)) return 'the registries of packages are out of reach';
  throw new Error(`the image was not made:\n${stderr.slice(-3_000)}`);
}

/** Unpacks the image of one architecture into `directory/rootfs`, with a `config.json` for a runtime beside it. */
export function unpackImage(layout: string, tag: string, directory: string): string {
  execFileSync('umoci', ['unpack', '--image', `${layout}:${tag}`, directory], { stdio: 'pipe' });
  return join(directory, 'rootfs');
}

interface Descriptor {
  readonly digest: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A blob of a layout by its digest. */
function blob<T>(layout: string, digest: string): T {
  return JSON.parse(readFileSync(join(layout, 'blobs', digest.replace(':', '/')), 'utf8')) as T;
}

/** What the image behind a tag says of itself, and the digests of its unpacked layers. */
export function imageConfig(layout: string, tag: string): ContainerConfig & { readonly rootfs: { readonly diff_ids: readonly string[] } } {
  const { manifests } = JSON.parse(readFileSync(join(layout, 'index.json'), 'utf8')) as { manifests: readonly Descriptor[] };
  const found = manifests.find(({ annotations }) => annotations?.['org.opencontainers.image.ref.name'] === tag);
  const { config } = blob<{ config: Descriptor }>(layout, found?.digest ?? '');
  return blob(layout, config.digest);
}

/** Where runc is, which runs one container without any engine; undefined where it is not. */
export function runc(): string | undefined {
  const cache = process.env.K8S_CACHE ?? join(homedir(), 'k8s-cache');
  return ['runc', join(cache, 'bin/runc')].find((program) => spawnSync(program, ['--version']).error === undefined);
}

interface Bundle {
  process: Record<string, unknown> & { args: readonly string[]; env: readonly string[] };
  root: Record<string, unknown>;
  mounts: readonly object[];
  linux: { namespaces: readonly { readonly type: string }[] } & Record<string, unknown>;
}

/**
 * Makes the unpacked image a container as the DaemonSet has it: a root that is read-only, no capability, host directories mounted. It
 * stays in the network of this machine, so that it can be asked.
 */
export function confine(directory: string, args: readonly string[], volumes: Readonly<Record<string, string>>): void {
  const path = join(directory, 'config.json');
  const bundle = JSON.parse(readFileSync(path, 'utf8')) as Bundle;
  const mounts = Object.entries(volumes).map(([source, destination]) => ({ source, destination, type: 'bind', options: ['rbind', 'ro'] }));
  bundle.process = {
    ...bundle.process,
    terminal: false,
    args: [...bundle.process.args, ...args],
    capabilities: { bounding: [], effective: [], inheritable: [], permitted: [], ambient: [] },
    noNewPrivileges: true,
  };
  bundle.root = { ...bundle.root, readonly: true };
  bundle.mounts = [...bundle.mounts, ...mounts];
  bundle.linux.namespaces = bundle.linux.namespaces.filter(({ type }) => type !== 'network' && type !== 'user');
  writeFileSync(path, JSON.stringify(bundle));
}
