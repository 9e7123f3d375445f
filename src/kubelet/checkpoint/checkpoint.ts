import { basename, dirname, resolve } from 'node:path';
import type { Clock } from '../../host/clock.ts';
import { DocumentCache, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import { openPath } from '../../host/fs/open-path.ts';
import type { UntrustedFileDependencies } from '../../host/fs/untrusted-file.ts';
import type { CheckpointEntry, CheckpointReason } from '../../model/pod-resources.ts';
import { type Checkpoint, checkpointKind, MOST_ENTRIES } from './checkpoint-document.ts';

/** A directory on a file system that hangs delays a snapshot by this time at most. */
const TIMEOUT_MS = 2_000;

export interface CheckpointRead {
  readonly entries: readonly CheckpointEntry[];
  /** Present when the file could not be used. Before the first registration of a plugin it is absent, which is no problem. */
  readonly problem?: { readonly code: CheckpointReason; readonly message: string };
}

const NOTHING: CheckpointRead = { entries: [] };

/** Reads the kubelet's checkpoint. Each device plugin can write to its directory, so the file is untrusted. */
export class CheckpointReader {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #parts: UntrustedFileDependencies;
  readonly #cache: DocumentCache<Checkpoint>;
  #pending: Promise<CheckpointRead> | undefined;

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
    return this.#pending !== undefined;
  }

  /** Never rejects, and resolves within a timeout. While an earlier read hangs, it waits for that read and starts no other. */
  read(): Promise<CheckpointRead> {
    if (this.#path === '') return Promise.resolve(NOTHING);
    this.#pending ??= this.#read().finally(() => {
      this.#pending = undefined;
    });
    const pending = this.#pending;
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

  async #read(): Promise<CheckpointRead> {
    const [directory, name] = [dirname(this.#path), basename(this.#path)];
    const read = await inDirectory(directory, openPath(directory), async (opened) => {
      const files = await this.#cache.read(opened, [name], new Set());
      this.#cache.endRound();
      return files.get(name);
    });
    if (read === undefined) return NOTHING;
    if (isProblem(read)) return { entries: [], problem: read };
    const { entries, count } = read.value;
    if (entries === undefined) return this.#problem('not-a-checkpoint', 'it is no device checkpoint');
    if (count <= entries.length) return { entries };
    return { ...this.#problem('too-many-entries', `it has ${count} entries; the first ${MOST_ENTRIES} are used`), entries };
  }

  #problem(code: CheckpointReason, reason: string): CheckpointRead {
    return { entries: [], problem: { code, message: `${this.#path}: ${reason}` } };
  }
}
