import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const SCRIPTS = resolve('../shared/cluster');
const CACHE = process.env.K8S_CACHE ?? join(homedir(), 'k8s-cache');

/** Why the sample driver cannot be built here; undefined when it can. */
export function whyNoDriver(): string | undefined {
  if (!existsSync(join(SCRIPTS, 'tools/dra-driver/main.go'))) return `there is no ${SCRIPTS}/tools/dra-driver`;
  try {
    execFileSync('go', ['version'], { stdio: 'ignore' });
  } catch {
    return 'there is no go';
  }
  return undefined;
}

/** Versions of the library on which drivers are built, with the file of the adapter for each. */
const LIBRARIES = { '0.36.3': 'health_v036.go', '0.37.2': 'health_v037.go' } as const;
export type Library = keyof typeof LIBRARIES;
export const LIBRARY_VERSIONS = Object.keys(LIBRARIES) as Library[];

/** A DRA driver of two devices, with two more files that answer the kubelet's health stream from the agent's feed. */
export class DraDriver {
  readonly #directory = mkdtempSync(join(tmpdir(), 'dra-driver-'));
  readonly #program = join(this.#directory, 'dra-driver-with-health');
  #child: ChildProcess | undefined;
  #output = '';

  build(library: Library): void {
    cpSync(join(SCRIPTS, 'tools'), this.#directory, { recursive: true });
    for (const file of ['health.go', LIBRARIES[library]])
      cpSync(join('test/node/dra-adapter', file), join(this.#directory, 'dra-driver', file));
    const main = join(this.#directory, 'dra-driver/main.go');
    writeFileSync(main, readFileSync(main, 'utf8').replace('type driver struct{', 'type driver struct{ feedHealth;'));
    const sums = join(CACHE, 'mod/tools/go.sum');
    if (existsSync(sums)) cpSync(sums, join(this.#directory, 'go.sum'));
    const caches = { GOMODCACHE: join(CACHE, 'gomod'), GOCACHE: join(CACHE, 'gocache'), GOTOOLCHAIN: 'local', CGO_ENABLED: '0' };
    const modules = ['api', 'apimachinery', 'client-go', 'dynamic-resource-allocation', 'kubelet'].map(
      (name) => `k8s.io/${name}@v${library}`,
    );
    const options = { cwd: this.#directory, env: { ...process.env, ...caches, GOFLAGS: '-buildvcs=false' }, stdio: 'pipe' } as const;
    execFileSync('go', ['get', ...modules], options);
    const words = ['build', '-mod=mod', '-p', '2', '-trimpath', '-ldflags', '-s -w', '-o', this.#program, './dra-driver'];
    execFileSync('go', words, options);
  }

  /** Starts it in the namespaces of a node. `devices` has PCI addresses by device name. */
  start(run: string, node: string, feed: string, devices: Readonly<Record<string, string>>): void {
    const pairs = Object.entries(devices).map(([name, address]) => `${name}=${address}`);
    const flags = ['-kubeconfig', join(run, 'cp/admin.kubeconfig'), '-node', node, '-cdi-dir', join(run, node, 'cdi')];
    const env = { ...process.env, K8S_CACHE: CACHE, K8S_RUN: run, HEALTH_FEED: feed, HEALTH_POOL: node, HEALTH_DEVICES: pairs.join(',') };
    const child = spawn(join(SCRIPTS, 'node-exec.sh'), [node, this.#program, ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
    }
  }

  output(): string {
    return this.#output;
  }

  /** The script that started it is not its parent, so it is found by its program, of which nobody else has a copy. */
  close(): void {
    this.#child?.kill('SIGKILL');
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      if (programOf(pid) === this.#program) process.kill(Number(pid), 'SIGKILL');
    }
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function programOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/exe`);
  } catch {
    return undefined;
  }
}
