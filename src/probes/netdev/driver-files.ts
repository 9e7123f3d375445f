import type { Tree } from '../../host/fs/tree.ts';
import { parseCount, type Traffic, type TrafficCounter } from './traffic.ts';

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
export function readCounterFiles(sys: Tree, directory: string): Traffic {
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
