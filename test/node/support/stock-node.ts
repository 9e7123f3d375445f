import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';

const run = promisify(execFile);

/** Scripts that run unmodified kubelets on this machine; not part of this repository. */
const SCRIPTS = resolve('../shared/cluster');
/** What those scripts have built. */
const CACHE = process.env.K8S_CACHE ?? join(homedir(), 'k8s-cache');
const NAME = 'node-1';

/** The kubelet of the tests that run on one. */
export const KUBELET = process.env.KUBELET ?? 'kubelet';
/** Further kubelets, by the name of their program; those that were not built are left out. */
const OTHERS = ['kubelet-1.34.4', 'kubelet-1.35.4', 'kubelet-1.36.3', 'kubelet-1.37.2'];

/** Why no stock kubelet can be run here; undefined when one can. */
export function whyNoNode(): string | undefined {
  if (!existsSync(join(SCRIPTS, 'up-standalone.sh'))) return `there is no ${SCRIPTS}`;
  if (process.getuid?.() !== 0) return 'it takes root';
  for (const program of [KUBELET, 'containerd', 'runc', 'pause']) {
    if (!isExecutable(join(CACHE, 'bin', program))) return `there is no ${program} in ${CACHE}/bin`;
  }
  return undefined;
}

export interface Kubelet {
  readonly program: string;
  /** `1.36.3`. */
  readonly version: string;
  /** `36` */
  readonly minor: number;
}

/** One kubelet of each version that was built, or a title without one where none can run. */
export async function kubelets(): Promise<readonly Kubelet[]> {
  if (whyNoNode() !== undefined) return [{ program: KUBELET, version: 'without a kubelet', minor: 0 }];
  const programs = [KUBELET, ...OTHERS].filter((program) => isExecutable(join(CACHE, 'bin', program)));
  const all = await Promise.all(
    programs.map(async (program): Promise<[string, Kubelet]> => {
      const version = await versionOf(program);
      return [version, { program, version, minor: Number(version.split('.')[1]) }];
    }),
  );
  return [...new Map(all).values()].sort((a, b) => a.minor - b.minor);
}

