/** Kind of an entry of a directory. `other`: a device node, a pipe or a socket. */
export type EntryKind = 'file' | 'directory' | 'link' | 'other';

/** How one command ended. `failure` as in the result of a command of the host. */
export interface ObservedCommand {
  readonly kind: 'command';
  /** Name or path as the probe gave it. */
  readonly program: string;
  readonly args: readonly string[];
  readonly stdout: string;
  readonly stderr: string;
  readonly exitCode?: number;
  readonly signal?: string;
  readonly failure?: string;
}

/** What a function of a library was given and what it left at one of its pointers: the first bytes of both. */
export interface ObservedMemory {
  /** Position of the pointer among the arguments. */
  readonly at: number;
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

/** One call of a vendor library. */
export interface ObservedCall {
  readonly kind: 'library';
  readonly symbol: string;
  /** Letters of the types, one for each argument. */
  readonly types: string;
  /** Values of the arguments as texts; empty for pointers to memory. */
  readonly values: readonly string[];
  /** Return code; absent when this library has no such function. */
  readonly code?: number;
  readonly memory: readonly ObservedMemory[];
  /** Each call takes another event, so its answers are a queue. */
  readonly isEvent?: true;
}

/** One call of the kubelet. */
export interface ObservedRequest {
  readonly kind: 'request';
  /** Path of the gRPC method. */
  readonly method: string;
  /** Differs for every socket that was bound at the path. */
  readonly identity: string;
  readonly answer?: Uint8Array;
  readonly error?: { readonly code: number; readonly details: string; readonly errno?: string };
}

/**
 * What one read of the machine gave, before anything parses it. Paths are absolute, and without symbolic links where the machine has the
 * path.
 */
export type Observation =
  | { readonly kind: 'file'; readonly path: string; readonly bytes: Uint8Array }
  /** A read or a listing failed. `errno`: name of the error, such as `EINVAL`. */
  | { readonly kind: 'error'; readonly path: string; readonly errno: string }
  | { readonly kind: 'directory'; readonly path: string; readonly entries: readonly (readonly [name: string, kind: EntryKind])[] }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  /** The path exists but was not read. */
  | { readonly kind: 'present'; readonly path: string; readonly entry: EntryKind }
  | { readonly kind: 'absent'; readonly path: string }
  /** One record of the kernel log, as the kernel wrote it. */
  | { readonly kind: 'kernel-log'; readonly path: string; readonly text: string }
  | ObservedCommand
  | ObservedCall
  | ObservedRequest;

/** Takes what was read. It must return quickly and never throw. */
export type Observe = (observation: Observation) => void;
