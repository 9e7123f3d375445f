import type { Server } from 'node:net';
import { dirname } from 'node:path';
import { systemWords } from '../../errors.ts';
import type { Clock } from '../clock.ts';
import { SingleFlight } from '../single-flight.ts';
import type { EntryWatch } from './entry-watch.ts';
import { makeSocket, type OwnSocket } from './own-socket.ts';
import { makeDirectory } from './replace-file.ts';
import { connectErrno, socketAt, watchSocket } from './socket-file.ts';

/** Time between two looks while the socket is not in its place. Clients have it again within two seconds. */
const RETRY_MS = 1_500;

export interface ReplacedSocketOptions {
  readonly path: string;
  /** Mode of the file: who may connect. */
  readonly mode: number;
  /** Gives a new server for each time that the socket is made. */
  serve(): Server;
  /** Whether a socket on which another process answers may be replaced. `identity` tells the sockets of a path apart. */
  mayReplace(identity: string): boolean;
  /** Whether another agent may have the socket: it answers in place of this one. */
  isYielded(): boolean;
  /** Whether a directory that does not exist is made. */
  readonly makesDirectory?: boolean;
  readonly clock: Clock;
  /** Called after each look with what is wrong, undefined when clients reach an agent there. */
  looked(problem: string | undefined): void;
}

/**
 * A unix socket that stays in its place: it is made again when it was removed, and when the process that replaced it has ended. Nothing but a
 * socket is ever replaced, and one on which another process answers only where `mayReplace` allows it.
 */
export class ReplacedSocket {
  readonly path: string;
  readonly #options: ReplacedSocketOptions;
  #own: OwnSocket | undefined;
  #watch: EntryWatch | undefined;
  #problem: string | undefined = 'it was not made yet';
  readonly #looks = new SingleFlight(() => this.#look());
  #cancelRetry = (): void => {};
  #isClosed = false;

  /** Resolves after the first try. Never rejects. */
  static async open(options: ReplacedSocketOptions): Promise<ReplacedSocket> {
    const kept = new ReplacedSocket(options);
    kept.#watch = watchSocket(options.path, () => void kept.look(), options.clock);
    await kept.look();
    return kept;
  }

  private constructor(options: ReplacedSocketOptions) {
    this.path = options.path;
    this.#options = options;
  }

  /** Why clients do not reach an agent there; undefined while they do. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Whether clients of the path reach this process. */
  get isInPlace(): boolean {
    return this.#own?.isInPlace() === true;
  }

  /** Identity of the socket that this process made last. */
  get identity(): string | undefined {
    return this.#own?.identity;
  }

  /** Looks at the path, and makes the socket where it is absent. One look at a time. */
  look(): Promise<void> {
    return this.#looks.again();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#watch?.close();
    this.#cancelRetry();
    await this.#looks.running;
    this.#own?.close();
  }

  async #look(): Promise<void> {
    if (this.#isClosed) return;
    this.#cancelRetry();
    this.#problem = await this.#trouble();
    if (this.#isClosed) return;
    this.#options.looked(this.#problem);
    // A socket of another process gives no sign when that process ends.
    if (!this.isInPlace) this.#cancelRetry = this.#options.clock.after(RETRY_MS, () => void this.look());
  }

  async #trouble(): Promise<string | undefined> {
    const { path, mayReplace, isYielded } = this.#options;
    if (this.isInPlace) return undefined;
    const found = socketAt(path, 'nofollow');
    if (found.kind === 'not-a-socket') return `the path holds a ${found.what} that is not a socket; remove it`;
    if (found.kind === 'unreadable') return `the path cannot be read (${found.errno})`;
    if (found.kind === 'socket') {
      const errno = await connectErrno(path);
      if (errno === undefined && !mayReplace(found.identity)) return isYielded() ? undefined : 'another process serves a socket there';
      if (errno !== undefined && errno !== 'ECONNREFUSED' && errno !== 'ENOENT') return `another process has a socket there (${errno})`;
    }
    return await this.#make();
  }

  async #make(): Promise<string | undefined> {
    const { path, mode, serve, makesDirectory } = this.#options;
    if (this.#isClosed) return undefined;
    try {
      if (makesDirectory === true) await makeDirectory(dirname(path));
      const own = await makeSocket(serve(), path, mode);
      this.#own?.close();
      this.#own = own;
      return undefined;
    } catch (error) {
      return problemOf(error);
    }
  }
}

function problemOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR' ? 'the directory does not exist' : systemWords(error);
}
