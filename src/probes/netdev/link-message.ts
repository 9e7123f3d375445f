import { type Answer, attribute, attributes, type NetlinkSocket } from '../kit/netlink.ts';
import { isCount } from '../kit/text.ts';
import { type Counters, countersOf, type LinkDescription, MOST_FUNCTIONS, type VirtualFunction } from './counters.ts';
import { COUNTERS, SETTINGS } from './metrics.ts';

/** Messages of rtnetlink on one link, RTM_GETLINK and RTM_NEWLINK. Source: Linux include/uapi/linux/rtnetlink.h and if_link.h. */

const LINK_HEADER = 16;
const RTM_NEWLINK = 16;
const RTM_GETLINK = 18;
export const NETLINK_ROUTE = 0;

const IFLA = { address: 1, ifname: 3, vfinfoList: 22, extMask: 29, parentDevName: 56 } as const;
const IFLA_VF_INFO = 1;
const IFLA_VF_STATS = 8;
/** Attributes that begin with the number of the VF. */
const NUMBERED: ReadonlySet<number> = new Set([1, 2, 3, 4, 5, 6, 7, 9]);
/** Asks for the virtual functions and their statistics. */
const RTEXT_FILTER_VF = 1;

/** The request for one link and its virtual functions, after its header. */
export function linkRequest(index: number): Buffer {
  const link = Buffer.alloc(LINK_HEADER);
  link.writeInt32LE(index, 4);
  return Buffer.concat([link, attribute(IFLA.extMask, Buffer.from([RTEXT_FILTER_VF, 0, 0, 0]))]);
}

/** `error` is the number of the errno. `none`: these bytes answer no request with this number, or break the format. */
type LinkAnswer =
  | { readonly link: LinkDescription; readonly error?: undefined }
  | { readonly error: number | 'none'; readonly link?: undefined };

/** The link of an answer of the kernel. */
export function linkIn(answer: Answer): LinkAnswer {
  if (answer.body === undefined) return answer;
  return answer.type === RTM_NEWLINK ? linkAnswer(answer.body) : { error: 'none' };
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

/** Undefined for bytes that are no printable name. */
function textOf(value: Buffer): string | undefined {
  const end = value.indexOf(0);
  const text = value.toString('latin1', 0, end < 0 ? value.length : end);
  return /^[!-~]{1,64}$/.test(text) ? text : undefined;
}

const hexOf = (value: Buffer): string => Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join(':');

/** Asks for one link and its virtual functions. */
export const askLink = (socket: NetlinkSocket, index: number): LinkAnswer => linkIn(socket.ask(RTM_GETLINK, linkRequest(index)));
