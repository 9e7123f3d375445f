import type koffiModule from 'koffi';
import { requireKoffi } from '../../host/koffi.ts';

/**
 * Messages of netlink. Source: Linux include/uapi/linux/netlink.h. Numbers have the byte order of the machine. All machines that the agent is
 * built for are little-endian.
 */

const HEADER = 16;
const ATTRIBUTE_HEADER = 4;
/** Bits 14 and 15 of an attribute's type are flags: nested, network byte order. */
const TYPE_MASK = 0x3fff;

const NLMSG_ERROR = 2;
const NLM_F_REQUEST = 1;

function requestOf(type: number, sequence: number, body: Buffer): Buffer {
  const header = Buffer.alloc(HEADER);
  header.writeUInt32LE(HEADER + body.length, 0);
  header.writeUInt16LE(type, 4);
  header.writeUInt16LE(NLM_F_REQUEST, 6);
  header.writeUInt32LE(sequence, 8);
  return Buffer.concat([header, body]);
}

/** `error` is the number of the errno. `none`: these bytes answer no request with this number, or break the format. */
export type Answer =
  | { readonly type: number; readonly body: Buffer; readonly error?: undefined }
  | { readonly error: number | 'none'; readonly body?: undefined };

/** Finds the first message that answers the request. */
export function answerIn(bytes: Buffer, sequence: number): Answer {
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < HEADER || at + length > bytes.length) break;
    const body = bytes.subarray(at + HEADER, at + length);
    const type = bytes.readUInt16LE(at + 4);
    if (bytes.readUInt32LE(at + 8) === sequence && (type !== NLMSG_ERROR || body.length >= 4))
      return type === NLMSG_ERROR ? { error: -body.readInt32LE(0) } : { type, body };
    at += aligned(length);
  }
  return { error: 'none' };
}

/** Walks over a list of attributes. It ends at the first one that does not fit. */
export function* attributes(bytes: Buffer): Generator<{ readonly type: number; readonly value: Buffer }> {
  for (let at = 0; at + ATTRIBUTE_HEADER <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < ATTRIBUTE_HEADER || at + length > bytes.length) return;
    yield { type: bytes.readUInt16LE(at + 2) & TYPE_MASK, value: bytes.subarray(at + ATTRIBUTE_HEADER, at + length) };
    at += aligned(length);
  }
}

/** One attribute, padded. */
export function attribute(type: number, ...values: readonly Buffer[]): Buffer {
  const value = Buffer.concat(values);
  const bytes = Buffer.alloc(aligned(ATTRIBUTE_HEADER + value.length));
  bytes.writeUInt16LE(ATTRIBUTE_HEADER + value.length, 0);
  bytes.writeUInt16LE(type, 2);
  value.copy(bytes, ATTRIBUTE_HEADER);
  return bytes;
}

const aligned = (length: number): number => (length + 3) & ~3;

const AF_NETLINK = 16;
const SOCK_RAW_CLOEXEC = 0x80003;
const MSG_DONTWAIT = 0x40;
/** The kernel puts the virtual functions of a link into one attribute, which holds 64 KiB at most. The rest of a message is far smaller. */
const ANSWER_BYTES = 262_144;

/** Why the kernel could not be asked. `module`: the module for calls of C functions does not load. `socket`: the socket is refused. */
export type SocketFailure = { readonly failure: 'module' | 'socket'; readonly message: string };

type Functions = Readonly<Record<'open' | 'send' | 'receive' | 'close', (...values: unknown[]) => number>>;

/** A socket of netlink in the network namespace of this process. The kernel answers a request before `send` returns. */
export class NetlinkSocket {
  readonly #functions: Functions;
  readonly #koffi: typeof koffiModule;
  readonly #descriptor: number;
  readonly #buffer = Buffer.alloc(ANSWER_BYTES);
  #sequence = 0;

  private constructor(functions: Functions, koffi: typeof koffiModule, descriptor: number) {
    this.#functions = functions;
    this.#koffi = koffi;
    this.#descriptor = descriptor;
  }

  static open(protocol: number, load: () => typeof koffiModule = requireKoffi): NetlinkSocket | SocketFailure {
    let koffi: typeof koffiModule;
    let functions: Functions;
    try {
      koffi = load();
      functions = bind(koffi);
    } catch (error) {
      return { failure: 'module', message: firstLine(error) };
    }
    const descriptor = functions.open(AF_NETLINK, SOCK_RAW_CLOEXEC, protocol);
    if (descriptor >= 0) return new NetlinkSocket(functions, koffi, descriptor);
    return { failure: 'socket', message: `a netlink socket cannot be opened: ${errnoText(koffi, koffi.errno())}` };
  }

  /** The next answer overwrites this one. */
  ask(type: number, body: Buffer): Answer {
    this.#sequence = (this.#sequence + 1) % 0x7fff_ffff;
    const bytes = requestOf(type, this.#sequence, body);
    if (this.#functions.send(this.#descriptor, bytes, bytes.length, 0) < 0) return { error: this.#koffi.errno() };
    // Earlier requests may have left messages. The number of messages is bounded, because the socket is in no group.
    for (let tries = 0; tries < 16; tries += 1) {
      const length = this.#functions.receive(this.#descriptor, this.#buffer, this.#buffer.length, MSG_DONTWAIT);
      if (length < 0) return { error: this.#koffi.errno() };
      const answer = answerIn(this.#buffer.subarray(0, length), this.#sequence);
      if (answer.error !== 'none') return answer;
    }
    return { error: 'none' };
  }

  /** `ENODEV`, or the number of an errno without a name. */
  nameOf(error: number | 'none'): string {
    return error === 'none' ? 'no answer' : errnoText(this.#koffi, error);
  }

  close(): void {
    this.#functions.close(this.#descriptor);
  }
}

function bind(koffi: typeof koffiModule): Functions {
  const own = koffi.load(null);
  return {
    open: own.func('int socket(int, int, int)') as never,
    send: own.func('long send(int, const void *, size_t, int)') as never,
    receive: own.func('long recv(int, void *, size_t, int)') as never,
    close: own.func('int close(int)') as never,
  };
}

function errnoText({ os }: typeof koffiModule, error: number): string {
  return Object.entries(os.errno).find(([, code]) => code === error)?.[0] ?? String(error);
}

const firstLine = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
