import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { moduleBeside } from '../host/job-thread.ts';
import type { StillTime } from '../host/recorded/read-clock.ts';
import type { Observe } from '../model/observation.ts';
import { FrameReader, messageFrame } from './frames.ts';
import type { FromReader, Reader, ReaderListener, ReplayParts, StartReader, ToReader } from './messages.ts';
import { type Position, PositionFile } from './position.ts';

/** A reader does one thing at a time and keeps little, so it needs no threads for its heap, and little room for new objects. */
const LEAN = ['--single-threaded', '--v8-pool-size=0', '--max-semi-space-size=1'];
/** Signals that others send: the kernel when memory is short, an administrator. */
const FROM_OUTSIDE: ReadonlySet<string | null> = new Set(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP']);

export const startReader: StartReader = (listener) => new ReaderProcess(listener);

/** Starts readers of a capture, which report what they read, or of a replay. `time`: of the present read. */
export const replayReaders =
  (time: () => StillTime, observe?: Observe): StartReader =>
  (listener) =>
    new ReaderProcess(listener, () => ({ isObserved: observe !== undefined, time: time() }), observe);

/** A child process that runs `reader.ts`. It hears on its standard input, sends messages on descriptor 3, and writes into descriptor 4 where it is. */
class ReaderProcess implements Reader {
  readonly #child: ChildProcess;
  readonly #position = new PositionFile();
  readonly #programs = new Set<number>();
  readonly #replay: (() => ReplayParts) | undefined;
  hasExited = false;

  constructor(listener: ReaderListener, replay?: () => ReplayParts, observe: Observe = () => {}) {
    this.#replay = replay;
    const messages = new FrameReader<FromReader>((message) => {
      if (message.kind === 'observed') for (const observation of message.observations) observe(observation);
      else if (message.kind !== 'program') listener.received(message);
      else if (message.hasEnded) this.#programs.delete(message.pid);
      else this.#programs.add(message.pid);
    });
    const flags = process.execArgv.filter((flag) => !flag.startsWith('--inspect'));
    const child = spawn(process.execPath, [...flags, ...LEAN, fileURLToPath(moduleBeside(import.meta.url, 'reader'))], {
      stdio: ['pipe', 'ignore', 'inherit', 'pipe', this.#position.descriptor],
      // Signals of a terminal are for the agent alone.
      detached: true,
    });
    this.#child = child;
    const end = (how: string, more: { readonly isFromOutside: boolean; readonly refused?: string }): void => {
      if (this.hasExited) return;
      this.hasExited = true;
      this.#killPrograms();
      this.#position.close();
      listener.ended({ how, ...more });
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid === undefined) end(error.message, { isFromOutside: true, refused: error.code ?? error.message });
    });
    // Its last messages come before.
    child.once('close', (code, signal) => end(signal ?? `exit status ${code}`, { isFromOutside: FROM_OUTSIDE.has(signal) }));
    // Without descriptors a child has no pipes.
    const [hearing, , , post] = (child.stdio ?? []) as unknown as (Socket | undefined)[];
    post?.on('data', (bytes: Buffer) => {
      try {
        messages.push(bytes);
      } catch {
        // Memory that a library has destroyed.
        this.kill();
      }
    });
    child.unref();
    for (const pipe of [hearing, post]) {
      pipe?.on('error', () => {});
      pipe?.unref();
    }
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  position(): Position {
    return this.#position.read();
  }

  isAsleep(): boolean {
    try {
      return /^\d+ \(.*\) [SD] /.test(readFileSync(`/proc/${this.pid}/stat`, 'utf8'));
    } catch {
      return false;
    }
  }

  hear(then: () => void): void {
    setImmediate(() => setImmediate(then));
  }

  send(message: ToReader): void {
    const replay = message.run === undefined ? undefined : this.#replay?.();
    this.#child.stdin?.write(messageFrame(replay === undefined ? message : { ...message, replay }));
  }

  end(): void {
    this.#child.stdin?.end();
  }

  kill(): void {
    this.#killPrograms();
    this.#child.kill('SIGKILL');
  }

  #killPrograms(): void {
    for (const pid of this.#programs) {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // The program ended by itself.
      }
    }
    this.#programs.clear();
  }
}
