import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';

const HELM = process.env.HELM ?? 'helm';

/** Why the chart cannot be rendered here; undefined when it can. */
export function whyNoHelm(): string | undefined {
  return spawnSync(HELM, ['version']).status === 0 ? undefined : 'there is no helm in PATH or HELM';
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: never;
  readonly data?: Readonly<Record<string, string>>;
}

/** Sets of values that the chart ships. */
export const presets = readdirSync('deploy/chart/presets').map((name) => name.replace(/\.yaml$/, ''));
export const presetFile = (name: string): string => `deploy/chart/presets/${name}.yaml`;

/** The rendered chart. A helm that was built from source takes itself for an old cluster, so the version is told. */
export function renderText(...words: readonly string[]): string {
  const all = ['template', 'device-agent', 'deploy/chart', '--namespace=device-agent', '--kube-version=1.36.3', ...words];
  return execFileSync(HELM, all, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], maxBuffer: 64 * 1024 * 1024 });
}

export function render(...words: readonly string[]): readonly Manifest[] {
  return parseAllDocuments(renderText(...words))
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null);
}

export function manifestOf(manifests: readonly Manifest[], kind: string): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind);
  if (found === undefined) throw new Error(`no ${kind}`);
  return found;
}
