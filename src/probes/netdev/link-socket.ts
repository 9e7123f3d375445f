import type koffiModule from 'koffi';
import { requireKoffi } from '../../host/koffi.ts';
import { type LinkAnswer, linkRequest, parseLinkAnswer } from './link-message.ts';

const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
const SOCK_RAW_CLOEXEC = 0x80003;
const MSG_DONTWAIT = 0x40;
/** The kernel puts the virtual functions of a link into one attribute, which holds 64 KiB at most. The rest of a message is far smaller. */
const ANSWER_BYTES = 262_144;

/** Why the kernel could not be asked. `module`: the module for calls of C functions does not load. `socket`: the socket is refused. */
export type SocketFailure = { readonly failure: 'module' | 'socket'; readonly message: string };

type Functions = Readonly<Record<'open' | 'send' | 'receive' | 'close', (...values: unknown[]) => number>>;

/** A socket of rtnetlink in the network namespace of this process. The kernel answers a request before `send` returns. */
export class LinkSocket {
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

  static open(load: () => typeof koffiModule = requireKoffi): LinkSocket | SocketFailure {
    let koffi: typeof koffiModule;
    let functions: Functions;
    try {
      koffi = load();
      functions = bind(koffi);
    } catch (error) {
      return { failure: 'module', message: firstLine(error) };
    }
    const descriptor = functions.open(AF_NETLINK, SOCK_RAW_CLOEXEC, NETLINK_ROUTE);
    if (descriptor >= 0) return new LinkSocket(functions, koffi, descriptor);
    return { failure: 'socket', message: `a netlink socket cannot be opened: ${errnoText(koffi, koffi.errno())}` };
  }

  /** Asks for one link and its virtual functions. */
  ask(index: number): LinkAnswer {
    this.#sequence = (this.#sequence + 1) % 0x7fff_ffff;
    const request = linkRequest(index, this.#sequence);
    if (this.#functions.send(this.#descriptor, request, request.length, 0) < 0) return { error: this.#koffi.errno() };
    // Earlier requests may have left messages. The number of messages is bounded, because the socket is in no group.
    for (let tries = 0; tries < 16; tries += 1) {
      const length = this.#functions.receive(this.#descriptor, this.#buffer, this.#buffer.length, MSG_DONTWAIT);
      if (length < 0) return { error: this.#koffi.errno() };
      const answer = parseLinkAnswer(this.#buffer.subarray(0, length), this.#sequence);
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
