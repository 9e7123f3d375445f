import type { Host } from '../../host/host.ts';
import { type CommandResult, runCommand } from '../../host/process/command.ts';
import type { Problem } from '../../model/collection.ts';
import { minutes } from '../../model/duration.ts';
import { isDue, Pacer } from '../kit/pace.ts';
import { childrenOf, wordAt } from './document.ts';
import { gpuSampleOf } from './document-sample.ts';
import type { NvidiaOptions } from './options.ts';
import type { GpuSample, LinkPeer, MigName, MigSample, NodeSample } from './sample.ts';
import { readSmi, type SmiFailure } from './smi.ts';
import { surplusFaults } from './wordings.ts';

/** Minimum timeout of the commands after `nvidia-smi -q -x`, even if that command took very long. */
const MIN_TIMEOUT_MS = 500;
/** The NVLink topology does not change while the driver is loaded, but a link may come up late. */
const TOPOLOGY_EVERY_MS = minutes(5);

const DRAIN_EVERY_MS = minutes(1);

/** Where driver containers and WSL place nvidia-smi, */
const DIRECTORIES: readonly string[] = ['/usr/local/nvidia/bin', '/usr/lib/wsl/lib'];
/** and the library that it loads, beside the folders that the linker knows. */
const LIBRARY_PATH = '/usr/local/nvidia/lib64:/usr/local/nvidia/lib:/usr/lib/wsl/lib';

