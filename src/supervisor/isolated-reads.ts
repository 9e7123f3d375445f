import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../host/clock.ts';
import { deviceDirectory } from '../host/fs/step-record.ts';
import { moduleBeside } from '../host/job-thread.ts';

export interface ReadOrder {
  readonly id: number;
  readonly path: string;
  readonly limit: number;
  /** Present for a trial: the process first reports which file this is, and does not open the file that the trial must not touch again. */
  readonly except?: string;
}
export type ReadAnswer =
  | { readonly id: number; readonly bytes: Uint8Array; readonly error?: undefined }
  | { readonly id: number; readonly error: string }
  /** Device and inode of the file of a trial, which follows. */
  | { readonly id: number; readonly file: string; readonly error?: undefined };

/**
 * Limit of reads that may hang at the same time; each one blocks a thread of the process's pool. All threads start with the first read.
 * When a process ends before its first answer, for example because the system refuses so many threads, the next one has fewer.
 */
const POOL = { most: 256, least: 4, divisor: 4 };
/** Pause before the next start after a process that never answered. */
const PAUSE_MS = 1_000;
/** Timeout of a read while nothing hangs, and while something hangs. A device that was only slow gets twice the timeout afterwards. */
const TIMEOUT = { firstMs: 500, furtherMs: 100, longestMs: 2_000 };
/** How often a fresh process tries the places that hang. */
const TRIAL_EVERY_MS = 30_000;
/** Time that an ended process has for its other reads, and then time to die before it counts as one that cannot be ended. */
const RETIRE_MS = 5_000;
/** Limit of processes that cannot be ended. At the limit, no other one tries the places that hang until one of them ends. */
const MOST_STUCK = 8;
/** Bytes that a trial read requests. */
const TRIAL_BYTES = 64;
/** A read of this file never hangs. */
const NULL_DEVICE = '/dev/null';

interface Pending {
  readonly child: ChildProcess;
  readonly onFile?: (file: string) => void;
  readonly settle: (answer: Uint8Array | string) => void;
}

/** A directory in which a read hangs. */
interface Hang {
  readonly path: string;
  /** Number of the latest trial. The end of an earlier one says nothing: its process was ended. */
  trial: number;
  /** File that the latest trial found. */
  file?: string;
  /** File that a process cannot leave. */
  except?: string;
}

/** A process that reads files on behalf of threads that must not hang. */
export interface ReadProcess {
  /** Paths with a hanging read. */
  readonly hungPaths: readonly string[];
  /** Number of earlier processes that the kernel cannot end. */
  readonly stuckProcesses: number;
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
 * directory of its device counts as hung: further reads below it fail at once with `EHUNG` until a trial read returns. Twice a minute a
 * fresh process tries again, because a read of a device that was replaced, or of a file that is gone, may never return.
 *
 * The process uses 50 to 70 MiB while reads hang, regardless of their number.
 */
export class IsolatedReads implements ReadProcess {
  readonly #clock: Clock;
  readonly #pending = new Map<number, Pending>();
  /** Keyed by directory. */
  readonly #hung = new Map<string, Hang>();
  /** Processes that were replaced and have not ended. */
  readonly #retired = new Set<ChildProcess>();
  /** Those of them that did not end when they were killed. */
  readonly #stuck = new Set<ChildProcess>();
  #cancelTrial: (() => void) | undefined;
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
    return [...this.#hung.values()].map(({ path }) => path);
  }

  get stuckProcesses(): number {
    return this.#stuck.size;
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
    this.#hangs(directory, path, this.#order(path, TRIAL_BYTES));
  }

