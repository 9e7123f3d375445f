import type { Roots } from '../host/host.ts';
import type { StillTime } from '../host/recorded/read-clock.ts';
import type { Device } from '../model/device.ts';
import type { FaultMark } from '../model/fault.ts';
import type { Observation } from '../model/observation.ts';
import type { Release } from '../model/release.ts';
import type { Position } from './position.ts';
import type { PostedCollection, PostedReads } from './posted-collection.ts';

/** Input of a new probe of a family. */
export interface ProbeStart {
  /** The data of a declared family; absent for a family in code. */
  readonly declared?: object | undefined;
  readonly options: Readonly<Record<string, unknown>>;
  readonly roots: Roots;
  /** Known devices of the family. */
  readonly known: readonly Device[];
  /** What the agent has counted of the family's faults in the log. */
  readonly counted?: FaultMark | undefined;
}

/** What a capture or a replay adds to each request. */
export interface ReplayParts {
  /** The reader reports all that it reads, for a capture. */
  readonly isObserved: boolean;
  readonly time: StillTime;
}

/** Asks for one collection of a family. */
export interface Collect {
  readonly family: string;
  readonly run: number;
  /** Makes the probe anew. */
  readonly start?: ProbeStart | undefined;
  /** Devices that are enough. The reader may collect all of them instead. */
  readonly ids?: ReadonlySet<string> | undefined;
  /** Places that must not be entered, because a step hangs there. */
  readonly leftOut: readonly string[];
  /** A request to close the driver; absent without one. */
  readonly release?: Release | undefined;
  readonly replay?: ReplayParts;
}

/** A request without a run ends the probe. */
export type ToReader = Collect | { readonly family: string; readonly run?: undefined };

export type FromReader =
  | { readonly kind: 'collected'; readonly run: number; readonly collection: PostedCollection; readonly durationMs: number }
  | { readonly kind: 'partial'; readonly run: number; readonly reads: PostedReads }
  /** `run` is absent when the error came between two runs. */
  | { readonly kind: 'failed'; readonly run?: number | undefined; readonly family: string; readonly message: string }
  | { readonly kind: 'wake'; readonly family: string }
  | { readonly kind: 'observed'; readonly observations: readonly Observation[] }
  /** A program that the reader started or that ended; it leads a process group. */
  | { readonly kind: 'program'; readonly pid: number; readonly hasEnded: boolean };

/** How a reader ended. `refused`: the system did not start it. */
export interface ReaderEnd {
  readonly how: string;
  /** Somebody else ended it, so its step is not the cause. */
  readonly isFromOutside: boolean;
  readonly refused?: string;
}

export interface ReaderListener {
  received(message: FromReader): void;
  ended(end: ReaderEnd): void;
}

/** One process that reads hardware, as the agent sees it. */
export interface Reader {
  readonly pid: number | undefined;
  readonly hasExited: boolean;
  position(): Position;
  /** Whether it waits in the kernel, and not for a processor. */
  isAsleep(): boolean;
  /** Calls back after the messages that it has sent so far were taken. */
  hear(then: () => void): void;
  send(message: ToReader): void;
  /** It ends by itself when its work is done. */
  end(): void;
  kill(): void;
}

export type StartReader = (listener: ReaderListener) => Reader;
