import type { Host } from '../../../host/host.ts';
import type { Problem } from '../../../model/collection.ts';
import type { ProblemCode } from '../problems.ts';
import type { NodeSample } from '../sample.ts';
import type { SmiFailure, SurplusFault } from '../smi.ts';
import { type Client, type Refusal, startClient, type UnreadableGpu } from './client.ts';
import { CODE, kindOf, wordOf } from './codes.ts';
import type { XidEvent } from './events.ts';
import type { Due } from './gpu.ts';
import type { Library } from './library.ts';
import { peersOf } from './nvlink.ts';

/** Why nothing was read. */
export type NvmlFailure = Pick<SmiFailure, 'problem'>;

/** A GPU that is lost, or gave no handle, comes back only to a library that was started anew, which disturbs the others: rarely. */
const RESTART_FOR_LOST_MS = 300_000;
/** Each start that did not bring it back doubles the wait for the next, up to some three hours. */
const MOST_DOUBLINGS = 5;
/** The GPUs that the kernel's driver has. */
const BOUND = 'driver/nvidia/gpus';

/** What is asked for besides what changes quickly, and how often. */
export interface Wanted {
  readonly slowEveryMs: number;
  readonly factsEveryMs: number;
  readonly isActivityWanted: boolean;
}

/** All GPUs of the node through one library that stays open, since opening it wakes GPUs and ends what their drivers had counted. */
export class Machine {
  readonly library: Library;
  readonly #host: Host;
  readonly #wanted: Wanted;
  readonly #addresses = new Set<string>();
  /** Starts that did not bring back what was lost. */
  #vainStarts = 0;
  #running: Running | undefined;

  constructor(library: Library, host: Host, wanted: Wanted) {
    this.library = library;
    this.#host = host;
    this.#wanted = wanted;
  }

  /** One round over all GPUs. */
  read(): NodeSample | NvmlFailure {
    const nowMs = this.#host.clock.monotonic();
    if (this.#running?.isToRestart === true || this.#isLostForLong(nowMs) || this.#isBoundAnew(nowMs)) this.close();
    const started = this.#running ?? this.#start(nowMs);
    if ('symbol' in started) return { problem: problemOf(started.code, started.symbol) };
    const due = this.#due(started, nowMs);
    if (due.slow) askForEvents(started);
    for (const { gpu } of started.gpus) {
      const code = gpu.refresh(due);
      if (code === undefined) continue;
      started.isToRestart = true;
      return { problem: problemOf(code, 'a call') };
    }
    return this.#sample(started);
  }

  /** Xids since the last call, by the address of the GPU; `happened` also for other events. */
  events(): { readonly xids: readonly (XidEvent & { readonly pciAddress: string })[]; readonly happened: boolean } {
    const running = this.#running;
    if (running === undefined) return { xids: [], happened: false };
    const taken = running.events.take();
    if (taken.isStirred) running.isStirred = true;
    const xids = taken.xids.flatMap((event) => {
      const pciAddress = running.gpus.find(({ gpu }) => gpu.handle === event.gpu)?.pciAddress;
      return pciAddress === undefined ? [] : [{ ...event, pciAddress }];
    });
    return { xids, happened: taken.happened };
  }

  /** Handles and sets end with the library's client. */
  close(): void {
    if (this.#running === undefined) return;
    this.#running.events.free();
    for (const { gpu } of this.#running.gpus) gpu.close();
    this.#running = undefined;
    this.library.call('nvmlShutdown', '');
  }

  #start(nowMs: number): Running | Refusal {
    const client = startClient(this.library, this.#host, this.#wanted.isActivityWanted);
    if ('symbol' in client) return client;
    for (const { pciAddress } of client.gpus) this.#addresses.add(pciAddress);
    this.#running = {
      ...client,
      boundGpus: this.#boundGpus(),
      startedAtMs: nowMs,
      slowAtMs: -Infinity,
      factsAtMs: -Infinity,
      isStirred: false,
    };
    return this.#running;
  }

  #sample(running: Running): NodeSample {
    const linked = running.gpus.map(({ gpu, pciAddress }) => ({ uuid: gpu.identity.uuid, pciAddress, ends: gpu.linkEnds }));
    return {
      source: `NVML (${this.library.path})`,
      driver: running.driver,
      cudaVersion: running.cudaVersion,
      announced: 0,
      gpus: running.gpus.map(({ gpu }, at) => ({ ...gpu.sample(), peers: peersOf(linked[at] as (typeof linked)[number], linked) })),
      ...faultsOf(running, this.#addresses, running.boundGpus),
    };
  }

  /** At an event nothing waits: it may be of instances, of retired pages, of an action that is asked for. */
  #due(running: Running, nowMs: number): Due {
    const facts = nowMs - running.factsAtMs >= this.#wanted.factsEveryMs;
    const slow = facts || running.isStirred || nowMs - running.slowAtMs >= this.#wanted.slowEveryMs;
    if (facts) running.factsAtMs = nowMs;
    if (slow) running.slowAtMs = nowMs;
    running.isStirred = false;
    return { slow, facts, nowMs };
  }

  /** The library knows the GPUs that were there when it was started. Looked at with what can wait. */
  #isBoundAnew(nowMs: number): boolean {
    const running = this.#running;
    if (running === undefined || nowMs - running.slowAtMs < this.#wanted.slowEveryMs) return false;
    return this.#boundGpus().join() !== running.boundGpus.join();
  }

  /** Their addresses; empty where they are not shown. */
  #boundGpus(): readonly string[] {
    return this.#host.proc.exists(BOUND) ? this.#host.proc.list(BOUND) : [];
  }