/** Reads GPUs with `nvidia-smi`. It runs one command at a time. */
export class SmiSource {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  /** A command that even SIGKILL did not end. */
  #unreaped: Promise<void> | undefined;
  #migNames: ReadonlyMap<string, MigName> = new Map();
  /** Peers of each GPU from the last topology, keyed by UUID. */
  #peers: ReadonlyMap<string, readonly LinkPeer[]> = new Map();
  readonly #drains = new Map<string, { readonly atMs: number; readonly isDrained: boolean }>();
  /** Time of the last topology read, and its GPUs. */
  #topologyRead = { atMs: -Infinity, uuids: '' };
  readonly #pacer = new Pacer();

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
  }

  async read(): Promise<NodeSample | SmiFailure> {
    if (this.#unreaped !== undefined) {
      return { surplus: '', problem: { code: 'smi-unreaped', message: 'nvidia-smi -q -x: an earlier command blocks in the kernel' } };
    }
    const endMs = this.#host.clock.monotonic() + this.#options.timeout;
    const smi = readSmi(await this.#run(['-q', '-x'], this.#options.timeout));
    if (smi.problem !== undefined) return smi;
    const { log, surplus, exitCode } = smi;
    const problems: Problem[] = [];
    const gpus = await this.#linked(await this.#named(childrenOf(log, 'gpu').map(gpuSampleOf), endMs, problems), endMs);
    const faults = surplusFaults(surplus);
    if (exitCode === 14 && !faults.some(({ fault }) => fault === 'inforom'))
      problems.push({ code: 'inforom-corrupted', message: 'nvidia-smi -q -x: exit status 14' });
    return {
      source: this.#options['smi-path'],
      driver: wordAt(log, 'kmd_version', 'driver_version'),
      cudaVersion: wordAt(log, 'cuda_umd_version', 'cuda_version'),
      announced: Number(wordAt(log, 'attached_gpus') ?? 0) || 0,
      gpus,
      faults,
      problems,
    };
  }

  /**
   * Whether an administrator drains a GPU: the driver then shows it to no program. The command prints `The current drain state of GPU … is:
   * draining`. The answer is kept for a while.
   */
  async isDrained(address: string): Promise<boolean> {
    const nowMs = this.#host.clock.monotonic();
    const last = this.#drains.get(address);
    if (last !== undefined && nowMs - last.atMs < DRAIN_EVERY_MS) return last.isDrained;
    const { stdout } = await this.#run(['drain', '-p', address, '-q'], this.#options.timeout);
    const isDrained = /drain state of GPU\b.*:\s*draining\b/i.test(stdout);
    this.#drains.set(address, { atMs: nowMs, isDrained });
    return isDrained;
  }

  #runUntil(endMs: number, ...args: readonly string[]): Promise<CommandResult> {
    return this.#run(args, Math.max(MIN_TIMEOUT_MS, endMs - this.#host.clock.monotonic()));
  }

  async #run(args: readonly string[], deadlineMs: number): Promise<CommandResult> {
    const result = await runCommand(this.#options['smi-path'], args, {
      deadlineMs,
      directories: DIRECTORIES,
      env: { LD_LIBRARY_PATH: LIBRARY_PATH },
      children: this.#host.children,
      clock: this.#host.clock,
      observe: this.#host.observe,
    });
    if (result.stillRunning !== undefined) {
      this.#unreaped = result.stillRunning.then(() => {
        this.#unreaped = undefined;
      });
    }
    return result;
  }

  /**
   * Adds the names of MIG instances. While the listing fails, an instance keeps its known name. Otherwise its device would disappear
   * and a new device would appear.
   */
  async #named(gpus: readonly GpuSample[], endMs: number, problems: Problem[]): Promise<readonly GpuSample[]> {
    if (!gpus.some(({ instances = [] }) => instances.length > 0)) {
      this.#migNames = new Map();
      return gpus;
    }
    const result = await this.#runUntil(endMs, '-L');
    const listing = parseListing(result.stdout);
    const names = new Map<string, MigName>();
    let missing = 0;
    const named = gpus.map((gpu) => ({
      ...gpu,
      instances: (gpu.instances ?? []).map((instance) => {
        const uuid = gpu.identity?.uuid ?? '';
        const key = keyOf(uuid, instance);
        const listed = listing.get(uuid)?.get(instance.index ?? '');
        if (listed === undefined) missing += 1;
        const name = listed ?? this.#migNames.get(key);
        if (name !== undefined) names.set(key, name);
        return { ...instance, name, ...(listed === undefined && name !== undefined ? { isUnlisted: true } : {}) };
      }),
    }));
    this.#migNames = names;
    if (missing > 0) {
      const reason = result.failure ?? `exit status ${result.exitCode ?? result.signal}`;
      problems.push({ code: 'mig-names-unknown', message: `nvidia-smi -L: ${reason}, no name for ${missing} MIG instances` });
    }
    return named;
  }

  /** Adds the GPUs that each GPU reaches over NVLink. A matrix with other GPUs than the document is ignored. */
  async #linked(gpus: readonly GpuSample[], endMs: number): Promise<readonly GpuSample[]> {
    const uuids = gpus.map(({ identity }) => identity?.uuid ?? '');
    const pace = this.#pacer.next(this.#host.clock.monotonic());
    const { atMs, uuids: known } = this.#topologyRead;
    if (uuids.length > 1 && (isDue(atMs, TOPOLOGY_EVERY_MS, pace) || uuids.join() !== known)) {
      this.#topologyRead = { atMs: pace.nowMs, uuids: uuids.join() };
      const matrix = parseTopology((await this.#runUntil(endMs, 'topo', '-m')).stdout);
      if (matrix?.length === uuids.length)
        this.#peers = new Map(uuids.map((uuid, at) => [uuid, peersOf(matrix[at] as readonly number[], uuids)]));
    }
    return gpus.map((gpu, at) => ({ ...gpu, peers: this.#peers.get(uuids[at] as string) ?? [] }));
  }
}

const keyOf = (uuid: string, { gpuInstance, computeInstance }: MigSample): string => `${uuid}/${gpuInstance}/${computeInstance}`;

const peersOf = (row: readonly number[], uuids: readonly string[]): readonly LinkPeer[] =>
  uuids.flatMap((uuid, at) => ((row[at] as number) > 0 ? [{ uuid, links: row[at] as number }] : []));

/** Names, keyed by UUID of the GPU and number of the instance. */
type Listing = ReadonlyMap<string, ReadonlyMap<string, MigName>>;

/**
 * Parses `nvidia-smi -L`, the only command that names MIG instances: `GPU 0: NAME (UUID: GPU-…)` and below it, indented,
 * `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`. The number of a MIG line is the `index` of the instance in the document.
 */
export function parseListing(text: string): Listing {
  const gpus = new Map<string, Map<string, MigName>>();
  let current: Map<string, MigName> | undefined;
  for (const line of text.split('\n')) {
    if (/^GPU \d+:/i.test(line)) {
      current = new Map();
      const gpu = /\(UUID: (GPU-[0-9a-f-]+)\)\s*$/i.exec(line)?.[1];
      if (gpu !== undefined) gpus.set(gpu, current);
    }
    const instance = /^\s+MIG (\S+)\s+Device\s+(\d+):\s*\(UUID: (MIG-[^)\s]+)\)/i.exec(line);
    if (instance !== null) current?.set(instance[2] as string, { uuid: instance[3] as string, profile: instance[1] as string });
  }
  return gpus;
}

/**
 * Parses `nvidia-smi topo -m`. The first columns and rows of this matrix are the GPUs in the order of the document. `NV4` means four
 * NVLinks between two GPUs, directly or through switches. Undefined when the text is not such a matrix of several GPUs.
 */
export function parseTopology(text: string): readonly (readonly number[])[] | undefined {
  const lines = text.split('\n').map((line) => line.trim().split(/\s+/));
  // The header line also has a GPU in its second field, or begins with an escape sequence.
  const rows = lines.filter(([first = '', second = '']) => GPU.test(first) && !GPU.test(second));
  const links = rows.map(([, ...cells]) => cells.slice(0, rows.length).map((cell) => Number(/^NV(\d+)$/.exec(cell)?.[1] ?? 0)));
  const isComplete = rows.every(([name], at) => name === `GPU${at}`) && links.every(({ length }) => length === rows.length);
  return rows.length > 1 && isComplete ? links : undefined;
}

const GPU = /^GPU\d+$/;
