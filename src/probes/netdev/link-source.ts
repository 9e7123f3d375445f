import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { runCommand } from '../../host/process/command.ts';
import { defined } from '../../model/defined.ts';
import type { NetdevOptions, ProblemCode } from './declaration.ts';
import { PCI } from './discover.ts';
import { LinkSocket, type SocketFailure } from './link-socket.ts';
import {
  hasCounted,
  type LinkDescription,
  type LinkState,
  MOST_FUNCTIONS,
  parseCount,
  readDriverFiles,
  type Traffic,
  type TrafficCounter,
  type VirtualFunction,
} from './virtual-function.ts';

/**
 * The text of `ip -s -d link show`. The text is read and not the JSON: all releases since 2015 print it, and a real adapter printed the
 * text that the tests use. The names of the columns stand above the numbers, and releases differ in the columns.
 */

const COLUMNS: Readonly<Record<'RX' | 'TX', Readonly<Record<string, TrafficCounter>>>> = {
  RX: {
    bytes: 'receivedBytes',
    packets: 'receivedPackets',
    mcast: 'receivedMulticast',
    bcast: 'receivedBroadcast',
    dropped: 'receivedDropped',
  },
  TX: { bytes: 'transmittedBytes', packets: 'transmittedPackets', dropped: 'transmittedDropped' },
};

interface OpenLink {
  readonly name: string;
  readonly index: number;
  hardwareAddress?: string;
  readonly functions: Map<number, VirtualFunction>;
}

