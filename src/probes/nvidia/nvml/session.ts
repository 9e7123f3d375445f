import type { Host } from '../../../host/host.ts';
import type { Problem } from '../../../model/collection.ts';
import { isDue, type Pace, Pacer } from '../../kit/pace.ts';
import type { ProblemCode } from '../problems.ts';
import type { LinkPeer, NodeSample } from '../sample.ts';
import type { SmiFailure, SurplusFault } from '../smi.ts';
import type { XidLine } from '../xid-line.ts';
import { type Client, type Refusal, startClient, type UnreadableGpu } from './client.ts';
import { CODE, kindOf, textOf } from './codes.ts';
import type { Due } from './gpu.ts';
import type { Library } from './library.ts';
import { peersOf } from './nvlink.ts';
import { type PeerAccess, readPeerAccess } from './peer-access.ts';

/** Problem because of which nothing was read. */
export type NvmlFailure = Pick<SmiFailure, 'problem'>;

/** A GPU that is lost or has no handle returns only after a restart of the library. A restart disturbs the other GPUs, so it is rare. */
const RESTART_FOR_LOST_MS = 300_000;
/** Each restart without success doubles the wait for the next restart, up to about three hours. */
const MAX_DOUBLINGS = 5;
/** Directory of the GPUs to which the kernel driver is bound. */
const BOUND = 'driver/nvidia/gpus';

/** Intervals of slow values and facts, and whether activity is sampled. */
export interface Wanted {
  readonly slowEveryMs: number;
  readonly factsEveryMs: number;
  readonly isActivityWanted: boolean;
}

/** All GPUs of the node. The library stays open, because opening it wakes GPUs and can reset counters of their drivers. */
export class NvmlSession {
  readonly library: Library;
  readonly #host: Host;
  readonly #wanted: Wanted;
  readonly #addresses = new Set<string>();
  /** Number of restarts after which a GPU was still lost. */
  #failedRestarts = 0;
  #running: Running | undefined;
  readonly #pacer = new Pacer();

  constructor(library: Library, host: Host, wanted: Wanted) {
    this.library = library;
    this.#host = host;
    this.#wanted = wanted;
  }

