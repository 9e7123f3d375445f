import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../host/clock.ts';
import { deviceDirectory } from '../host/fs/read-guard.ts';

export interface ReadOrder {
  readonly id: number;
  readonly path: string;
  readonly limit: number;
}
export type ReadAnswer =
  | { readonly id: number; readonly bytes: Uint8Array; readonly error?: undefined }
  | { readonly id: number; readonly error: string };

/**
 * Limit of reads that may hang at the same time; each one blocks a thread of the process's pool. All threads start with the first read.
 * When a process ends before its first answer, for example because the system refuses so many threads, the next one has fewer.
 */
const POOL = { most: 256, least: 4, divisor: 4 };
/** Pause before the next start after a process that never answered. */
const PAUSE_MS = 1_000;
/** Timeout of a read while nothing hangs, and while something hangs. A device that was only slow gets twice the timeout afterwards. */
const TIMEOUT = { firstMs: 500, furtherMs: 100, longestMs: 2_000 };
/** Bytes that a trial read requests. */
const TRIAL_BYTES = 64;
/** A read of this file never hangs. */
const NULL_DEVICE = '/dev/null';

interface Pending {
  readonly path: string;
  readonly settle: (answer: Uint8Array | string) => void;
}

/** A process that reads files on behalf of threads that must not hang. */
export interface ReadProcess {
  /** Paths with a hanging read. */
  readonly hungPaths: readonly string[];
  isHung(directory: string): boolean;
  /** Must be called before reading. The process ends when each `use` was followed by a `release`. */
  use(): void;
  release(): void;
  /** Calls the listener when a directory starts or stops hanging. Returns a function that removes the listener. */
  onChange(listener: () => void): () => void;
  /** Marks a path whose read is known to hang: its directory counts as hung until a trial read in the background returns. */
  markHung(path: string): void;
  /** Returns at most `limit` bytes, or an errno name. Never takes longer than the timeout. */
  read(path: string, limit: number): Promise<Uint8Array | string>;
  close(): void;
}

/**
 * Reads files in another process, so that a read that hangs blocks no thread of this one. When a read does not return in time, the
 * directory of its device counts as hung: further reads below it fail at once with `EHUNG` until the pending read returns.
 *
 * The process uses 50 to 70 MiB while reads hang, regardless of their number.
 */
export class IsolatedReads implements ReadProcess {
  readonly #clock: Clock;
  readonly #pending = new Map<number, Pending>();
  /** Maps a directory to the path of its pending read. */
  readonly #hung = new Map<string, string>();
  readonly #timeouts = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  #child: ChildProcess | undefined;
  #pool = POOL.most;
  /** Whether the process has answered a read. */
  #hasAnswered = false;
  /** Why the last process failed, and the monotonic time until which no other one is started. */
  #refusal = { error: 'EAGAIN', untilMs: Number.NEGATIVE_INFINITY };
  #users = 0;
  #nextId = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get hungPaths(): readonly string[] {
    return [...this.#hung.values()];
  }

  isHung(directory: string): boolean {
    return this.#hung.has(directory);
  }

  use(): void {
    this.#users += 1;
  }

  release(): void {
    this.#users -= 1;
    if (this.#users === 0) this.#end();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  markHung(path: string): void {
    const directory = deviceDirectory(path);
    if (this.#hung.has(directory)) return;
    this.#hung.set(directory, path);
    void this.#order(path, TRIAL_BYTES).then(() => this.#returned(directory));
    this.#notify();
  }

  async read(path: string, limit: number): Promise<Uint8Array | string> {
    const directory = deviceDirectory(path);
    if (this.#hung.has(directory)) return 'EHUNG';
    const answer = this.#order(path, limit);
    const inTime = await this.#withTimeout(answer, directory);
    if (inTime !== undefined) return inTime;
    this.#hung.set(directory, path);
    void answer.then(() => this.#returned(directory));
    this.#notify();
    return 'EHUNG';
  }

  close(): void {
    this.#users = 0;
    this.#end();
  }

  #withTimeout(answer: Promise<Uint8Array | string>, directory: string): Promise<Uint8Array | string | undefined> {
    const usualMs = this.#hung.size === 0 ? TIMEOUT.firstMs : TIMEOUT.furtherMs;
    const timeoutMs = Math.max(usualMs, this.#timeouts.get(directory) ?? 0);
    return new Promise((resolve) => {
      // The answer may have arrived while this process was busy: it is handled before the read counts as hung.
      const giveUp = (): void => void setImmediate(() => setImmediate(() => resolve(undefined)));
      let cancel = this.#clock.after(timeoutMs, () => {
        // On a busy machine no read returns in time. A read hangs when a later read is answered before it.
        cancel = this.#clock.after(TIMEOUT.longestMs, giveUp);
        void this.#order(NULL_DEVICE, TRIAL_BYTES).then(giveUp);
      });
      void answer.then((value) => {
        cancel();
        resolve(value);
      });
    });
  }

  #returned(directory: string): void {
    if (!this.#hung.delete(directory)) return;
    const before = this.#timeouts.get(directory) ?? TIMEOUT.furtherMs;
    this.#timeouts.set(directory, Math.min(2 * before, TIMEOUT.longestMs));
    this.#notify();
  }

  /** Without a process every read fails with the reason of the failed start: the devices are unread, and nothing hangs. */
  #order(path: string, limit: number): Promise<Uint8Array | string> {
    return new Promise((settle) => {
      if (this.#child === undefined && this.#clock.monotonic() < this.#refusal.untilMs) return settle(this.#refusal.error);
      const id = this.#nextId++;
      this.#pending.set(id, { path, settle });
      this.#child ??= this.#started();
      // A process that could not be started is not connected, and its `error` event follows.
      if (!this.#child.connected) return;
      this.#child.send({ id, path, limit } satisfies ReadOrder, (error) => {
        if (error !== null) this.#answered({ id, error: 'EHUNG' });
      });
    });
  }

  #started(): ChildProcess {
    const isSource = import.meta.url.endsWith('.ts');
    const entry = fileURLToPath(new URL(isSource ? './read-process.ts' : './read-process.js', import.meta.url));
    const child = fork(entry, [], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { PATH: process.env.PATH, UV_THREADPOOL_SIZE: String(this.#pool) },
      execArgv: isSource ? process.execArgv : [],
    });
    child.on('error', (error: NodeJS.ErrnoException) => this.#lost(child, error.code));
    child.on('exit', () => this.#lost(child));
    child.on('message', (answer: ReadAnswer) => this.#answered(answer));
    child.unref();
    child.channel?.unref();
    this.#hasAnswered = false;
    return child;
  }

  #answered(answer: ReadAnswer): void {
    this.#hasAnswered = true;
    const pending = this.#pending.get(answer.id);
    this.#pending.delete(answer.id);
    pending?.settle(answer.error ?? answer.bytes);
  }

  /** The process ended by itself or could not be started. Its pending reads fail; the next request reads again. */
  #lost(child: ChildProcess, error?: string): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    if (!this.#hasAnswered) {
      this.#pool = Math.max(POOL.least, Math.floor(this.#pool / POOL.divisor));
      this.#refusal = { error: error ?? 'EAGAIN', untilMs: this.#clock.monotonic() + PAUSE_MS };
    }
    for (const id of [...this.#pending.keys()]) this.#answered({ id, error: error ?? 'EHUNG' });
  }

  #end(): void {
    const child = this.#child;
    this.#child = undefined;
    this.#hung.clear();
    for (const id of [...this.#pending.keys()]) this.#answered({ id, error: 'EHUNG' });
    child?.kill('SIGKILL');
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
