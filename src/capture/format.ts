import type { ObservedCall, ObservedCommand, ObservedRequest } from '../model/observation.ts';

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
