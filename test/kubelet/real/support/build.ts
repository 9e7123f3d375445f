import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The releases of Kubernetes whose code the program is built with. */
export const RELEASES = ['1.36', '1.37'] as const;
export type Release = (typeof RELEASES)[number];

/** Flags by which Go takes the modules of a release, and the code for what it calls otherwise. */
const FLAGS: Readonly<Record<Release, readonly string[]>> = {
  '1.36': ['-tags', 'grpcnotrace,k8s1.36', '-modfile=1.36.mod'],
  '1.37': ['-tags', 'grpcnotrace'],
};

/** Where the Go program lies. */
const SOURCE = join(dirname(fileURLToPath(import.meta.url)), '../..');
const ENVIRONMENT = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-buildvcs=false' };

export type Built = { readonly path: string } | { readonly missing: string };

/**
 * The program around the kubelet's own device manager, built unless the same sources were built before. `missing` says why there is
 * none: no Go, or modules that cannot be had. Sources that do not compile are an error.
 */
export async function buildKubelet(release: Release): Promise<Built> {
  const version = await go('version').catch(() => undefined);
  if (version === undefined) return { missing: 'there is no Go' };
  const folder = process.env.TEST_CACHE ?? join(homedir(), '.cache/device-agent');
  const path = join(folder, `kubelet-devices-${release}-${digestOf(version)}`);
  if (existsSync(path)) return { path };
  const unresolved = await go('list', ...FLAGS[release], '-deps', '.').then(() => undefined, lastLine);
  if (unresolved !== undefined) return { missing: `its modules cannot be had: ${unresolved}` };
  mkdirSync(folder, { recursive: true });
  const beside = `${path}.${process.pid}`;
  process.stderr.write(`building the device manager of the kubelet ${release}: minutes the first time, seconds after that\n`);
  await go('build', '-trimpath', ...FLAGS[release], '-ldflags', '-s -w', '-o', beside, '.');
  renameSync(beside, path);
  return { path };
}

async function go(...args: string[]): Promise<string> {
  const { stdout } = await run('go', args, { cwd: SOURCE, env: ENVIRONMENT, maxBuffer: 64 << 20 });
  return stdout;
}

function digestOf(version: string): string {
  const hash = createHash('sha256').update(version);
  for (const name of readdirSync(SOURCE).sort()) {
    if (/\.(go|s|mod|sum)$/.test(name)) hash.update(name).update(readFileSync(join(SOURCE, name)));
  }
  return hash.digest('hex').slice(0, 16);
}

const lastLine = (error: unknown): string => (error as Error).message.trim().split('\n').at(-1) ?? '';
