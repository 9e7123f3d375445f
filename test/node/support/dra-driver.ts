import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

/** A DRA driver of two devices, with one more file that answers the kubelet's health stream from the agent's feed. */
export class DraDriver {
  readonly #directory = mkdtempSync(join(tmpdir(), 'dra-driver-'));
  readonly #program = join(this.#directory, 'dra-driver-with-health');
  #child: ChildProcess | undefined;
  #output = '';

  build(): void {
    cpSync(join(SCRIPTS, 'tools'), this.#directory, { recursive: true });
    cpSync('test/node/dra-adapter/health.go', join(this.#directory, 'dra-driver/health.go'));
    const main = join(this.#directory, 'dra-driver/main.go');
    writeFileSync(main, readFileSync(main, 'utf8').replace('type driver struct{', 'type driver struct{ feedHealth;'));
    const sums = join(CACHE, 'mod/tools/go.sum');
    if (existsSync(sums)) cpSync(sums, join(this.#directory, 'go.sum'));
    const caches = { GOMODCACHE: join(CACHE, 'gomod'), GOCACHE: join(CACHE, 'gocache'), GOTOOLCHAIN: 'local', CGO_ENABLED: '0' };
    const words = ['build', '-mod=mod', '-p', '2', '-trimpath', '-ldflags', '-s -w', '-o', this.#program, './dra-driver'];
    execFileSync('go', words, { cwd: this.#directory, env: { ...process.env, ...caches, GOFLAGS: '-buildvcs=false' }, stdio: 'pipe' });
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

  close(): void {
    this.#child?.kill('SIGKILL');
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
