import type { Roots } from '../host/host.ts';
import type { Collection } from '../model/collection.ts';
import type { CollectionDelta } from './collection-delta.ts';

/** What a probe's thread is started with. */
export interface WorkerStart {
  readonly family: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
  /** Where the thread notes which path it reads: memory of a ReadGuard. */
  readonly guard: SharedArrayBuffer;
  /** Memory of a Bell. */
  readonly bell: SharedArrayBuffer;
  /** Memory of a SharedBoard. */
  readonly board: SharedArrayBuffer;
  /** Directories in which an earlier read still hangs. */
  readonly quarantined: readonly string[];
}

/** Rung, the run's number, from 1 on, stands for the first and {@link CLOSE} for the second. */
export type ToWorker = { readonly type: 'collect'; readonly run: number } | { readonly type: 'close' };

export const CLOSE = -1;

/** A number is that of a run that was collected and of which all that is new is on the board. */
export type FromWorker =
  | number
  | { readonly type: 'collected'; readonly run: number; readonly delta: CollectionDelta }
  | { readonly type: 'failed'; readonly run: number; readonly message: string; readonly durationMs: number }
  | { readonly type: 'wake' }
  | { readonly type: 'child-started'; readonly pid: number }
  | { readonly type: 'child-ended'; readonly pid: number };

/** What a thread's owner hears of it. */
export type FromThread =
  | { readonly type: 'collected'; readonly run: number; readonly collection: Collection; readonly durationMs: number }
  | Extract<Exclude<FromWorker, number>, { readonly type: 'failed' | 'wake' }>;
