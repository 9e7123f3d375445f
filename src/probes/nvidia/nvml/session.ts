import type { Host } from '../../../host/host.ts';
import type { Problem } from '../../../model/collection.ts';
import { isDue, type Pace, Pacer } from '../../kit/pace.ts';
import type { ProblemCode } from '../problems.ts';
import type { LinkPeer, NodeSample } from '../sample.ts';
import type { SmiFailure } from '../smi.ts';
import type { SurplusFault } from '../wordings.ts';
import type { XidLine } from '../xid-line.ts';
import { type Client, isDrained, type Refusal, startClient } from './client.ts';
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
  /** Number of restarts after which a GPU was still lost. */
  #failedRestarts = 0;
  #running: Running | undefined;
  readonly #pacer = new Pacer();

  constructor(library: Library, host: Host, wanted: Wanted) {
    this.library = library;
    this.#host = host;
    this.#wanted = wanted;
  }

  /** Runs one round over all GPUs. `bound`: addresses of the GPUs that the driver has. */
  read(bound: readonly string[]): NodeSample | NvmlFailure {
    const pace = this.#pacer.next(this.#host.clock.monotonic());
    const { nowMs } = pace;
    if (this.#running?.isToRestart === true || this.#isLostForLong(nowMs) || this.#haveBoundGpusChanged(bound, pace)) this.close();
    const started = this.#running ?? this.#start(bound, nowMs);
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

  isDrained(address: string): boolean {
    return this.#running !== undefined && isDrained(this.library, address);
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

  #start(bound: readonly string[], nowMs: number): Running | Refusal {
    const client = startClient(this.library, this.#host, this.#wanted.isActivityWanted);
    if ('symbol' in client) return client;
    this.#running = {
      ...client,
      boundGpus: bound,
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
      gpus: running.gpus.map(({ gpu }, at) => ({ ...gpu.sample(running.factsAtMs), peers: peers(at) })),
      hung: running.hung,
      ...faultsOf(running),
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

  /**
   * The library knows only GPUs that were bound at its start. A new one is looked for at once, because it is missing until then. One that is
   * gone has the interval of the slow values.
   */
  #haveBoundGpusChanged(bound: readonly string[], pace: Pace): boolean {
    const running = this.#running;
    if (running === undefined) return false;
    if (bound.some((address) => !running.boundGpus.includes(address))) return true;
    // One that was gone for a moment is a new one.
    if (bound.length < running.boundGpus.length) {
      running.boundGpus = bound;
      running.hasFewer = true;
    }
    return running.hasFewer === true && isDue(running.slowAtMs, this.#wanted.slowEveryMs, pace);
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

/** Ignores GPUs that the agent has no permission to open, because a restart does not help them. */
const isAnyLost = ({ gpus, unreadable, hung, boundGpus }: Running): boolean =>
  unreadable.some(({ code }) => code !== CODE.noPermission) ||
  gpus.some(({ gpu }) => gpu.isLost) ||
  // A GPU that the driver did not start may have been repaired.
  boundGpus.length > gpus.length + unreadable.length + hung.length;

/** Undefined when it was not read, or when one of the GPUs is lost. */
function hasAccess({ gpus, access }: Running, at: number, peer: LinkPeer): boolean | undefined {
  const [gpu, other] = [gpus[at]?.gpu, gpus.find(({ pciAddress }) => pciAddress === peer.pciAddress)?.gpu];
  return gpu === undefined || other === undefined || gpu.isLost || other.isLost ? undefined : access.get(gpu)?.get(other);
}

interface Running extends Client {
  /** Bound GPUs at the start of the library, without those that are gone since. */
  boundGpus: readonly string[];
  hasFewer?: true;
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

/** Returns the faults that `nvidia-smi` prints around its document. A GPU without a handle has no known address, only its index. */
function faultsOf({ gpus, unreadable }: Pick<Client, 'gpus' | 'unreadable'>): Pick<NodeSample, 'faults' | 'problems'> {
  const problems: Problem[] = [];
  const faults = unreadable.map(({ index, code }): SurplusFault => {
    const line = `Unable to determine the device handle for GPU${index}: ${textOf(code)}`;
    return { index, fault: code === CODE.noPermission ? 'closed' : 'lost', line, problem: problemCodeOf(code) };
  });
  for (const { gpu, pciAddress } of gpus) {
    const { uuid = '', busId = '' } = gpu.identity;
    const codes = gpu.faults();
    if (codes.has(CODE.corruptedInforom))
      faults.push({ pciAddress, fault: 'inforom', line: `infoROM is corrupted at gpu ${busId}`, problem: 'inforom-corrupted' });
    if (codes.has(CODE.insufficientPower))
      problems.push({ code: 'insufficient-power', device: uuid, message: textOf(CODE.insufficientPower) });
  }
  return { faults, problems };
}

/** Returns the problem code for the return code of one GPU. */
function problemCodeOf(code: number): ProblemCode {
  if (code === CODE.noPermission) return 'no-permission';
  return code === CODE.insufficientPower ? 'insufficient-power' : 'gpu-unreadable';
}
