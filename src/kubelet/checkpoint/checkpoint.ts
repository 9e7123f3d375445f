import { lstat } from 'node:fs/promises';
import { basename, dirname, resolve } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { DocumentCache, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import { parseJson } from '../../host/documents/json.ts';
import type { Bounds, DocumentKind } from '../../host/documents/kind.ts';
import { openPath } from '../../host/fs/open-path.ts';
import { errnoName } from '../../host/fs/tree.ts';
import type { UntrustedFileDependencies } from '../../host/fs/untrusted-file.ts';
import { SingleFlight } from '../../host/single-flight.ts';
import type { CheckpointEntry, CheckpointReason } from '../../model/pod-resources.ts';

/** A directory on a file system that hangs delays a snapshot by this time at most. */
const TIMEOUT_MS = 2_000;

export interface CheckpointRead {
  readonly entries: readonly CheckpointEntry[];
  /** The entries are all that the kubelet has. */
  readonly isComplete?: true;
  /** Present when the file could not be used. Before the first registration of a plugin it is absent, which is no problem. */
  readonly problem?: { readonly code: CheckpointReason; readonly message: string };
}

const NOTHING: CheckpointRead = { entries: [] };

/** Reads the kubelet's checkpoint. Each device plugin can write to its directory, so the file is untrusted. */
export class CheckpointReader {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #parts: UntrustedFileDependencies;
  readonly #cache: DocumentCache<ReturnType<typeof parseCheckpoint>>;
  readonly #reads = new SingleFlight(() => this.#read());
  /** The latest complete read, and the file that gave it. */
  #latest: { readonly mark: string; readonly read: CheckpointRead } | undefined;

  /** With an empty path there is nothing to read. */
  constructor(path: string, thread: DocumentThread, clock: Clock, parts: UntrustedFileDependencies = {}) {
    this.#path = path === '' ? '' : resolve(path);
    this.#clock = clock;
    this.#parts = parts;
    const { mostBytes } = checkpointKind.bounds;
    const { observe } = parts;
    this.#cache = new DocumentCache({ kind: 'checkpoint', mostBytes, mostRoundBytes: mostBytes, thread, serves: () => true, observe });
  }

  /** True while a read has not returned. Such a read can keep the process from exiting. */
  get isPending(): boolean {
    return this.#reads.running !== undefined;
  }

  /** Never rejects, and resolves within a timeout. While an earlier read hangs, it waits for that read and starts no other. */
  read(): Promise<CheckpointRead> {
    if (this.#path === '') return Promise.resolve(NOTHING);
    const pending = this.#reads.join();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(TIMEOUT_MS, () => {
        this.#parts.observe?.({ kind: 'error', path: this.#path, errno: 'timeout' });
        resolve(this.#problem('timeout', `the read has not returned after ${TIMEOUT_MS} ms`));
      });
      void pending.then((read) => {
        cancel();
        resolve(read);
      });
    });
  }

  /**
   * The path is opened step by step only for another file than the last one, and when it came or went. Wherever the path leads meanwhile, a file
   * with the same inode, change time and size has the content that was read, and `lstat` has no effect on it.
   */
  async #read(): Promise<CheckpointRead> {
    const mark = this.#parts.observe === undefined ? await markOf(this.#path) : undefined;
    if (mark !== undefined && mark === this.#latest?.mark) return this.#latest.read;
    const read = await this.#readAnew();
    this.#latest =
      mark === undefined || read.problem !== undefined || (read === NOTHING) !== (mark === ABSENT) ? undefined : { mark, read };
    return read;
  }

  async #readAnew(): Promise<CheckpointRead> {
    const [directory, name] = [dirname(this.#path), basename(this.#path)];
    const read = await inDirectory(directory, openPath(directory), async (opened) => {
      const files = await this.#cache.read(opened, [name], new Set());
      this.#cache.endRound();
      return files.get(name);
    });
    if (read === undefined) return NOTHING;
    if (isProblem(read)) return { entries: [], problem: read };
    if (read.value === undefined) return this.#problem('not-a-checkpoint', 'it is no device checkpoint');
    return { entries: read.value, isComplete: true };
  }

  #problem(code: CheckpointReason, reason: string): CheckpointRead {
    return { entries: [], problem: { code, message: `${this.#path}: ${reason}` } };
  }
}

const ABSENT = 'absent';

async function markOf(path: string): Promise<string | undefined> {
  try {
    const stats = await lstat(path, { bigint: true });
    return stats.isFile() ? [stats.dev, stats.ino, stats.mtimeNs, stats.ctimeNs, stats.size].join(':') : undefined;
  } catch (error) {
    return errnoName(error) === 'ENOENT' ? ABSENT : undefined;
  }
}

/** The checkpoint of 1,000 pods with 16 devices each has less than 4 MiB and 150,000 entries of JSON. */
const BOUNDS: Bounds = { mostBytes: 8 * 1_048_576, mostEntries: 250_000, mostDepth: 16 };

export const checkpointKind: DocumentKind<ReturnType<typeof parseCheckpoint>> = {
  bounds: BOUNDS,
  parse(text) {
    const value = parseCheckpoint(text);
    return { value, isComplete: value !== undefined };
  },
};

/**
 * Parses `kubelet_internal_checkpoint`, the only file that maps pod UIDs to device ids. Returns undefined when the text is truncated
 * or not a checkpoint. Throws `TooComplex`. Skips invalid entries. The checksum covers a dump in a Go-specific format and is not checked.
 */
export function parseCheckpoint(text: string): readonly CheckpointEntry[] | undefined {
  const data = field(parsed(text), 'Data');
  const entries = field(data, 'PodDeviceEntries');
  if (entries === null) return [];
  if (!Array.isArray(entries)) return undefined;
  return entries
    .map(entryFrom)
    .filter((entry) => entry !== undefined)
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
}

function entryFrom(value: unknown): CheckpointEntry | undefined {
  const [podUid, container, resource] = ['PodUID', 'ContainerName', 'ResourceName'].map((name) => field(value, name));
  const deviceIds = deviceIdsFrom(field(value, 'DeviceIDs'));
  if (!isName(podUid) || !isName(container) || !isName(resource) || deviceIds.length === 0) return undefined;
  return { podUid, container, resource, deviceIds };
}

/** Since 1.20 the ids are keyed by NUMA node, and a device with several nodes is listed under each; before, they are a plain list. */
function deviceIdsFrom(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const ids = Array.isArray(value) ? value : Object.values(value).flat();
  return [...new Set(ids.filter(isName))].sort();
}

function parsed(text: string): unknown {
  try {
    return parseJson(text, BOUNDS);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function isName(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function sortKey(entry: CheckpointEntry): string {
  return `${entry.podUid}\u0000${entry.container}\u0000${entry.resource}`;
}