  #isLostForLong(nowMs: number): boolean {
    const running = this.#running;
    if (running === undefined || nowMs - running.startedAtMs < RESTART_FOR_LOST_MS) return false;
    if (!isAnyLost(running)) {
      this.#vainStarts = 0;
      return false;
    }
    if (nowMs - running.startedAtMs < RESTART_FOR_LOST_MS * 2 ** this.#vainStarts) return false;
    this.#vainStarts = Math.min(this.#vainStarts + 1, MOST_DOUBLINGS);
    return true;
  }
}

/** A GPU that the agent may not open stays closed to it. */
const isAnyLost = ({ gpus, unreadable }: Running): boolean =>
  unreadable.some(({ code }) => code !== CODE.noPermission) || gpus.some(({ gpu }) => gpu.isLost);

interface Running extends Client {
  /** As they were at the start. */
  readonly boundGpus: readonly string[];
  readonly startedAtMs: number;
  slowAtMs: number;
  factsAtMs: number;
  /** Something other than an Xid has happened since. */
  isStirred: boolean;
  isToRestart?: true;
}

/** Where that failed before. A GPU that is lost is not asked. */
const askForEvents = ({ events, gpus }: Running): void => events.ask(gpus.flatMap(({ gpu }) => (gpu.isLost ? [] : [gpu])));

/** Of codes that concern the node. */
const NODE_PROBLEMS: Readonly<Record<number, ProblemCode>> = {
  [CODE.noPermission]: 'no-permission',
  [CODE.driverNotLoaded]: 'driver-not-loaded',
  [CODE.libraryNotFound]: 'library-not-found',
  [CODE.operatingSystem]: 'no-permission',
  [CODE.libraryMismatch]: 'driver-library-mismatch',
  [CODE.gpuNotFound]: 'no-devices',
};

function problemOf(code: number, what: string): { readonly code: ProblemCode; readonly message: string } {
  const known = NODE_PROBLEMS[code];
  const message = `NVML ${what}: ${wordOf(code)}`;
  return { code: known ?? (kindOf(code) === 'device' ? 'gpu-unreadable' : 'driver-unreachable'), message };
}

interface NodeFaults {
  readonly faults: readonly SurplusFault[];
  readonly problems: readonly Problem[];
  /** False where a GPU from before may be one of those that do not say which they are. */
  readonly isComplete: boolean;
}

/**
 * What the lines around a document of `nvidia-smi` tell. `known`: addresses of all GPUs that were ever found. `bound`: of those that the
 * kernel's driver has; empty where they are not shown.
 */
function faultsOf(
  { gpus, unreadable }: Pick<Client, 'gpus' | 'unreadable'>,
  known: ReadonlySet<string>,
  bound: readonly string[],
): NodeFaults {
  const isMissing = (address: string): boolean => !gpus.some(({ pciAddress }) => pciAddress === address);
  const missing = [...known].filter((address) => isMissing(address) && (bound.length === 0 || bound.includes(address))).sort();
  const { faults, problems } = unreadableOf(unreadable, [bound.filter(isMissing).sort(), missing]);
  for (const { gpu, pciAddress } of gpus) {
    const { uuid = '', busId = '' } = gpu.identity;
    const codes = gpu.faults();
    if (codes.has(CODE.corruptedInforom)) faults.push({ pciAddress, fault: 'inforom', line: `infoROM is corrupted at gpu ${busId}` });
    if (codes.has(CODE.insufficientPower))
      problems.push({ code: 'insufficient-power', device: uuid, message: wordOf(CODE.insufficientPower) });
  }
  const isComplete = unreadable.length === 0 || missing.every((address) => faults.some(({ pciAddress }) => pciAddress === address));
  return { faults, problems, isComplete };
}

/**
 * A GPU without a handle does not say which it is: it is one of a list of which as many are missing as are silent. Those that the agent
 * may not open are never counted as lost.
 */
function unreadableOf(
  unreadable: readonly UnreadableGpu[],
  lists: readonly (readonly string[])[],
): { readonly faults: SurplusFault[]; readonly problems: Problem[] } {
  const silent = unreadable.filter(({ code }) => code !== CODE.noPermission);
  const missing = lists.find(({ length }) => length === silent.length);
  const faults = (missing ?? []).map((pciAddress, at): SurplusFault => {
    const code = silent[at]?.code ?? CODE.unknown;
    const line = `Unable to determine the device handle for GPU ${pciAddress}: ${wordOf(code)}`;
    return { pciAddress, fault: 'lost', line, problem: problemCodeOf(code) };
  });
  const unnamed = missing === undefined ? unreadable : unreadable.filter(({ code }) => code === CODE.noPermission);
  const problems = unnamed.map(
    ({ index, code }): Problem => ({ code: problemCodeOf(code), message: `GPU at index ${index}: ${wordOf(code)}` }),
  );
  return { faults, problems };
}

/** Of one GPU. */
function problemCodeOf(code: number): ProblemCode {
  if (code === CODE.noPermission) return 'no-permission';
  return code === CODE.insufficientPower ? 'insufficient-power' : 'gpu-unreadable';
}
