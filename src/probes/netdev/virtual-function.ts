import type { Tree } from '../../host/fs/tree.ts';
import { countOf } from '../kit/text.ts';

/** Counters of one function. A counter that the source does not give is absent. Packets that were dropped are no fault. */
export interface Traffic {
  readonly receivedBytes?: bigint;
  readonly receivedPackets?: bigint;
  readonly receivedMulticast?: bigint;
  readonly receivedBroadcast?: bigint;
  readonly receivedDropped?: bigint;
  readonly transmittedBytes?: bigint;
  readonly transmittedPackets?: bigint;
  readonly transmittedDropped?: bigint;
  readonly receiveErrors?: bigint;
  readonly transmitErrors?: bigint;
}

export type TrafficCounter = keyof Traffic;

/** The kernel answers 0 for all counters when the driver has none, so only another value shows that the driver counts. */
export const hasCounted = (traffic: Traffic): boolean => Object.values(traffic).some((count) => count > 0n);

export const isEmpty = (traffic: Traffic): boolean => Object.keys(traffic).length === 0;

/** A counter of the kernel as decimal text; undefined for other text, for all ones and for a number of more than 64 bits. */
export const parseCount = (text: string | undefined): bigint | undefined => countOf(text?.trim() ?? '');

/** `auto`: the link of the VF follows the port. `enable`: it is always up. `disable`: it is always down. */
export type LinkState = 'auto' | 'enable' | 'disable';

/** What the driver of a physical function (PF) tells of one of its virtual functions (VFs). A fact that it does not tell is absent. */
export interface VirtualFunction {
  /** Number of the VF: the N of the PF's `virtfnN`. */
  readonly number: number;
  readonly linkState?: LinkState;
  readonly checksSpoofing?: boolean;
  readonly isTrusted?: boolean;
  /** VLAN that the PF adds; 0 for none. */
  readonly vlan?: number;
  /** Limit in megabits per second; 0 for none. */
  readonly transmitLimit?: number;
  readonly traffic?: Traffic;
}

/** What one source tells of a physical function's interface and its virtual functions. */
export interface LinkDescription {
  readonly name: string;
  readonly index: number;
  /** Lower case; absent for a link without an address. */
  readonly hardwareAddress?: string;
  /** PCI address of the device below the link. Kernels before 5.14 do not tell it. */
  readonly parentDevice?: string;
  readonly functions: readonly VirtualFunction[];
}

/** Limit of virtual functions of one physical function: the PCI capability counts them with 16 bits. */
export const MOST_FUNCTIONS = 65_535;

/** Names of the counters in the files of all drivers, and in `/sys/class/net/<interface>/statistics`. */
const FILES: Readonly<Record<string, TrafficCounter>> = {
  rx_bytes: 'receivedBytes',
  rx_packets: 'receivedPackets',
  rx_multicast: 'receivedMulticast',
  rx_broadcast: 'receivedBroadcast',
  rx_dropped: 'receivedDropped',
  tx_bytes: 'transmittedBytes',
  tx_packets: 'transmittedPackets',
  tx_dropped: 'transmittedDropped',
  rx_errors: 'receiveErrors',
  tx_errors: 'transmitErrors',
};

/**
 * Parses the file `stats` of one virtual function, as the drivers of MLNX_OFED and bnxt_en write it: one `name : value` per line. The name
 * is the first word, and other names are passed over.
 */
export function parseStatsText(text: string): Traffic {
  const traffic: { -readonly [Counter in TrafficCounter]?: bigint } = {};
  for (const line of text.split('\n')) {
    const [, name = '', value] = /^\s*(\w{1,64})\s*:\s*(\d{1,20})\s*$/.exec(line) ?? [];
    const counter = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    const count = counter === undefined ? undefined : parseCount(value);
    if (counter !== undefined && count !== undefined) traffic[counter] = count;
  }
  return traffic;
}

/**
 * Reads what a driver has in sysfs on one virtual function of a physical function. Undefined when it has nothing there. `directory` is the
 * directory of the physical function on the PCI bus. The three forms: a file (MLNX_OFED, bnxt_en), a directory of files (Intel's own drivers), and `vf<N>_statistics` (mlx4).
 */
export function readDriverFiles(sys: Tree, directory: string, interfaceName: string | undefined, number: number): Traffic | undefined {
  const path = `${directory}/sriov/${number}/stats`;
  const { text, error } = sys.read(path);
  if (text !== undefined) return present(parseStatsText(text));
  if (error === 'EISDIR') return present(readCounterFiles(sys, path));
  if (error !== 'ENOENT' || interfaceName === undefined) return undefined;
  return present(readCounterFiles(sys, `${directory}/net/${interfaceName}/vf${number}_statistics`));
}

/** Reads the counters in a directory of files with one number each. */
function readCounterFiles(sys: Tree, directory: string): Traffic {
  const traffic: { -readonly [Counter in TrafficCounter]?: bigint } = {};
  for (const name of sys.list(directory)) {
    const counter = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    const count = counter === undefined ? undefined : parseCount(sys.reread(`${directory}/${name}`).text);
    if (counter !== undefined && count !== undefined) traffic[counter] = count;
  }
  return traffic;
}

const present = (traffic: Traffic): Traffic | undefined => (Object.keys(traffic).length === 0 ? undefined : traffic);

/**
 * Counters in the directory of an interface, where `multicast` has another name and `broadcast` has none. `how`: `read` for an interface
 * that a container may get, because an open file follows it there.
 */
export function readInterfaceCounters(sys: Tree, directory: string, how: 'read' | 'reread'): Traffic {
  const read = (name: string): bigint | undefined => parseCount(sys[how](`${directory}/statistics/${name}`).text);
  const found: Readonly<Record<TrafficCounter, bigint | undefined>> = {
    receivedBytes: read('rx_bytes'),
    receivedPackets: read('rx_packets'),
    receivedMulticast: read('multicast'),
    receivedBroadcast: undefined,
    receivedDropped: read('rx_dropped'),
    transmittedBytes: read('tx_bytes'),
    transmittedPackets: read('tx_packets'),
    transmittedDropped: read('tx_dropped'),
    receiveErrors: read('rx_errors'),
    transmitErrors: read('tx_errors'),
  };
  return Object.fromEntries(Object.entries(found).filter(([, count]) => count !== undefined)) as Traffic;
}
