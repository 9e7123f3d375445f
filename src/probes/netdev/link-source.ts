import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import { runCommand } from '../../host/process/command.ts';
import { NetlinkSocket, type SocketFailure } from '../kit/netlink.ts';
import { countOf } from '../kit/text.ts';
import {
  type Counters,
  countersOf,
  hasCounted,
  type LinkDescription,
  MOST_FUNCTIONS,
  readDriverFiles,
  type Settings,
  type VirtualFunction,
} from './counters.ts';
import type { NetdevOptions, ProblemCode } from './declaration.ts';
import { PCI } from './discover.ts';
import { askLink, NETLINK_ROUTE } from './link-message.ts';
import { COUNTERS, SETTINGS } from './metrics.ts';

/**
 * The text of `ip -s -d link show`. The text is read and not the JSON: all releases since 2015 print it, and a real adapter printed the
 * text that the tests use. The names of the columns stand above the numbers, and releases differ in the columns.
 */

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
      const counters = columnsOf(header.direction, header.names, words(line));
      if (one !== undefined && counters !== undefined) link.functions.set(current, { ...one, counters: { ...one.counters, ...counters } });
    }
    header = undefined;
    const fn = /^\s+vf (\d{1,5})\s+(\S.*)$/.exec(line);
    if (fn !== null) {
      current = Number(fn[1]);
      if (current <= MOST_FUNCTIONS) link.functions.set(current, { number: current, settings: settingsOf(fn[2] as string) });
      continue;
    }
    const address = /^\s+link\/\S+ ([0-9a-f]{2}(?::[0-9a-f]{2}){0,31}) /.exec(line)?.[1];
    if (address !== undefined && link.functions.size === 0) link.hardwareAddress ??= address;
  }
  return links.map(({ functions, ...rest }) => ({ ...rest, functions: [...functions.values()] }));
}

const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '');

/** Undefined when the numbers do not stand below the names one to one. */
function columnsOf(direction: 'RX' | 'TX', names: readonly string[], values: readonly string[]): Counters | undefined {
  if (names.length === 0 || names.length !== values.length) return undefined;
  const counts = new Map(names.map((name, at) => [`${direction} ${name}`, countOf(values[at] as string)]));
  return [...counts.values()].includes(undefined) ? undefined : countersOf(COUNTERS, ({ column = '' }) => counts.get(column));
}

function settingsOf(text: string): Settings {
  const found = SETTINGS.flatMap(({ name, text: pattern, words: known, most }) => {
    const [, word] = pattern.exec(text) ?? [];
    const number = word === undefined ? -1 : (known?.indexOf(word) ?? Number.parseInt(word, 10));
    return !(number >= 0 && number <= most) ? [] : [[name, number]];
  });
  return Object.fromEntries(found);
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
  #socket: NetlinkSocket | SocketFailure | undefined;
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
    this.#socket ??= NetlinkSocket.open(NETLINK_ROUTE);
    if (this.#socket instanceof NetlinkSocket) return this.#askSocket(this.#socket, one);
    const { failure, message } = this.#socket;
    if (this.#options.source === 'auto') return this.#askCommand(one);
    // A socket can be refused for a lack of descriptors, so it is tried again. The module does not load later.
    if (failure === 'socket') this.#socket = undefined;
    return { problem: { code: 'netlink-unusable', message } };
  }

  close(): void {
    if (this.#socket instanceof NetlinkSocket) this.#socket.close();
    this.#socket = undefined;
  }

  #askSocket(socket: NetlinkSocket, one: Interface): LinkReply {
    const { guard } = this.#host.sys;
    // The kernel answers under a lock that a driver can hold for ever. The supervisor then knows which call hangs.
    const place = this.#host.sys.path(`${PCI}/${one.pciAddress}`);
    if (guard?.isLeftOut(place) === true) return { problem: hangs(one.name) };
    guard?.enter(`${place}/RTM_GETLINK`, 'call');
    const { link, error } = askLink(socket, one.index);
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
    if (this.#source === undefined && [...fromParent.values()].some(({ counters }) => counters !== undefined && hasCounted(counters)))
      this.#source = 'kernel';
    const functions = new Map<number, VirtualFunction>();
    for (const number of numbers) {
      const { settings, counters: told } = fromParent.get(number) ?? { settings: {} };
      const counters = this.#source === 'kernel' ? this.#believed(number, told) : this.#fromFiles(number, one?.name);
      functions.set(number, { number, settings, ...(counters !== undefined && { counters }) });
    }
    return { functions, ...(reply.problem !== undefined && { problem: reply.problem }) };
  }

  #believed(number: number, counters: Counters | undefined): Counters | undefined {
    if (counters === undefined) return undefined;
    if (hasCounted(counters)) this.#counted.add(number);
    else if (this.#counted.has(number)) return undefined;
    return counters;
  }

  #fromFiles(number: number, interfaceName: string | undefined): Counters | undefined {
    const counters = readDriverFiles(this.#sys, this.#directory, interfaceName, number);
    if (counters !== undefined) this.#source = 'files';
    return counters;
  }
}
