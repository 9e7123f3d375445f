import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Cluster } from './cluster.ts';

const SCRIPTS = resolve('../shared/cluster');
const CACHE = process.env.K8S_CACHE ?? '';

/** The DRA driver of test/node/dra-driver, which can write metadata files. Each name is a driver of its own. */
export class MetadataDriver {
  readonly #cluster: Cluster;
  readonly #directory = mkdtempSync(join(tmpdir(), 'dra-driver-'));
  readonly #program = join(this.#directory, 'dra-driver');

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  build(): void {
    const env = { ...process.env, GOCACHE: join(CACHE, 'gocache'), GOMODCACHE: join(CACHE, 'gomod') };
    const words = ['build', '-mod=mod', '-trimpath', '-ldflags', '-s -w', '-o', this.#program, '.'];
    execFileSync('go', words, { cwd: 'test/node/dra-driver', env, stdio: 'pipe' });
  }

  /** Starts it on node-1, whose end ends it. `devices` is `name=address=node,…`. */
  start(name: string, devices: string, ...flags: readonly string[]): void {
    const { directory } = this.#cluster;
    const fixed = ['-kubeconfig', join(directory, 'cp/admin.kubeconfig'), '-node', 'node-1', '-cdi-dir', join(directory, 'node-1/cdi')];
    const words = ['node-1', this.#program, ...fixed, '-driver', name, '-devices', devices, ...flags];
    const env = { ...process.env, K8S_CACHE: CACHE, K8S_RUN: directory };
    spawn(join(SCRIPTS, 'node-exec.sh'), words, { env, stdio: 'ignore' }).unref();
  }

  kill(): void {
    execFileSync('pkill', ['-KILL', '-f', this.#program]);
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }
}
