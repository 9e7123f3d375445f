import type { Roots } from '../host/host.ts';
import type { Collection } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { PostedCollection } from './posted-collection.ts';

/** What a probe's thread is started with. */
export interface WorkerStart {
  readonly family: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
  /** Where the thread notes which step it is in: memory of a ReadGuard. */
  readonly guard: SharedArrayBuffer;
  /** Whether files are read by another process from the start. */
  readonly isIsolated: boolean;
  /** Devices of the family that are known so far. */
  readonly known: readonly Device[];
  /** Places of which an earlier call still hangs. */
  readonly quarantined: readonly string[];
}

export type ToWorker =
  | { readonly type: 'collect'; readonly run: number }
  /** No read hangs any more: the thread reads files by itself again. */
  | { readonly type: 'read-directly' }
  | { readonly type: 'close' };

/** A file that another process is to read for the thread, which waits for the answer in the memory of an IsolatedChannel. */
export interface ReadRequest {
  readonly type: 'read';
  readonly path: string;
  readonly limit: number;
  readonly memory: SharedArrayBuffer;
}

export type FromWorker =
  | { readonly type: 'collected'; readonly run: number; readonly collection: PostedCollection; readonly durationMs: number }
  | { readonly type: 'failed'; readonly run: number; readonly message: string }
  | { readonly type: 'wake' }
  | ReadRequest
  | { readonly type: 'child-started'; readonly pid: number }
  | { readonly type: 'child-ended'; readonly pid: number };

/** What a thread's owner hears of it. */
export type FromThread =
  | { readonly type: 'collected'; readonly run: number; readonly collection: Collection; readonly durationMs: number }
  | Extract<FromWorker, { readonly type: 'failed' | 'wake' }>;
