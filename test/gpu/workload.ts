import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, rmdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SimulatedKubelet } from '../../src/sim/kubelet/kubelet.ts';
import type { Ground } from './ground.ts';

const RESOURCE = 'nvidia.com/gpu';
export const POD = { namespace: 'proof', name: 'load', uid: '6f0e8f3a-5f1b-4c56-9d2e-0a1b2c3d4e5f' };
const CONTAINER = 'c0ffee'.repeat(11).slice(0, 64);
const START_MS = 30_000;

/** A CUDA process, and how it ends. */
export class Load {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Starts a process that holds memory of one GPU and keeps it busy; or says why it cannot. */
  static async start({ folder }: Ground, index: number, mebibytes: number): Promise<Load | string> {
    const program = join(folder, 'load');
    try {
      execFileSync('cc', ['-O2', '-o', program, 'test/gpu/load.c', '-ldl'], { stdio: ['ignore', 'ignore', 'pipe'] });
    } catch {
      return 'there is no C compiler (cc)';
    }
    const child = spawn(program, [String(index), String(mebibytes)], { stdio: ['pipe', 'pipe', 'pipe'] });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    const late = setTimeout(() => child.kill('SIGKILL'), START_MS);
    const first = await Promise.race([once(child.stdout, 'data').then(() => 'ready'), once(child, 'exit').then(() => 'ended')]);
    clearTimeout(late);
    return first === 'ready' ? new Load(child) : said.trim().split('\n', 1)[0] || 'the CUDA process ended at once';
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Ends it, unless it has ended. */
  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGCONT');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

/** A kubelet in this process, with one pod that holds one GPU. */
export async function kubeletWith({ folder, uuids }: Ground, gpu: string): Promise<SimulatedKubelet> {
  const kubelet = new SimulatedKubelet({ directory: join(folder, 'kubelet') });
  mkdirSync(join(folder, 'kubelet/pod-resources'), { recursive: true });
  mkdirSync(join(folder, 'kubelet/device-plugins'), { recursive: true });
  await kubelet.start();
  kubelet.setStock({ devices: uuids.map((id) => ({ resource: RESOURCE, id })), cpus: [], memory: [] });
  kubelet.admitPod({ ...POD, containers: [{ name: 'cuda', devices: [{ resource: RESOURCE, id: gpu }] }] });
  return kubelet;
}

export const kubeletOptions = ({ podResourcesSocket, checkpoint }: SimulatedKubelet): readonly string[] => [
  `--podresources.socket=${podResourcesSocket}`,
  `--podresources.checkpoint=${checkpoint}`,
];

/** Where the process is as in the pod. */
export interface Placed {
  /** What a reader should know of it. */
  readonly how: string;
  readonly options: readonly string[];
  /** Takes away what was made, once the process has ended. */
  remove(): void;
}

/**
 * Puts a process into the cgroup of the pod. Without the right to make one, or where the process tree is a stand-in, the agent reads a copy of
 * the tree, in which only the cgroup of this process is another.
 */
export function placeInPod({ folder, procfs }: Ground, pid: number, uid = POD.uid): Placed {
  const pod = `kubepods/besteffort/pod${uid}`;
  const name = `${pod}/${CONTAINER}`;
  const root = '/sys/fs/cgroup';
  if (procfs === '/proc' && existsSync(join(root, 'cgroup.procs'))) {
    const made = ['kubepods', 'kubepods/besteffort', pod, name].filter((path) => !existsSync(join(root, path)));
    const remove = (): void => {
      for (const path of made.toReversed()) if (existsSync(join(root, path))) rmdirSync(join(root, path));
    };
    try {
      mkdirSync(join(root, name), { recursive: true });
      writeFileSync(join(root, name, 'cgroup.procs'), String(pid));
      return { how: `cgroup /${name}`, options: [], remove };
    } catch {
      remove();
    }
  }
  const copy = join(folder, 'proc');
  mkdirSync(join(copy, String(pid)), { recursive: true });
  for (const entry of readdirSync(procfs))
    if (entry !== String(pid) && !/^(?:self|thread-self)$/.test(entry)) symlinkSync(join(procfs, entry), join(copy, entry));
  for (const entry of ['comm', 'stat', 'status', 'cmdline']) symlinkSync(join('/proc', String(pid), entry), join(copy, String(pid), entry));
  writeFileSync(join(copy, String(pid), 'cgroup'), `0::/${name}\n`);
  return {
    how: 'a copy of /proc with the cgroup of the pod: no right to make a cgroup',
    options: [`--path.procfs=${copy}`],
    remove: () => {},
  };
}
