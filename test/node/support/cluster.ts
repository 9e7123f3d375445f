import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { whyNoHelm } from '../../support/chart.ts';
import { PseudoTerminal } from '../../support/pseudo-terminal.ts';
import { whyNoNode } from './stock-node.ts';

const run = promisify(execFile);

/** Scripts that run an unmodified Kubernetes on this machine; not part of this repository. */
const SCRIPTS = resolve('../shared/cluster');
const CACHE = process.env.K8S_CACHE ?? join(homedir(), 'k8s-cache');
const HELM = process.env.HELM ?? 'helm';

/** Why no cluster can be run here; undefined when one can. */
export function whyNoControlPlane(): string | undefined {
  const reason = whyNoNode();
  if (reason !== undefined) return reason;
  return existsSync(join(CACHE, 'bin', 'kube-apiserver')) ? undefined : `there is no kube-apiserver in ${CACHE}/bin`;
}

/** Why no cluster can be run here to which helm installs; undefined when one can. */
export const whyNoCluster = (): string | undefined => whyNoControlPlane() ?? whyNoHelm();

/** A cluster of unmodified parts: API server, controllers, scheduler, and nodes with containerd. */
export class Cluster {
  readonly directory = mkdtempSync(join(tmpdir(), 'cluster-'));
  readonly #environment: NodeJS.ProcessEnv;

  /** `settings` are those of the scripts, such as `APISERVER_ARGS`. */
  constructor(settings: Readonly<Record<string, string>> = {}) {
    this.#environment = { ...process.env, ...settings, K8S_CACHE: CACHE, K8S_RUN: this.directory };
  }

  async start(nodes: number): Promise<void> {
    await run(join(SCRIPTS, 'up.sh'), [String(nodes)], { env: this.#environment });
  }

  async stop(): Promise<void> {
    await run(join(SCRIPTS, 'down.sh'), [], { env: this.#environment });
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** Gives an OCI layout to each node, as `docker load` would. */
  async importImage(layout: string): Promise<void> {
    const archive = join(this.directory, 'image.tar');
    await run('tar', ['-C', layout, '-cf', archive, '.']);
    for (const node of this.nodes()) {
      const socket = join(this.directory, node, 'containerd.sock');
      await run(join(CACHE, 'bin', 'ctr'), ['--address', socket, '-n', 'k8s.io', 'images', 'import', archive]);
    }
    rmSync(archive);
  }

  /** SIGSTOP leaves an API server that accepts connections and does not answer. */
  signalApiServer(signal: NodeJS.Signals): void {
    process.kill(Number(this.pidOf('kube-apiserver')), signal);
  }

  /** A kubelet creates the object of its node only when it starts. `settings` are those of the scripts, such as `KUBELET_ARGS`. */
  async restartKubelet(node: string, settings: Readonly<Record<string, string>> = {}): Promise<void> {
    for (const verb of ['stop', 'start']) await this.#run(join(SCRIPTS, 'kubelet.sh'), [verb, node], settings);
  }

  nodes(): readonly string[] {
    return readdirSync(this.directory).filter((name) => existsSync(join(this.directory, name, 'containerd.sock')));
  }

  /** Sockets of device plugins that a node still has. */
  pluginSockets(node: string): readonly string[] {
    return readdirSync(join(this.directory, node, 'kubelet/device-plugins')).filter((name) => name.startsWith('device-agent'));
  }

  /** Runs a script of the shell in the namespaces of a node. */
  async inNode(node: string, script: string): Promise<void> {
    await this.#run(join(SCRIPTS, 'node-exec.sh'), [node, 'sh', '-c', script]);
  }

  /**
   * Runs a line of the shell as an administrator types it in `directory`: on a node, or on a machine of the network. The programs find the
   * cluster by their own variables, and nothing else of this machine's environment is passed on.
   */
  shell(node: string | undefined, line: string, directory: string): Promise<string> {
    const variables = {
      PATH: `${join(CACHE, 'bin')}:${process.env.PATH}`,
      HOME: this.directory,
      KUBECONFIG: join(this.directory, 'cp/admin.kubeconfig'),
      ...(node === undefined ? {} : { CONTAINERD_ADDRESS: join(this.directory, node, 'containerd.sock') }),
    };
    const clean = ['env', '-i', ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)];
    const words = [...clean, 'bash', '-o', 'pipefail', '-ec', `cd ${directory}\n${line}`];
    return node === undefined ? this.inNetwork(...words) : this.#run(join(SCRIPTS, 'node-exec.sh'), [node, ...words]);
  }

  kubectl(...words: readonly string[]): Promise<string> {
    return this.#run(join(SCRIPTS, 'kubectl.sh'), words);
  }

  /** kubectl on a terminal, as a person uses it. */
  kubectlTerminal(size: { readonly columns: number; readonly rows: number }, ...words: readonly string[]): PseudoTerminal {
    return new PseudoTerminal(size, [join(SCRIPTS, 'kubectl.sh'), ...words], {
      K8S_CACHE: CACHE,
      K8S_RUN: this.directory,
      // kubectl keeps what it learns of the server there.
      HOME: this.directory,
      TERM: 'xterm-256color',
    });
  }

  async json<T>(...words: readonly string[]): Promise<T> {
    return JSON.parse(await this.kubectl(...words, '-o', 'json')) as T;
  }

  /** Helm from inside the network of the cluster. */
  helm(...words: readonly string[]): Promise<string> {
    const pid = this.pidOf('net');
    const kubeconfig = join(this.directory, 'cp/admin.kubeconfig');
    return this.#run('nsenter', ['-t', pid, '-n', '--', HELM, '--kubeconfig', kubeconfig, ...words]);
  }

  /** The text of an address inside the cluster's network. */
  get(url: string): Promise<string> {
    return this.inNetwork('curl', '-sf', url);
  }

  /** Runs a program inside the cluster's network. */
  inNetwork(...words: readonly string[]): Promise<string> {
    const [program = '', ...rest] = this.throughNetwork(...words);
    return this.#run(program, rest);
  }

  /** The command line that runs a program inside the cluster's network. */
  throughNetwork(...words: readonly string[]): readonly string[] {
    return ['nsenter', '-t', this.pidOf('net'), '-n', '--', ...words];
  }

  private pidOf(name: string): string {
    const processes = readFileSync(join(this.directory, 'pids'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' '));
    return processes.findLast(([, , recorded]) => recorded === name)?.[0] ?? '';
  }

  async #run(program: string, words: readonly string[], settings: Readonly<Record<string, string>> = {}): Promise<string> {
    try {
      const { stdout } = await run(program, [...words], { env: { ...this.#environment, ...settings }, maxBuffer: 64 * 1024 * 1024 });
      return stdout;
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new Error(`${program} ${words.join(' ')}\n${stdout.slice(-2_000)}${stderr.slice(-2_000)}`);
    }
  }
}
