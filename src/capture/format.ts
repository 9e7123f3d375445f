import type { ObservedCall, ObservedCommand, ObservedRequest } from '../model/observation.ts';
import { visible } from '../model/one-line.ts';

/** Version of the format. A reader refuses every other one. */
export const FORMAT = 2;

/** Begin of each path of a capture: what the path was on the machine. */
export type PlaceName =
  | 'sys'
  | 'proc'
  | 'dev'
  | 'share'
  | 'claims'
  | `cdi${number}`
  | `directory/${string}`
  | typeof KERNEL_LOG
  | typeof CHECKPOINT;
/** The kernel log, when it is not the one below `dev`. */
export const KERNEL_LOG = 'log/kmsg';
/** Option that names the kernel log. A relative path begins at `dev`. */
export const KERNEL_LOG_OPTION = 'path.kmsg';
/** Options of families that name a directory, into which another program writes. Its place is `directory/` and the option. */
export const DIRECTORY_OPTION = /^probe\.[^.]+\.[a-z-]*-directory$/;
export const CHECKPOINT = 'kubelet/checkpoint';

/** What is known of one path. `base64`: a file that is no UTF-8. `error`: name of the error of its read; `ENODATA`: nobody read it. */
export type Entry =
  | { readonly file: string }
  | { readonly base64: string }
  | { readonly link: string }
  | { readonly error: string }
  | { readonly directory: true };

export function fileEntry(bytes: Uint8Array): Entry {
  const file = Buffer.from(bytes).toString('utf8');
  return Buffer.from(file).equals(bytes) ? { file } : { base64: Buffer.from(bytes).toString('base64') };
}

export type CapturedCommand = Omit<ObservedCommand, 'kind'>;

/** One call of a vendor library, in the form that a replay gives to the probe: bytes are in base64. */
export interface CapturedCall extends Pick<ObservedCall, 'symbol' | 'types' | 'values' | 'code'> {
  readonly memory: readonly { readonly at: number; readonly before: string; readonly after: string }[];
  /** Number of an event, which is taken once. */
  readonly event?: number;
}

/** One gRPC call of the kubelet. `answer` is in base64. */
export interface CapturedRequest extends Pick<ObservedRequest, 'method' | 'error'> {
  readonly answer?: string;
}

/** The whole machine as it was after one read. */
export interface CapturedRead {
  /** Monotonic milliseconds since the first read. */
  readonly atMs: number;
  /** Wall clock, milliseconds since 1970. */
  readonly wallMs: number;
  /** By path, relative, which begins with a {@link PlaceName}. */
  readonly tree: Readonly<Record<string, Entry>>;
  readonly kernelLog: readonly string[];
  readonly commands: readonly CapturedCommand[];
  readonly library: readonly CapturedCall[];
  /** The latest one of each method. */
  readonly requests: readonly CapturedRequest[];
}

/** Two complete reads of a node, because a rate needs two. */
export interface Capture {
  readonly format: number;
  readonly agentVersion: string;
  readonly node: string;
  readonly isRedacted: boolean;
  /** Options of the captured agent that the replay must use, keyed by flag without dashes. */
  readonly options: Readonly<Record<string, string>>;
  /** Nested parts of the captured agent's configuration file, such as `join.rules`. */
  readonly parts: Readonly<Record<string, unknown>>;
  /** Metrics of devices and containers after the second read, as the captured agent wrote them. */
  readonly page: string;
  readonly reads: readonly [CapturedRead, CapturedRead];
}

/** Limits of Linux: `PATH_MAX` and `NAME_MAX`. */
const MOST_PATH_BYTES = 4_096;
const MOST_PART_BYTES = 255;

/**
 * True for the name of a file in an archive: relative, below the directory where it is unpacked, and shown as it is. No empty part, `.` or
 * `..`, no backslash, which other systems take for a slash, and no character that a line or a terminal does not show.
 */
export function isEntryName(path: string): boolean {
  return (
    Buffer.byteLength(path) <= MOST_PATH_BYTES &&
    !path.includes('\\') &&
    visible(path) === path &&
    path.split('/').every((part) => !['', '.', '..'].includes(part) && Buffer.byteLength(part) <= MOST_PART_BYTES)
  );
}

/** Begins of the paths of a captured tree. Everything else below the directory of a replay belongs to the replay. */
const PLACES =
  /^(?:(?:sys|proc|dev|share|claims|cdi\d{1,3})(?:\/|$)|directory(?:\/probe\.[a-z0-9-]+\.[a-z-]*-directory(?:\/|$)|$)|log(?:\/kmsg)?$|kubelet(?:\/checkpoint)?$)/;

/** As {@link isEntryName}, for a path of a captured tree. */
export const isTreePath = (path: string): boolean => isEntryName(path) && PLACES.test(path);
