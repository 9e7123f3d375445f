import type { Host } from '../../../host/host.ts';
import { pciAddressIn } from '../../../host/pci/pci.ts';
import { type CommandFailure, type CommandResult, runCommand } from '../../../host/process/command.ts';
import type { Problem } from '../../../model/collection.ts';
import { defined } from '../../../model/defined.ts';
import { minutes } from '../../../model/duration.ts';
import { isDue, Pacer } from '../../kit/pace.ts';
import type { NvidiaOptions, ProblemCode } from '../declaration.ts';
import type { GpuSample, LinkPeer, MigName, MigSample, NodeSample, ReadFailure, SurplusFault } from '../sample.ts';
import { childrenOf, type Element, parseDocument, wordAt } from './document.ts';
import { gpuSampleOf } from './sample.ts';

interface Wording {
  readonly text: RegExp;
  readonly code: ProblemCode;
  /** Present when the text is about one GPU. */
  readonly fault?: SurplusFault['fault'] | undefined;
}

/** Finds words in this order, whatever the blanks between them: drivers print some without. */
const worded = (words: string, code: ProblemCode, fault?: SurplusFault['fault']): Wording => ({
  text: new RegExp(words.replaceAll(' ', '\\s*'), 'i'),
  code,
  fault,
});

/** Every text of `nvidia-smi` in place of a document, or around it, in search order. A cut line must not be taken for another one. */
const WORDINGS: readonly Wording[] = [
  worded("couldn't communicate with the NVIDIA driver", 'driver-not-loaded'),
  worded('Driver/library version mismatch', 'driver-library-mismatch'),
  worded('Failed to initialize NVML: Insufficient Permissions', 'no-permission'),
  worded('Failed to initialize NVML: GPU access blocked', 'no-permission'),
  worded('Failed to initialize NVML: Driver Not Loaded', 'driver-not-loaded'),
  worded('Failed to initialize NVML', 'driver-unreachable'),
  worded("couldn't find libnvidia-ml", 'library-not-found'),
  worded('No devices were found', 'no-devices'),
  worded('Unable to determine the device.*Insufficient Permissions', 'no-permission', 'closed'),
  worded('Unable to determine the device.*Insufficient External Power', 'insufficient-power', 'lost'),
  worded('Unable to determine the device', 'gpu-unreadable', 'lost'),
  worded('infoROM is corrupted', 'inforom-corrupted', 'inforom'),
];

/** The wording of a text; undefined for a text that tells no fault. */
const wordingOf = (text: string): Wording | undefined => WORDINGS.find((wording) => wording.text.test(text));

/** `GPU3: Unknown Error`. A number with more digits is the begin of an address. */
const INDEX = /GPU ?#?(\d{1,2})(?![\da-f]|:[\da-f]{2}:)/i;

/** Faults of single GPUs in the lines around a document. */
export function surplusFaults(surplus: string): readonly SurplusFault[] {
  return surplus.split('\n').flatMap((text): SurplusFault[] => {
    const line = text.trim();
    const { fault, code } = wordingOf(line) ?? {};
    if (fault === undefined || code === undefined) return [];
    const pciAddress = pciAddressIn(line);
    const index = INDEX.exec(line)?.[1];
    // Without an address, the exit status still tells that some infoROM is damaged.
    if (pciAddress === undefined && fault === 'inforom') return [];
    const named = pciAddress !== undefined ? { pciAddress } : index === undefined ? {} : { index: Number(index) };
    return [{ ...named, fault, line, problem: code }];
  });
}

/** Result of one `nvidia-smi -q -x`. */
interface SmiDocument {
  readonly log: Element;
  readonly surplus: string;
  readonly exitCode?: number;
  readonly problem?: undefined;
}

const FAILURES: Readonly<Record<CommandFailure, ProblemCode>> = {
  'not-found': 'smi-not-found',
  permission: 'smi-not-executable',
  'failed-to-start': 'smi-failed',
  timeout: 'smi-timeout',
  'too-large': 'smi-too-large',
};

/** Problems by exit status, which is NVML's and differs between drivers: a known text comes first. */
const STATUSES: Readonly<Record<number, ProblemCode>> = {
  4: 'no-permission',
  6: 'no-devices',
  8: 'insufficient-power',
  9: 'driver-not-loaded',
  12: 'library-not-found',
  15: 'gpu-unreadable',
  18: 'driver-library-mismatch',
};

/**
 * Interprets the output of the command. A complete document is valid with any exit status: the driver answers for the other GPUs
 * although one is lost (15) or an infoROM is damaged (14).
 */
export function readSmi(result: CommandResult): SmiDocument | (ReadFailure & { readonly log?: undefined }) {
  const document = parseDocument(result.stdout);
  const surplus = [document.surplus, result.stderr.trim()].filter((text) => text !== '').join('\n');
  if (result.failure === undefined && document.log !== undefined) {
    return { log: document.log, surplus, ...defined({ exitCode: result.exitCode }) };
  }
  return { surplus, problem: problemOf(result, document.error, surplus) };
}

function problemOf(result: CommandResult, error: string | undefined, surplus: string): ReadFailure['problem'] {
  if (result.failure !== undefined) {
    const code = result.stillRunning === undefined ? FAILURES[result.failure] : 'smi-unreaped';
    return { code, message: `nvidia-smi -q -x: ${result.failure}` };
  }
  const text = firstLine(surplus);
  const known = WORDINGS.find(({ text, fault }) => fault !== 'inforom' && text.test(surplus))?.code ?? STATUSES[result.exitCode ?? 0];
  if (known !== undefined) return { code: known, message: text === '' ? `nvidia-smi -q -x: ${endOf(result)}` : text };
  if (error === 'malformed') return { code: 'smi-garbage', message: 'nvidia-smi -q -x: the document is no well-formed XML' };
  if (error === 'truncated') return { code: 'smi-truncated', message: 'nvidia-smi -q -x: the document has no end' };
  if (result.exitCode === 0)
    return { code: 'smi-garbage', message: `nvidia-smi -q -x: ${text === '' ? 'no output' : 'no document in the output'}` };
  return { code: 'smi-failed', message: `nvidia-smi -q -x: ${endOf(result)}${text === '' ? '' : `: ${text}`}` };
}

const endOf = ({ exitCode, signal }: CommandResult): string => (signal === undefined ? `exit status ${exitCode}` : `ended by ${signal}`);

const firstLine = (text: string): string => (text.split('\n').find((line) => line.trim() !== '') ?? '').trim().slice(0, 200);

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

  async read(): Promise<NodeSample | ReadFailure> {
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
