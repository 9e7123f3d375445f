import { constants } from 'node:os';
import { LONGEST_SOCKET_PATH } from '../fs/socket-file.ts';
import { requireKoffi } from '../koffi.ts';
import { FRAME_BYTES, type Frame, frameAt } from './relay-frames.ts';
import type { LogSource } from './source.ts';

/** Longest time that a poll waits for the next bytes. An answer takes less than a millisecond. */
const QUIET_MS = 300;
/** Longest time that one poll waits at all. A complete log takes some hundred milliseconds. */
const WAIT_MS = 1_500;
const BUFFER_BYTES = 131_072;
const ASKED = Buffer.from([0x3f]);

/** From Linux include/uapi, and the same on all machines that the agent is built for. */
const AF_UNIX = 1;
const STREAM_CLOEXEC_NONBLOCK = 0x80801;
const DONTWAIT_NOSIGNAL = 0x4040;
const POLLIN = 1;

interface Functions {
  open(family: number, type: number, protocol: number): number;
  connect(descriptor: number, address: Buffer, length: number): number;
  send(descriptor: number, bytes: Buffer, length: number, flags: number): number;
  receive(descriptor: number, bytes: Buffer, length: number, flags: number): number;
  poll(entries: Buffer, count: number, timeoutMs: number): number;
  close(descriptor: number): number;
  errno(): number;
}

/**
 * The log by the socket of another process that may read it. Reads are synchronous, as those of the device: a probe reads the log in the middle of
 * a collection, and judges by what it says now. Node's own sockets give nothing before the collection ends.
 */
export class RelayedLog implements LogSource {
  readonly #functions: Functions;
  readonly #descriptor: number;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  /** What was received and not given yet. */
  #from = 0;
  #to = 0;
  /** A question has no complete answer yet. */
  #isAsked = false;
  /** What is left of the times to wait. */
  #quietMs = 0;
  #waitMs = 0;

  constructor(path: string) {
    this.#functions = functions();
    const { open, connect, close } = this.#functions;
    const name = Buffer.from(path);
    if (name.length > LONGEST_SOCKET_PATH) throw failure('ENAMETOOLONG');
    const address = Buffer.alloc(2 + name.length + 1);
    address.writeUInt16LE(AF_UNIX, 0);
    address.set(name, 2);
    this.#descriptor = this.#checked(open(AF_UNIX, STREAM_CLOEXEC_NONBLOCK, 0));
    try {
      this.#checked(connect(this.#descriptor, address, address.length));
    } catch (error) {
      close(this.#descriptor);
      throw error;
    }
  }

  begin(): void {
    // What was not answered in time is not waited for again.
    this.#quietMs = this.#isAsked ? 0 : QUIET_MS;
    this.#waitMs = WAIT_MS;
  }

  next(): Buffer | 'end' | 'late' {
    for (;;) {
      const given = this.#frame();
      if (given === undefined) {
        this.#ask();
        if (!this.#receive()) return 'late';
      } else if (given.type === 'record') return given.content;
      else {
        this.#isAsked = false;
        if (given.type === 'failed') throw told(given.content);
        if (given.type === 'end') return 'end';
      }
    }
  }

  close(): void {
    this.#functions.close(this.#descriptor);
  }

  #frame(): Frame | undefined {
    const read = frameAt(this.#buffer.subarray(this.#from, this.#to));
    if (read === 'wrong') throw failure('EPROTO');
    if (read === undefined) return undefined;
    this.#from += read.size;
    return read.frame;
  }

  #ask(): void {
    if (this.#isAsked) return;
    this.#checked(this.#functions.send(this.#descriptor, ASKED, ASKED.length, DONTWAIT_NOSIGNAL));
    this.#isAsked = true;
  }

  /** Receives more bytes. False when none came in the time that is left. */
  #receive(): boolean {
    if (BUFFER_BYTES - this.#from < FRAME_BYTES || this.#from === this.#to) {
      this.#buffer.copyWithin(0, this.#from, this.#to);
      this.#to -= this.#from;
      this.#from = 0;
    }
    const room = this.#buffer.subarray(this.#to);
    for (;;) {
      const length = this.#functions.receive(this.#descriptor, room, room.length, DONTWAIT_NOSIGNAL);
      if (length === 0) throw failure('ECONNRESET');
      if (length > 0) {
        this.#to += length;
        this.#quietMs = QUIET_MS;
        return true;
      }
      const errno = this.#functions.errno();
      if (errno !== constants.errno.EAGAIN && errno !== constants.errno.EINTR) throw failure(nameOf(errno));
      if (this.#quietMs <= 0 || this.#waitMs <= 0) return false;
      this.#wait();
    }
  }

  #wait(): void {
    const entry = Buffer.alloc(8);
    entry.writeInt32LE(this.#descriptor, 0);
    entry.writeInt16LE(POLLIN, 4);
    const beganMs = performance.now();
    this.#functions.poll(entry, 1, Math.ceil(Math.min(this.#quietMs, this.#waitMs)));
    const tookMs = Math.max(performance.now() - beganMs, 0.1);
    this.#quietMs -= tookMs;
    this.#waitMs -= tookMs;
  }

  #checked(result: number): number {
    if (result < 0) throw failure(nameOf(this.#functions.errno()));
    return result;
  }
}

/** What the process behind the socket says of its own reads. */
function told(content: Buffer): Error {
  const errno = content.toString('latin1');
  return /^E[A-Z0-9]{1,20}$/.test(errno) ? Object.assign(failure(errno), { isTold: true }) : failure('EPROTO');
}

const failure = (code: string): Error => Object.assign(new Error(code), { code });

const nameOf = (errno: number): string => Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? String(errno);

let loaded: Functions | undefined;

/** `ENOSYS` where the module for calls of C functions does not load. */
function functions(): Functions {
  if (loaded !== undefined) return loaded;
  try {
    const koffi = requireKoffi();
    const own = koffi.load(null);
    loaded = {
      open: own.func('int socket(int, int, int)') as never,
      connect: own.func('int connect(int, const void *, unsigned int)') as never,
      send: own.func('long send(int, const void *, size_t, int)') as never,
      receive: own.func('long recv(int, void *, size_t, int)') as never,
      poll: own.func('int poll(void *, unsigned long, int)') as never,
      close: own.func('int close(int)') as never,
      errno: () => koffi.errno(),
    };
    return loaded;
  } catch {
    throw failure('ENOSYS');
  }
}