  /** Runs one round over all GPUs. */
  read(): NodeSample | NvmlFailure {
    const pace = this.#pacer.next(this.#host.clock.monotonic());
    const { nowMs } = pace;
    if (this.#running?.isToRestart === true || this.#isLostForLong(nowMs) || this.#haveBoundGpusChanged(pace)) this.close();
    const started = this.#running ?? this.#start(nowMs);
    if ('symbol' in started) return { problem: problemOf(started.code, started.symbol) };
    const due = this.#due(started, pace);
    if (due.slow) registerEvents(started);
    for (const { gpu } of started.gpus) {
      const code = gpu.refresh(due);
      if (code === undefined) continue;
      started.isToRestart = true;
      return { problem: problemOf(code, 'a call') };
    }
    if (due.facts)
      started.access = readPeerAccess(
        this.library,
        started.gpus.map(({ gpu }) => gpu),
      );
    return this.#sample(started);
  }

  /** Returns the Xids since the last call with the addresses of their GPUs. `happened` is also true for other events. */
  events(): { readonly xids: readonly XidLine[]; readonly happened: boolean } {
    const running = this.#running;
    if (running === undefined) return { xids: [], happened: false };
    const taken = running.events.take();
    if (taken.hasOtherEvents) running.hasOtherEvents = true;
    const xids = taken.xids.flatMap(({ gpu: handle, ...event }): XidLine[] => {
      const pciAddress = running.gpus.find(({ gpu }) => gpu.handle === handle)?.pciAddress;
      return pciAddress === undefined
        ? []
        : [{ ...event, kind: 'xid', pciAddress, text: "reported by the driver's library", isEvent: true }];
    });
    return { xids, happened: taken.happened };
  }

  /** Whether the driver began to unbind a GPU since the last call. */
  takeUnbind(): boolean {
    return this.#running?.systemEvents.takeUnbind() === true;
  }

  /** Shuts the library's client down. Its handles and sets become invalid. */
  close(): void {
    if (this.#running === undefined) return;
    this.#running.events.free();
    this.#running.systemEvents.free();
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
      boundGpus: boundGpus(this.#host),
      startedAtMs: nowMs,
      slowAtMs: -Infinity,
      factsAtMs: -Infinity,
      hasOtherEvents: false,
      access: new Map(),
    };
    return this.#running;
  }

  #sample(running: Running): NodeSample {
    const linked = running.gpus.map(({ gpu, pciAddress }) => ({ uuid: gpu.identity.uuid, pciAddress, ends: gpu.linkEnds }));
    const peers = (at: number): readonly LinkPeer[] =>
      peersOf(linked[at] as (typeof linked)[number], linked).map((peer) => ({ ...peer, hasAccess: hasAccess(running, at, peer) }));
    return {
      source: `NVML (${this.library.path})`,
      driver: running.driver,
      cudaVersion: running.cudaVersion,
      announced: 0,
      gpus: running.gpus.map(({ gpu }, at) => ({ ...gpu.sample(), peers: peers(at) })),
      ...faultsOf(running, this.#addresses, running.boundGpus),
    };
  }

  /** After an event, slow values are also read: it can concern instances, retired pages or the recovery action. */
  #due(running: Running, pace: Pace): Due {
    const { nowMs } = pace;
    const facts = isDue(running.factsAtMs, this.#wanted.factsEveryMs, pace);
    const slow = facts || running.hasOtherEvents || isDue(running.slowAtMs, this.#wanted.slowEveryMs, pace);
    if (facts) running.factsAtMs = nowMs;
    if (slow) running.slowAtMs = nowMs;
    running.hasOtherEvents = false;
    return { slow, facts, nowMs };
  }

  /** The library knows only GPUs that were bound at its start. The check has the interval of the slow values. */
  #haveBoundGpusChanged(pace: Pace): boolean {
    const running = this.#running;
    if (running === undefined || !isDue(running.slowAtMs, this.#wanted.slowEveryMs, pace)) return false;
    return boundGpus(this.#host).join() !== running.boundGpus.join();
  }

  #isLostForLong(nowMs: number): boolean {
    const running = this.#running;
    if (running === undefined || nowMs - running.startedAtMs < RESTART_FOR_LOST_MS) return false;
    if (!isAnyLost(running)) {
      this.#failedRestarts = 0;
      return false;
    }
    if (nowMs - running.startedAtMs < RESTART_FOR_LOST_MS * 2 ** this.#failedRestarts) return false;
    this.#failedRestarts = Math.min(this.#failedRestarts + 1, MAX_DOUBLINGS);
    return true;
  }
}

/** Returns the addresses of bound GPUs; empty when the kernel does not show them. */
export const boundGpus = ({ proc }: Pick<Host, 'proc'>): readonly string[] => (proc.exists(BOUND) ? proc.list(BOUND) : []);

/** Ignores GPUs that the agent has no permission to open, because a restart does not help them. */
const isAnyLost = ({ gpus, unreadable }: Running): boolean =>
  unreadable.some(({ code }) => code !== CODE.noPermission) || gpus.some(({ gpu }) => gpu.isLost);

/** Undefined when it was not read, or when one of the GPUs is lost. */
function hasAccess({ gpus, access }: Running, at: number, peer: LinkPeer): boolean | undefined {
  const [gpu, other] = [gpus[at]?.gpu, gpus.find(({ pciAddress }) => pciAddress === peer.pciAddress)?.gpu];
  return gpu === undefined || other === undefined || gpu.isLost || other.isLost ? undefined : access.get(gpu)?.get(other);
}

interface Running extends Client {
  /** Bound GPUs at the start of the library. */
  readonly boundGpus: readonly string[];
  readonly startedAtMs: number;
  slowAtMs: number;
  factsAtMs: number;
  /** True when an event other than an Xid occurred since the last round. */
  hasOtherEvents: boolean;
  access: PeerAccess;
  isToRestart?: true;
}

/** Registers for events of all GPUs that are not lost. It does nothing when they are registered. */
const registerEvents = ({ events, gpus }: Running): void => events.register(gpus.flatMap(({ gpu }) => (gpu.isLost ? [] : [gpu])));

/** Problem codes of return codes that concern the node. */
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
  const message = `NVML ${what}: ${textOf(code)}`;
  return { code: known ?? (kindOf(code) === 'device' ? 'gpu-unreadable' : 'driver-unreachable'), message };
}

interface NodeFaults {
  readonly faults: readonly SurplusFault[];
  readonly problems: readonly Problem[];
  /** False when a known GPU may be one of the unreadable GPUs, whose address is unknown. */
  readonly isComplete: boolean;
}

/**
 * Returns the faults that `nvidia-smi` prints around its document. `known` holds the addresses of all GPUs that were ever found. `bound`
 * holds the addresses of GPUs that are bound to the kernel driver; it is empty when the kernel does not show them.
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
      problems.push({ code: 'insufficient-power', device: uuid, message: textOf(CODE.insufficientPower) });
  }
  const isComplete = unreadable.length === 0 || missing.every((address) => faults.some(({ pciAddress }) => pciAddress === address));
  return { faults, problems, isComplete };
}

/**
 * A GPU without a handle has no known address. If a list has as many missing addresses as there are such GPUs, these are their addresses.
 * A GPU that the agent has no permission to open never counts as lost.
 */
function unreadableOf(
  unreadable: readonly UnreadableGpu[],
  lists: readonly (readonly string[])[],
): { readonly faults: SurplusFault[]; readonly problems: Problem[] } {
  const failed = unreadable.filter(({ code }) => code !== CODE.noPermission);
  const missing = lists.find(({ length }) => length === failed.length);
  const faults = (missing ?? []).map((pciAddress, at): SurplusFault => {
    const code = failed[at]?.code ?? CODE.unknown;
    const line = `Unable to determine the device handle for GPU ${pciAddress}: ${textOf(code)}`;
    return { pciAddress, fault: 'lost', line, problem: problemCodeOf(code) };
  });
  const unnamed = missing === undefined ? unreadable : unreadable.filter(({ code }) => code === CODE.noPermission);
  const problems = unnamed.map(
    ({ index, code }): Problem => ({ code: problemCodeOf(code), message: `GPU at index ${index}: ${textOf(code)}` }),
  );
  return { faults, problems };
}

/** Returns the problem code for the return code of one GPU. */
function problemCodeOf(code: number): ProblemCode {
  if (code === CODE.noPermission) return 'no-permission';
  return code === CODE.insufficientPower ? 'insufficient-power' : 'gpu-unreadable';
}
