// The node_exporters to compare with: the one installed (or named by NODE_EXPORTER), and the newest release, built once from the Go
// proxy into TEST_CACHE or ~/.cache/device-agent.
import { execFile, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MODULE = 'github.com/prometheus/node_exporter';
const CACHE = process.env.TEST_CACHE ?? join(homedir(), '.cache/device-agent');
const BUILT = /^node_exporter-(\d+)\.(\d+)\.(\d+)$/;
const ASK_MS = 30_000;
const BUILD_MS = 600_000;

/** `{ version, path }` of each, the newest last; none where none is installed and none can be built. Says on stderr what is lacking. */
export async function nodeExporters() {
  const whyNot = process.env.NODE_EXPORTER === undefined ? await buildNewest() : undefined;
  const found = presentNodeExporters();
  const compared =
    found.length === 0 ? 'no node_exporter is compared with' : `compared with ${found.map(({ version }) => version).join(', ')}`;
  if (whyNot !== undefined) console.error(`the newest node_exporter cannot be had (${whyNot}): ${compared}`);
  else if (found.length === 0) console.error(`${process.env.NODE_EXPORTER} does not run: ${compared}`);
  return found;
}

/** Those that are here already. */
export function presentNodeExporters() {
  const installed = installedExporter();
  const built = process.env.NODE_EXPORTER === undefined ? builtBefore() : undefined;
  return [installed, built?.version === installed?.version ? undefined : built].filter((one) => one !== undefined);
}

function installedExporter() {
  const path = process.env.NODE_EXPORTER ?? 'prometheus-node-exporter';
  const { stdout, stderr, error } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return error === undefined ? { version: /version (\d[^ )]*)/.exec(stdout + stderr)?.[1] ?? path, path } : undefined;
}

/** Gives why it cannot be built, in a few words. */
async function buildNewest() {
  try {
    const { stdout } = await go(['list', '-m', '-f', '{{.Version}}', `${MODULE}@latest`], ASK_MS);
    await build(stdout.trim().replace(/^v/, ''));
    return undefined;
  } catch (error) {
    return lastLine(error);
  }
}

async function build(version) {
  const path = join(CACHE, `node_exporter-${version}`);
  if (existsSync(path)) return;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, 'building-'));
  console.error(`building node_exporter ${version}: minutes, once`);
  try {
    await go(['install', `${MODULE}@v${version}`], BUILD_MS, { GOBIN: folder });
    renameSync(join(folder, 'node_exporter'), path);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function builtBefore() {
  const builds = existsSync(CACHE) ? readdirSync(CACHE).map((name) => BUILT.exec(name)?.slice(1).map(Number)) : [];
  const [newest] = builds.filter((one) => one !== undefined).sort((a, b) => b[0] - a[0] || b[1] - a[1] || b[2] - a[2]);
  const version = newest?.join('.');
  return version === undefined ? undefined : { version, path: join(CACHE, `node_exporter-${version}`) };
}

/** Outside of any module, and as it is released: without C. */
function go(args, timeout, more = {}) {
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOWORK: 'off', ...more };
  return run('go', args, { cwd: tmpdir(), env, timeout });
}

const lastLine = (error) => (error.stderr || error.message).trim().split('\n').at(-1);