  async read(path: string, limit: number): Promise<Uint8Array | string> {
    const directory = deviceDirectory(path);
    if (this.#hung.has(directory)) return 'EHUNG';
    const answer = this.#order(path, limit);
    const inTime = await this.#withTimeout(answer, directory);
    if (inTime !== undefined) return inTime;
    this.#hangs(directory, path, answer);
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

  #hangs(directory: string, path: string, answer: Promise<Uint8Array | string>): void {
    this.#hung.set(directory, { path, trial: 0 });
    void answer.then((value) => this.#returned(directory, 0, value));
    this.#cancelTrial ??= this.#clock.after(TRIAL_EVERY_MS, () => this.#tryAgain());
    this.#notify();
  }

  /** Lets a fresh process read all places that hang, whatever becomes of the process before. */
  #tryAgain(): void {
    this.#cancelTrial = undefined;
    if (this.#hung.size === 0 || this.#users === 0) return;
    this.#cancelTrial = this.#clock.after(TRIAL_EVERY_MS, () => this.#tryAgain());
    if (this.#stuck.size >= MOST_STUCK) return;
    if (this.#child !== undefined) this.#retire(this.#child);
    this.#child = undefined;
    for (const [directory, hang] of this.#hung) {
      hang.trial += 1;
      const { trial } = hang;
      const onFile = (file: string): void => {
        hang.file = file;
      };
      void this.#order(hang.path, TRIAL_BYTES, { except: hang.except ?? '', onFile }).then((value) =>
        this.#returned(directory, trial, value),
      );
    }
  }

  /** Ends a process after its other reads. One that stays keeps its file, which no trial opens again while it is the same file. */
  #retire(child: ChildProcess): void {
    const files = [...this.#hung.values()].map((hang) => ({ hang, file: hang.file }));
    this.#retired.add(child);
    child.once('exit', () => {
      this.#retired.delete(child);
      if (!this.#stuck.delete(child)) return;
      for (const { hang, file } of files) if (hang.except === file) delete hang.except;
      this.#notify();
    });
    this.#clock.after(RETIRE_MS, () => {
      child.kill('SIGKILL');
      this.#clock.after(RETIRE_MS, () => {
        if (!this.#retired.has(child)) return;
        this.#stuck.add(child);
        for (const { hang, file } of files) if (file !== undefined) hang.except = file;
        this.#notify();
      });
    });
  }

  #returned(directory: string, trial: number, value: Uint8Array | string): void {
    const hang = this.#hung.get(directory);
    if (hang !== undefined && hang.trial === trial && value !== 'EHUNG') this.#forget(directory);
  }

  #forget(directory: string): void {
    this.#hung.delete(directory);
    const before = this.#timeouts.get(directory) ?? TIMEOUT.furtherMs;
    this.#timeouts.set(directory, Math.min(2 * before, TIMEOUT.longestMs));
    this.#notify();
  }

  /** Without a process every read fails with the reason of the failed start: the devices are unread, and nothing hangs. */
  #order(
    path: string,
    limit: number,
    { except, onFile }: { readonly except?: string; readonly onFile?: (file: string) => void } = {},
  ): Promise<Uint8Array | string> {
    return new Promise((settle) => {
      if (this.#child === undefined && this.#clock.monotonic() < this.#refusal.untilMs) return settle(this.#refusal.error);
      const id = this.#nextId++;
      this.#child ??= this.#started();
      const child = this.#child;
      this.#pending.set(id, { child, settle, ...(onFile === undefined ? {} : { onFile }) });
      // A process that could not be started is not connected, and its `error` event follows.
      if (!child.connected) return;
      child.send({ id, path, limit, ...(except === undefined ? {} : { except }) } satisfies ReadOrder, (error) => {
        if (error !== null) this.#answered({ id, error: 'EHUNG' });
      });
    });
  }

  #started(): ChildProcess {
    const entry = moduleBeside(import.meta.url, 'read-process');
    const child = fork(fileURLToPath(entry), [], {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: { PATH: process.env.PATH, UV_THREADPOOL_SIZE: String(this.#pool) },
      execArgv: entry.pathname.endsWith('.ts') ? process.execArgv : [],
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
    if ('file' in answer) {
      pending?.onFile?.(answer.file);
      return;
    }
    this.#pending.delete(answer.id);
    pending?.settle(answer.error ?? answer.bytes);
  }

  /** The process ended by itself or could not be started. Its pending reads fail; the next request reads again. */
  #lost(child: ChildProcess, error?: string): void {
    const isCurrent = this.#child === child;
    if (isCurrent) this.#child = undefined;
    if (isCurrent && !this.#hasAnswered) {
      this.#pool = Math.max(POOL.least, Math.floor(this.#pool / POOL.divisor));
      this.#refusal = { error: error ?? 'EAGAIN', untilMs: this.#clock.monotonic() + PAUSE_MS };
    }
    for (const [id, pending] of [...this.#pending]) if (pending.child === child) this.#answered({ id, error: error ?? 'EHUNG' });
    // The reads ended with the process. A file that another process cannot leave still hangs.
    if (isCurrent) for (const [directory, { except }] of [...this.#hung]) if (except === undefined) this.#forget(directory);
  }

  #end(): void {
    const child = this.#child;
    this.#child = undefined;
    this.#hung.clear();
    this.#cancelTrial?.();
    this.#cancelTrial = undefined;
    for (const id of [...this.#pending.keys()]) this.#answered({ id, error: 'EHUNG' });
    for (const each of [...(child === undefined ? [] : [child]), ...this.#retired]) each.kill('SIGKILL');
  }

  #notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
