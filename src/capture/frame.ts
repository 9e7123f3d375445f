import type { ObservedCommand } from '../model/observation.ts';

/** Version of the format. A reader refuses every other one. */
export const FORMAT = 1;

/** Begin of each path of a frame: what the path was on the machine. */
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
/** Options of families that name the kernel log. Empty: the one below `dev`. */
export const KERNEL_LOG_OPTION = /^probe\.[^.]+\.kmsg$/;
/** Options of families that name a directory, into which another program writes. Its place is `directory/` and the option. */
export const DIRECTORY_OPTION = /^probe\.[^.]+\.[a-z-]*-directory$/;
export const CHECKPOINT = 'kubelet/checkpoint';

/** One gRPC call of the kubelet. `answer` is in base64. */
export interface FrameRequest {
  readonly method: string;
  /** Grows with each new socket of the kubelet. */
  readonly kubelet: number;
  readonly answer?: string;
  readonly error?: { readonly code: number; readonly details: string; readonly errno?: string };
}

/** One call of a vendor library, in the form that a replay gives to the probe. */
export interface FrameCall {
  readonly symbol: string;
  readonly types: string;
  readonly values: readonly string[];
  readonly code?: number;
  readonly memory: readonly { readonly at: number; readonly before: string; readonly after: string }[];
  readonly event?: number;
}

/** The changes of the machine between two snapshots. Paths are relative and begin with a {@link PlaceName}. */
export interface Frame {
  /** Monotonic milliseconds since the first frame. */
  readonly atMs: number;
  /** Wall clock, milliseconds since 1970. */
  readonly wallMs: number;
  /** Contents of files. */
  readonly files: Readonly<Record<string, Uint8Array>>;
  readonly links: Readonly<Record<string, string>>;
  readonly directories: readonly string[];
  /** It exists and was not read. */
  readonly unread: readonly string[];
  /** Reads that fail now: path to errno name. The list is complete. */
  readonly errors: Readonly<Record<string, string>>;
  readonly removed: readonly string[];
  /** New records of the kernel log. */
  readonly kernelLog: readonly string[];
  readonly commands: readonly Omit<ObservedCommand, 'kind'>[];
  readonly library: readonly FrameCall[];
  readonly requests: readonly FrameRequest[];
  /** Metrics of devices and containers after this frame, as the captured agent wrote them. */
  readonly page: string;
}

export interface Manifest {
  readonly format: number;
  readonly agentVersion: string;
  readonly node: string;
  readonly isRedacted: boolean;
  /** Options of the captured agent that the replay must use, keyed by flag without dashes. */
  readonly options: Readonly<Record<string, string>>;
  /** Nested parts of the captured agent's configuration file, such as `join.rules`. */
  readonly parts: Readonly<Record<string, unknown>>;
  readonly frames: number;
}

export interface Capture {
  readonly manifest: Manifest;
  readonly frames: readonly Frame[];
}
