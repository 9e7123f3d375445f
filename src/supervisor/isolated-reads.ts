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
 * Reads that may hang at the same time; each takes a thread of the process's pool. All threads start with the first read. A process that
 * ends before its first answer, as where the system has no room for so many threads, has a successor with fewer.
 */
const POOL = { most: 256, least: 4, divisor: 4 };
/** For so long after a process that never answered no other is started. */
const PAUSE_MS = 1_000;
/** How long the first read that hangs is waited for, and each further one. A device that only was slow gets twice the time from then on. */
const PATIENCE = { firstMs: 500, furtherMs: 100, longestMs: 2_000 };
/** Bytes that a trial of a path asks for. */
const TRIAL_BYTES = 64;
/** A file that never hangs. */
const NOTHING = '/dev/null';

interface Pending {
  readonly path: string;
  readonly settle: (answer: Uint8Array | string) => void;
}

/** A process that reads files for threads that must not hang. */
export interface ReadProcess {
  /** Paths of which a read hangs. */
  readonly hungPaths: readonly string[];
  isHung(directory: string): boolean;
  /** To be called before reading; the process ends when as many have called `release`. */
  use(): void;
  release(): void;
  /** Told when a directory begins or ceases to hang. Returns the way to be told no more. */
  onChange(listener: () => void): () => void;
  /** A read of that path is known to hang: it is tried in the background, and its directory counts as hung until it comes back. */
  markHung(path: string): void;
  /** At most `limit` bytes, or an errno name. Never takes long. */
  read(path: string, limit: number): Promise<Uint8Array | string>;
  close(): void;
}

/**
 * Reads files in another process, so that a read that hangs blocks no thread of this one. When a read does not come back in time, the
 * directory of its device counts as hung: further reads below it fail at once with `EHUNG`, until the pending read comes back.
 *
 * The process takes 50 to 70 MiB while something hangs, whatever the number of reads that hang.
 */
export class IsolatedReads implements ReadProcess {
  readonly #clock: Clock;
  readonly #pending = new Map<number, Pending>();
  /** Directory to the path whose read is pending. */
  readonly #hung = new Map<string, string>();
  readonly #patience = new Map<string, number>();
  readonly #listeners = new Set<() => void>();
  #child: ChildProcess | undefined;
  #pool = POOL.most;
  /** Whether the process has answered yet. */
  #hasAnswered = false;
  /** Why there was no process, and until when none is started. */
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
    void this.#order(path, TRIAL_BYTES).then(() => this.#cameBack(directory));
    this.#tellChange();
  }

  async read(path: string, limit: number): Promise<Uint8Array | string> {
    const directory = deviceDirectory(path);
    if (this.#hung.has(directory)) return 'EHUNG';
    const answer = this.#order(path, limit);
    const inTime = await this.#withinPatience(answer, directory);
    if (inTime !== undefined) return inTime;
    this.#hung.set(directory, path);
    void answer.then(() => this.#cameBack(directory));
    this.#tellChange();
    return 'EHUNG';
  }

  close(): void {
    this.#users = 0;
    this.#end();
  }

  #withinPatience(answer: Promise<Uint8Array | string>, directory: string): Promise<Uint8Array | string | undefined> {
    const usualMs = this.#hung.size === 0 ? PATIENCE.firstMs : PATIENCE.furtherMs;
    const patienceMs = Math.max(usualMs, this.#patience.get(directory) ?? 0);
    return new Promise((resolve) => {
      // The answer may have arrived while this process was busy: it is taken before the read is called hung.
      const giveUp = (): void => void setImmediate(() => setImmediate(() => resolve(undefined)));
      let cancel = this.#clock.after(patienceMs, () => {
        // On a busy machine nothing answers in time. A read hangs when a later read is answered and it is not.
        cancel = this.#clock.after(PATIENCE.longestMs, giveUp);
        void this.#order(NOTHING, TRIAL_BYTES).then(giveUp);
      });
      void answer.then((value) => {
        cancel();
        resolve(value);
      });
    });
  }

  #cameBack(directory: string): void {
    if (!this.#hung.delete(directory)) return;
    const before = this.#patience.get(directory) ?? PATIENCE.furtherMs;
    this.#patience.set(directory, Math.min(2 * before, PATIENCE.longestMs));
    this.#tellChange();
  }

  /** Without a process every read fails with the reason of it: the devices are unread, and nothing hangs. */
  #order(path: string, limit: number): Promise<Uint8Array | string> {
    return new Promise((settle) => {
      if (this.#child === undefined && this.#clock.monotonic() < this.#refusal.untilMs) return settle(this.#refusal.error);
      const id = this.#nextId++;
      this.#pending.set(id, { path, settle });
      this.#child ??= this.#started();
      // One that could not be started is not connected, and tells why in a moment.
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

  /** It ended by itself, or could not be started: what it was reading is read again when it is asked for again. */
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

  #tellChange(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