async function versionOf(program: string): Promise<string> {
  const { stdout } = await run(join(CACHE, 'bin', program), ['--version']);
  return /v(\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? stdout;
}

export interface PodStatus {
  readonly phase: string;
  readonly reason?: string;
  readonly message?: string;
  readonly podIP?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  readonly containerStatuses?: readonly {
    readonly name: string;
    readonly restartCount: number;
    readonly allocatedResourcesStatus?: readonly {
      readonly name: string;
      readonly resources: readonly { readonly resourceID: string; readonly health: string }[];
    }[];
  }[];
}

export interface StaticContainer {
  readonly name: string;
  readonly limits?: Readonly<Record<string, number | string>>;
  /** It ends at once instead of waiting for a signal. */
  readonly ends?: boolean;
  readonly isSidecar?: boolean;
}

export interface StaticPod {
  readonly name: string;
  readonly init?: readonly StaticContainer[];
  readonly containers: readonly StaticContainer[];
}

/**
 * Takes a node down as soon as its input ends: when it is told to, and when the test's process is gone, for whatever reason. Agents
 * that were pointed at the node end first.
 */
const UNDERTAKER = `
  cat > /dev/null
  for process in /proc/[0-9]*; do grep -qs -- "--podresources.socket=$1/" "$process/cmdline" && kill -KILL "\${process#/proc/}"; done
  "$0/down.sh"
  rm -rf "$1"`;

/** One stock kubelet with containerd and no API server; its pods are static ones. */
export class StockNode {
  readonly directory = mkdtempSync(join(tmpdir(), 'node-'));
  readonly #environment: NodeJS.ProcessEnv;
  readonly #undertaker: ChildProcess;

  constructor(program: string, settings: Readonly<Record<string, string>> = {}) {
    this.#environment = { ...process.env, K8S_CACHE: CACHE, K8S_RUN: join(this.directory, 'run'), KUBELET: program, ...settings };
    this.#undertaker = spawn('sh', ['-c', UNDERTAKER, SCRIPTS, this.directory], {
      stdio: ['pipe', 'ignore', 'ignore'],
      env: this.#environment,
      detached: true,
    });
  }

  async start(): Promise<void> {
    await this.#script('up-standalone.sh');
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#undertaker.once('exit', done));
    this.#undertaker.stdin?.end();
    await ended;
    if (existsSync(this.directory)) throw new Error(`the node left something in ${this.directory}`);
  }

  get root(): string {
    return join(this.directory, 'run', NAME);
  }

  get podResourcesSocket(): string {
    return join(this.root, 'kubelet/pod-resources/kubelet.sock');
  }

  get podsApiSocket(): string {
    return join(this.root, 'kubelet/pods-api/pods-api.sock');
  }

  get pluginDirectory(): string {
    return join(this.root, 'kubelet/device-plugins');
  }

  get cdiDirectory(): string {
    return join(this.root, 'cdi');
  }

  flags(): string[] {
    return [
      `--podresources.socket=${this.podResourcesSocket}`,
      `--podresources.checkpoint=${join(this.pluginDirectory, 'kubelet_internal_checkpoint')}`,
      `--plugin.dir=${this.pluginDirectory}`,
      `--plugin.registry-dir=${join(this.root, 'kubelet/plugins_registry')}`,
    ];
  }

  stopKubelet(signal: 'TERM' | 'KILL'): Promise<unknown> {
    return this.#script('kubelet.sh', 'stop', NAME, signal);
  }

  startKubelet(): Promise<unknown> {
    return this.#script('kubelet.sh', 'start', NAME);
  }

  add({ name, init = [], containers }: StaticPod): void {
    this.addManifest(name, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: { terminationGracePeriodSeconds: 0, initContainers: init.map(containerOf), containers: containers.map(containerOf) },
    });
  }

  /** The kubelet reads whatever appears: the manifest is written elsewhere and moved in whole. */
  addManifest(name: string, manifest: object): void {
    const beside = join(this.root, 'work', `${name}.yaml`);
    writeFileSync(beside, stringify(manifest));
    renameSync(beside, this.#manifest(name));
  }

  remove(name: string): void {
    rmSync(this.#manifest(name));
  }

  /** Gives the node's container runtime an image made of a directory. */
  addImage(name: string, directory: string, entrypoint: readonly string[]): Promise<unknown> {
    return this.#script('image.sh', name, directory, '--', ...entrypoint);
  }

  /** Gives the node's container runtime the images of an OCI layout in a tar archive, by the names that it gives them. */
  addArchive(archive: string): Promise<unknown> {
    return this.#script('image.sh', '-i', archive, NAME);
  }

  /** The body of an answer from within the node's network; empty when there is none. */
  async fetch(url: string): Promise<string> {
    const asked = this.#script('node-exec.sh', '-n', NAME, 'curl', '-sf', url);
    return (await asked.catch(() => ({ stdout: '' }))).stdout;
  }

  /** UID of a static pod by the name in its manifest, from the name of its folder of logs. */
  uidOf(name: string): string | undefined {
    const start = `default_${name}-${NAME}_`;
    return readdirSync(join(this.root, 'pod-logs'))
      .find((entry) => entry.startsWith(start))
      ?.slice(start.length);
  }

  /** Of a static pod by the name in its manifest; undefined before the kubelet has it. */
  async status(name: string): Promise<PodStatus | undefined> {
    const told = await this.fetch('http://127.0.0.1:10255/pods');
    const { items } = JSON.parse(told) as { readonly items?: readonly { metadata: { name: string }; status: PodStatus }[] };
    return items?.find(({ metadata }) => metadata.name === `${name}-${NAME}`)?.status;
  }

  /** What a container has printed; empty before it has. */
  output(pod: string, container: string): string {
    const logs = join(this.root, 'pod-logs');
    const folder = readdirSync(logs).find((entry) => entry.startsWith(`default_${pod}-${NAME}_`));
    const path = folder === undefined ? '' : join(logs, folder, container, '0.log');
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  #manifest(name: string): string {
    return join(this.root, 'manifests', `${name}.yaml`);
  }

  async #script(name: string, ...args: string[]): Promise<{ readonly stdout: string }> {
    return await run(join(SCRIPTS, name), args, { env: this.#environment, maxBuffer: 64 << 20 });
  }
}

function containerOf({ name, limits, ends = false, isSidecar = false }: StaticContainer): object {
  return {
    name,
    image: 'localhost/pause:1',
    imagePullPolicy: 'Never',
    ...(ends ? { command: ['/pause', 'exit'] } : { args: ['show'] }),
    ...(isSidecar ? { restartPolicy: 'Always' } : {}),
    ...(limits === undefined ? {} : { resources: { limits } }),
  };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
