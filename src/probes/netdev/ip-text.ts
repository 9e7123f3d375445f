import { defined } from '../../model/defined.ts';
import { parseCount, type Traffic, type TrafficCounter } from './traffic.ts';
import { type LinkDescription, type LinkState, MOST_FUNCTIONS, type VirtualFunction } from './virtual-function.ts';

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