/** Returns all links of the text, in its order. A line of another form is passed over. */
export function parseIpText(text: string): readonly LinkDescription[] {
  const links: OpenLink[] = [];
  let link: OpenLink | undefined;
  /** Number of the function to which the next counters belong. The counters before the first function are those of the link. */
  let current: number | undefined;
  let header: { readonly direction: 'RX' | 'TX'; readonly names: readonly string[] } | undefined;
  for (const line of text.split('\n')) {
    const start = /^(\d{1,9}): ([^\s:@]{1,64})(?:@\S+)?: </.exec(line);
    if (start !== null) {
      link = { index: Number(start[1]), name: start[2] as string, functions: new Map() };
      links.push(link);
      current = undefined;
      header = undefined;
      continue;
    }
    if (link === undefined) continue;
    const counters = /^\s+(RX|TX):\s+(.*)$/.exec(line);
    if (counters !== null) {
      header = { direction: counters[1] as 'RX' | 'TX', names: words(counters[2] as string) };
      continue;
    }
    if (header !== undefined && current !== undefined) {
      const one = link.functions.get(current);
      const traffic = countersOf(header.direction, header.names, words(line));
      if (one !== undefined && traffic !== undefined) link.functions.set(current, { ...one, traffic: { ...one.traffic, ...traffic } });
    }
    header = undefined;
    const fn = /^\s+vf (\d{1,5})\s+(\S.*)$/.exec(line);
    if (fn !== null) {
      current = Number(fn[1]);
      if (current <= MOST_FUNCTIONS) link.functions.set(current, { number: current, ...settingsOf(fn[2] as string) });
      continue;
    }
    const address = /^\s+link\/\S+ ([0-9a-f]{2}(?::[0-9a-f]{2}){0,31}) /.exec(line)?.[1];
    if (address !== undefined && link.functions.size === 0) link.hardwareAddress ??= address;
  }
  return links.map(({ functions, ...rest }) => ({ ...rest, functions: [...functions.values()] }));
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

/** Undefined when the numbers do not stand below the names one to one. */
function countersOf(direction: 'RX' | 'TX', names: readonly string[], values: readonly string[]): Traffic | undefined {
  if (names.length === 0 || names.length !== values.length) return undefined;
  const counts = values.map(parseCount);
  if (counts.includes(undefined)) return undefined;
  return Object.fromEntries(
    names.flatMap((name, at) => {
      const counter = COLUMNS[direction][name];
      return counter === undefined ? [] : [[counter, counts[at]]];
    }),
  );
}

function settingsOf(text: string): Omit<VirtualFunction, 'number'> {
  const onOff = (name: string): boolean | undefined => {
    const word = new RegExp(`(?:^|, )${name} (on|off)(?:,|\\s*$)`).exec(text)?.[1];
    return word === undefined ? undefined : word === 'on';
  };
  const linkState = /(?:^|, )link-state (auto|enable|disable)(?:,|\s*$)/.exec(text)?.[1] as LinkState | undefined;
  const vlan = /(?:^|, )vlan (\d{1,4})(?:,|\s)/.exec(`${text},`)?.[1];
  const limit = /(?:^|, )(?:max_tx_rate|tx rate) (\d{1,9}) ?\(?Mbps/.exec(text)?.[1];
  const [checksSpoofing, isTrusted] = [onOff('spoof checking'), onOff('trust')];
  return defined({
    checksSpoofing,
    isTrusted,
    linkState,
    ...(vlan !== undefined && Number(vlan) <= 4_095 && { vlan: Number(vlan) }),
    ...(limit !== undefined && { transmitLimit: Number(limit) }),
  });
}

/** The interface of a physical function, as sysfs shows it. */
export interface Interface {
  readonly name: string;
  readonly index: number;
  readonly hardwareAddress?: string;
  readonly pciAddress: string;
}

/** What was asked of the kernel on one interface. Absent `functions`: nothing was learned. */
interface LinkReply {
  readonly functions?: readonly VirtualFunction[];
  readonly problem?: { readonly code: ProblemCode; readonly message: string };
}

/** Asks the kernel for the virtual functions of interfaces: by netlink, or by the command `ip` where no foreign function can be called. */
export class LinkSource {
  readonly #host: Host;
  readonly #options: NetdevOptions;
  #socket: LinkSocket | SocketFailure | undefined;
  /** A command that even SIGKILL did not end. No other one is started before it ends. */
  #stuck = false;

  constructor(host: Host, options: NetdevOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** True when only the files of the driver are read. */
  get isOff(): boolean {
    return this.#options.source === 'sysfs';
  }

  async ask(one: Interface): Promise<LinkReply> {
    const { source } = this.#options;
    // A capture keeps what commands print, and not what a socket says.
    if (source === 'ip' || (source === 'auto' && this.#host.observe !== undefined)) return this.#askCommand(one);
    this.#socket ??= LinkSocket.open();
    if (this.#socket instanceof LinkSocket) return this.#askSocket(this.#socket, one);
    const { failure, message } = this.#socket;
    if (this.#options.source === 'auto') return this.#askCommand(one);
    // A socket can be refused for a lack of descriptors, so it is tried again. The module does not load later.
    if (failure === 'socket') this.#socket = undefined;
    return { problem: { code: 'netlink-unusable', message } };
  }

  close(): void {
    if (this.#socket instanceof LinkSocket) this.#socket.close();
    this.#socket = undefined;
  }

  #askSocket(socket: LinkSocket, one: Interface): LinkReply {
    const { guard } = this.#host.sys;
    // The kernel answers under a lock that a driver can hold for ever. The supervisor then knows which call hangs.
    const place = this.#host.sys.path(`${PCI}/${one.pciAddress}`);
    if (guard?.isClosed(place) === true) return { problem: hangs(one.name) };
    guard?.enter(`${place}/RTM_GETLINK`, 'call');
    const { link, error } = socket.ask(one.index);
    guard?.leave();
    if (link !== undefined) return replyOf([link], one);
    if (socket.nameOf(error) === 'EMSGSIZE')
      return {
        problem: { code: 'answer-too-large', message: `the virtual functions of ${one.name} do not fit into one answer of the kernel` },
      };
    if (socket.nameOf(error) === 'ENODEV') return { problem: otherNamespace(one.name) };
    return { problem: { code: 'netlink-unusable', message: `the kernel answers ${socket.nameOf(error)} for ${one.name}` } };
  }

  async #askCommand(one: Interface): Promise<LinkReply> {
    const { children, clock, observe } = this.#host;
    if (this.#stuck) return { problem: hangs(one.name) };
    const result = await runCommand(this.#options['ip-path'], ['-s', '-d', 'link', 'show', 'dev', one.name], {
      deadlineMs: this.#options['ip-timeout'],
      children,
      clock,
      observe,
    });
    const { failure, exitCode, stdout, stderr, stillRunning } = result;
    if (stillRunning !== undefined) {
      this.#stuck = true;
      void stillRunning.then(() => {
        this.#stuck = false;
      });
    }
    if (failure !== undefined) return { problem: { code: 'ip-unusable', message: `ip -s -d link: ${failure}` } };
    const links = parseIpText(stdout);
    if (links.length > 0) return replyOf(links, one);
    if (/does not exist/.test(stderr)) return { problem: otherNamespace(one.name) };
    return {
      problem: { code: 'ip-unusable', message: `ip -s -d link show dev ${one.name} ends with ${exitCode ?? 'a signal'} and no link` },
    };
  }
}

/** Accepts only the link that is the interface: another network namespace can have another interface with the same name or number. */
function replyOf(links: readonly LinkDescription[], one: Interface): LinkReply {
  const link = links.find(({ name, index }) => name === one.name && index === one.index);
  if (link === undefined || !isSame(link, one)) return { problem: otherNamespace(one.name) };
  return { functions: link.functions };
}

function isSame({ hardwareAddress, parentDevice }: LinkDescription, one: Interface): boolean {
  if (parentDevice !== undefined && parentDevice !== one.pciAddress) return false;
  return hardwareAddress === undefined || one.hardwareAddress === undefined || hardwareAddress === one.hardwareAddress;
}

const otherNamespace = (name: string) =>
  ({ code: 'other-network-namespace', message: `the network namespace of the agent does not have the interface ${name}` }) as const;

const hangs = (name: string) => ({ code: 'interface-hangs', message: `an earlier call on the interface ${name} still hangs` }) as const;

/** Where the counters of the virtual functions of one physical function come from. */
type CounterSource = 'kernel' | 'files';

export interface CardReadResult {
  /** Keyed by number. */
  readonly functions: ReadonlyMap<number, VirtualFunction>;
  readonly problem?: LinkReply['problem'];
}

/**
 * The virtual functions of one physical function, as its driver reports them.
 *
 * The kernel answers with counters of 0 also when the driver has none. So its counters are believed from the first one that is not 0. The
 * source then stays the same, because two sources can count from different times.
 */
export class Card {
  readonly #sys: Tree;
  readonly #directory: string;
  #source: CounterSource | undefined;
  /** Numbers of functions that have counted. Counters that all fall to 0 later are a failed question to the firmware. */
  readonly #counted = new Set<number>();
  #count = 0;

  /** `directory`: directory of the physical function on the PCI bus. */
  constructor(sys: Tree, directory: string) {
    this.#sys = sys;
    this.#directory = directory;
  }

  /** `one` is the interface of the physical function; absent when the host does not have it. `numbers`: the present functions. */
  async read(source: LinkSource, one: Interface | undefined, numbers: readonly number[]): Promise<CardReadResult> {
    if (numbers.length !== this.#count) this.#counted.clear();
    this.#count = numbers.length;
    const reply: LinkReply = one === undefined || source.isOff ? {} : await source.ask(one);
    const fromParent = new Map((reply.functions ?? []).map((fn) => [fn.number, fn]));
    if (this.#source === undefined && [...fromParent.values()].some(({ traffic }) => traffic !== undefined && hasCounted(traffic)))
      this.#source = 'kernel';
    const functions = new Map<number, VirtualFunction>();
    for (const number of numbers) {
      const { traffic: counted, ...settings } = fromParent.get(number) ?? { number };
      const traffic = this.#source === 'kernel' ? this.#believed(number, counted) : this.#fromFiles(number, one?.name);
      functions.set(number, { ...settings, ...(traffic !== undefined && { traffic }) });
    }
    return { functions, ...(reply.problem !== undefined && { problem: reply.problem }) };
  }

  #believed(number: number, traffic: Traffic | undefined): Traffic | undefined {
    if (traffic === undefined) return undefined;
    if (hasCounted(traffic)) this.#counted.add(number);
    else if (this.#counted.has(number)) return undefined;
    return traffic;
  }

  #fromFiles(number: number, interfaceName: string | undefined): Traffic | undefined {
    const traffic = readDriverFiles(this.#sys, this.#directory, interfaceName, number);
    if (traffic !== undefined) this.#source = 'files';
    return traffic;
  }
}
