import type koffiModule from 'koffi';
import { requireKoffi } from '../../host/koffi.ts';
import { isCount } from '../kit/text.ts';
import { type Counters, countersOf, type LinkDescription, MOST_FUNCTIONS, type VirtualFunction } from './counters.ts';
import { COUNTERS, SETTINGS } from './metrics.ts';

/**
 * Messages of rtnetlink on one link, RTM_GETLINK and RTM_NEWLINK. Source: Linux include/uapi/linux/netlink.h, rtnetlink.h and if_link.h.
 * Numbers have the byte order of the machine. All machines that the agent is built for are little-endian.
 */

const HEADER = 16;
const LINK_HEADER = 16;
const ATTRIBUTE_HEADER = 4;
/** Bits 14 and 15 of an attribute's type are flags: nested, network byte order. */
const TYPE_MASK = 0x3fff;

const NLMSG_ERROR = 2;
const RTM_NEWLINK = 16;
const RTM_GETLINK = 18;
const NLM_F_REQUEST = 1;

const IFLA = { address: 1, ifname: 3, vfinfoList: 22, extMask: 29, parentDevName: 56 } as const;
const IFLA_VF_INFO = 1;
const IFLA_VF_STATS = 8;
/** Attributes that begin with the number of the VF. */
const NUMBERED: ReadonlySet<number> = new Set([1, 2, 3, 4, 5, 6, 7, 9]);
/** Asks for the virtual functions and their statistics. */
const RTEXT_FILTER_VF = 1;

/** The request for one link and its virtual functions. */
export function linkRequest(index: number, sequence: number): Buffer {
  const request = Buffer.alloc(HEADER + LINK_HEADER + ATTRIBUTE_HEADER + 4);
  request.writeUInt32LE(request.length, 0);
  request.writeUInt16LE(RTM_GETLINK, 4);
  request.writeUInt16LE(NLM_F_REQUEST, 6);
  request.writeUInt32LE(sequence, 8);
  request.writeInt32LE(index, HEADER + 4);
  request.writeUInt16LE(ATTRIBUTE_HEADER + 4, HEADER + LINK_HEADER);
  request.writeUInt16LE(IFLA.extMask, HEADER + LINK_HEADER + 2);
  request.writeUInt32LE(RTEXT_FILTER_VF, HEADER + LINK_HEADER + ATTRIBUTE_HEADER);
  return request;
}

/** `error` is the number of the errno. `none`: these bytes answer no request with this number, or break the format. */
type LinkAnswer =
  | { readonly link: LinkDescription; readonly error?: undefined }
  | { readonly error: number | 'none'; readonly link?: undefined };

/** Parses what the kernel sent: the first message that answers the request. */
export function parseLinkAnswer(bytes: Buffer, sequence: number): LinkAnswer {
  for (let at = 0; at + HEADER <= bytes.length; ) {
    const length = bytes.readUInt32LE(at);
    if (length < HEADER || at + length > bytes.length) break;
    const body = bytes.subarray(at + HEADER, at + length);
    const type = bytes.readUInt16LE(at + 4);
    if (bytes.readUInt32LE(at + 8) === sequence) {
      if (type === NLMSG_ERROR && body.length >= 4) return { error: -body.readInt32LE(0) };
      if (type === RTM_NEWLINK) return linkAnswer(body);
    }
    at += aligned(length);
  }
  return { error: 'none' };
}

function linkAnswer(body: Buffer): LinkAnswer {
  if (body.length < LINK_HEADER) return { error: 'none' };
  const index = body.readInt32LE(4);
  let name: string | undefined;
  const found: { hardwareAddress?: string; parentDevice?: string } = {};
  const functions = new Map<number, VirtualFunction>();
  for (const { type, value } of attributes(body.subarray(LINK_HEADER))) {
    if (type === IFLA.ifname) name = textOf(value);
    else if (type === IFLA.address && value.length > 0) found.hardwareAddress = hexOf(value);
    else if (type === IFLA.parentDevName) {
      const parent = textOf(value);
      if (parent !== undefined) found.parentDevice = parent;
    } else if (type === IFLA.vfinfoList) {
      for (const entry of attributes(value)) {
        const one = entry.type === IFLA_VF_INFO ? virtualFunction(entry.value) : undefined;
        if (one !== undefined && functions.size < MOST_FUNCTIONS) functions.set(one.number, one);
      }
    }
  }
  if (name === undefined) return { error: 'none' };
  return { link: { name, index, ...found, functions: [...functions.values()] } };
}

/** Undefined when the attributes do not agree on the number of the function, because then it is unknown whose values they are. */
function virtualFunction(bytes: Buffer): VirtualFunction | undefined {
  let number: number | undefined;
  let counters: Counters = {};
  const settings: Record<string, number> = {};
  for (const { type, value } of attributes(bytes)) {
    if (NUMBERED.has(type)) {
      if (value.length < 8) continue;
      const own = value.readUInt32LE(0);
      if (number !== undefined && own !== number) return undefined;
      number = own;
    }
    if (type === IFLA_VF_STATS) counters = statsOf(value);
    for (const { name, netlink, at, most } of SETTINGS) {
      const setting = netlink === type && value.length >= at + 4 ? value.readUInt32LE(at) : undefined;
      if (setting !== undefined && setting <= most) settings[name] = setting;
    }
  }
  if (number === undefined || number > MOST_FUNCTIONS) return undefined;
  return { number, settings, ...(Object.keys(counters).length > 0 && { counters }) };
}

function statsOf(bytes: Buffer): Counters {
  const found = new Map([...attributes(bytes)].map(({ type, value }) => [type, value]));
  return countersOf(COUNTERS, ({ netlink = -1 }) => {
    const value = found.get(netlink);
    const count = value?.length === 8 ? value.readBigUInt64LE(0) : undefined;
    return count !== undefined && isCount(count) ? count : undefined;
  });
}

/** Walks over a list of attributes. It ends at the first one that does not fit. */
function* attributes(bytes: Buffer): Generator<{ readonly type: number; readonly value: Buffer }> {
  for (let at = 0; at + ATTRIBUTE_HEADER <= bytes.length; ) {
    const length = bytes.readUInt16LE(at);
    if (length < ATTRIBUTE_HEADER || at + length > bytes.length) return;
    yield { type: bytes.readUInt16LE(at + 2) & TYPE_MASK, value: bytes.subarray(at + ATTRIBUTE_HEADER, at + length) };
    at += aligned(length);
  }
}

const aligned = (length: number): number => (length + 3) & ~3;

/** Undefined for bytes that are no printable name. */
function textOf(value: Buffer): string | undefined {
  const end = value.indexOf(0);
  const text = value.toString('latin1', 0, end < 0 ? value.length : end);
  return /^[!-~]{1,64}$/.test(text) ? text : undefined;
}

const hexOf = (value: Buffer): string => Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join(':');

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
