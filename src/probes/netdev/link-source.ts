import type { Host } from '../../host/host.ts';
import { runCommand } from '../../host/process/command.ts';
import { PCI } from './discover.ts';
import { parseIpText } from './ip-text.ts';
import { LinkSocket, type SocketFailure } from './link-socket.ts';
import type { NetdevOptions } from './options.ts';
import type { ProblemCode } from './problems.ts';
import type { LinkDescription, VirtualFunction } from './virtual-function.ts';

/** The interface of a physical function, as sysfs shows it. */
export interface Interface {
  readonly name: string;
  readonly index: number;
  readonly hardwareAddress?: string;
  readonly pciAddress: string;
}

/** What was asked of the kernel on one interface. Absent `functions`: nothing was learned. */
export interface LinkReply {
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
