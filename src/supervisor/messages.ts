import type { Roots } from '../host/host.ts';
import type { Collection } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { FaultMark } from '../model/fault.ts';
import type { Observation } from '../model/observation.ts';
import type { ReadingList } from '../model/readings.ts';
import type { Release } from '../model/release.ts';
import type { PostedCollection, PostedReads, ReadAgain } from './posted-collection.ts';

/** What a capture or a replay wants from a thread. Both are absent in a running agent. */
export interface ThreadExtras {
  /** The thread reports all that it reads, for a capture. */
  readonly isObserved?: boolean;
  /** Memory of a `ReadClock`. */
  readonly clock?: SharedArrayBuffer;
}

/** Start parameters of a probe's thread. */
export interface WorkerStart extends ThreadExtras {
  readonly family: string;
  /** The data of a declared family; absent for a family in code. */
  readonly declared?: object;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
  /** Memory of a {@link StepRecord}, in which the thread records its current step. */
  readonly guard: SharedArrayBuffer;
  /** Whether another process reads the files from the start. */
  readonly isIsolated: boolean;
  /** Known devices of the family. */
  readonly known: readonly Device[];
  /** What the agent has counted of the family's faults in the log. */
  readonly counted?: FaultMark | undefined;
  /** Places in which an earlier call still hangs. */
  readonly quarantined: readonly string[];
  /** A request to close the driver; absent without one. */
  readonly release?: Release | undefined;
}

export type ToWorker =
  /** `ids`: devices that are enough. The thread may collect all of them instead. */
  | { readonly type: 'collect'; readonly run: number; readonly ids?: ReadonlySet<string> | undefined }
  /** No read hangs any more, so the thread reads files by itself again. */
  | { readonly type: 'read-directly' }
  | { readonly type: 'release'; readonly release: Release | undefined }
  | { readonly type: 'close' };

/** Requests that another process reads a file. The thread waits for the answer in the memory of an IsolatedChannel. */
export interface ReadRequest {
  readonly type: 'read';
  readonly path: string;
  readonly limit: number;
  readonly memory: SharedArrayBuffer;
}

export type FromWorker =
  | { readonly type: 'collected'; readonly run: number; readonly collection: PostedCollection; readonly durationMs: number }
  | { readonly type: 'read-again'; readonly run: number; readonly reads: PostedReads }
  | { readonly type: 'failed'; readonly run: number; readonly message: string }
  | { readonly type: 'wake' }
  | { readonly type: 'observed'; readonly observations: readonly Observation[] }
  | ReadRequest
  | { readonly type: 'child-started'; readonly pid: number }
  | { readonly type: 'child-ended'; readonly pid: number };

/** Messages that reach the owner of a thread. */
export type FromThread =
  | { readonly type: 'collected'; readonly run: number; readonly collection: Collection<ReadingList>; readonly durationMs: number }
  | { readonly type: 'read-again'; readonly run: number; readonly again: ReadAgain }
  | Extract<FromWorker, { readonly type: 'failed' | 'wake' }>;
