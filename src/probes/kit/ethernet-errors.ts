import type { Tree } from '../../host/fs/tree.ts';
import { ReplayedTree } from '../../host/recorded/replayed-tree.ts';
import { minutes } from '../../model/duration.ts';
import type { Reading } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { growthCondition, raiseGrowth } from './finding.ts';
import { type Answer, attribute, attributes, NetlinkSocket } from './netlink.ts';
import { netdevsOf } from './network.ts';
import { plainValue } from './text.ts';

/**
 * What the physical layer of an Ethernet port corrected and lost. Source: Linux Documentation/netlink/specs/ethtool.yaml. The kernel asks
 * no capability for these requests (net/ethtool/netlink.c), unlike for the light power of modules.
 */
export const ethernetErrorMetrics = {
  fecBlocks: measured(shared.fecBlocks, 'ETHTOOL_MSG_FEC_GET: ETHTOOL_A_FEC_STAT_CORRECTED, ETHTOOL_A_FEC_STAT_UNCORR'),
  symbolErrors: measured(shared.symbolErrors, 'ETHTOOL_MSG_STATS_GET: aSymbolErrorDuringCarrier of the group eth-phy'),
};

export const blocksLost = growthCondition({
  type: 'BlocksLost',
  severity: 'degraded',
  meaning: 'Forward error correction cannot repair blocks that the port receives: a bad cable, a dirty or a failing transceiver.',
  remedy: 'check-cable',
  source: 'ETHTOOL_A_FEC_STAT_UNCORR; 100 in ten minutes, as for damaged frames, because a link loses some while it trains',
  growth: 100,
  windowMs: minutes(10),
});

const word = (value: number): Buffer => Buffer.from(Uint32Array.of(value).buffer);
const text = (value: string): Buffer => Buffer.from(`${value}\0`);
const generic = (command: number, ...parts: readonly Buffer[]): Buffer => Buffer.concat([Buffer.from([command, 1, 0, 0]), ...parts]);

/** NLA_F_NESTED, without which the kernel refuses a bit set. */
const NESTED = 0x8000;
const CONTROL = 16;
/** CTRL_CMD_GETFAMILY. */
const FAMILY_REQUEST = generic(3, attribute(2, text('ethtool')));

interface Port {
  readonly port: string;
  readonly index: number;
  readonly name: string;
}

/** ETHTOOL_MSG_FEC_GET, and ETHTOOL_MSG_STATS_GET of the first group, eth-phy. */
export function requestsFor({ index, name }: Port): { readonly fec: Buffer; readonly stats: Buffer } {
  /** The kernel compares number and name. `flags`: 1 for a short answer, 4 for statistics. */
  const header = (type: number, flags: number): Buffer =>
    attribute(NESTED | type, attribute(1, word(index)), attribute(2, text(name)), attribute(3, word(flags)));
  const groups = attribute(NESTED | 3, attribute(1), attribute(2, word(1)), attribute(4, word(1)));
  return { fec: generic(29, header(1, 5)), stats: generic(32, header(2, 1), groups) };
}

/** The value at the end of a path of nested attributes; empty without one. */
const valueAt = ({ body = Buffer.alloc(4) }: Answer, ...path: readonly number[]): Buffer =>
  path.reduce(
    (bytes, wanted) => [...attributes(bytes)].find(({ type }) => type === wanted)?.value ?? bytes.subarray(0, 0),
    body.subarray(4),
  );
const { fecBlocks, symbolErrors } = ethernetErrorMetrics;
const countsAt = (answer: Answer, ...path: readonly number[]): readonly bigint[] => {
  const value = valueAt(answer, ...path);
  return Array.from({ length: Math.floor(value.length / 8) }, (_, at) => value.readBigUInt64LE(8 * at));
};

/** Readings and findings of one port. `ask` sends a request of the family ethtool. */
export function readPort(one: Port, ask: (request: Buffer) => Answer) {
  const { port, name } = one;
  const { fec, stats } = requestsFor(one);
  const told = ask(fec);
  const lost = countsAt(told, 5, 3);
  const counted = Object.entries({ corrected: countsAt(told, 5, 2), uncorrectable: lost });
  const readings = counted.flatMap(([kind, [sum, ...lanes]]): Reading[] => {
    const all = sum === undefined ? [] : [['all', sum] as const];
    const each = lanes.length === 0 ? all : lanes.map((count, lane) => [String(lane), count] as const);
    return each.map(([lane, count]) => ({ metric: fecBlocks.name, labels: { port, lane, kind }, value: plainValue(count) }));
  });
  for (const count of countsAt(ask(stats), 4, 4, 0))
    readings.push({ metric: symbolErrors.name, labels: { port }, value: plainValue(count) });
  return { readings, findings: raiseGrowth(blocksLost, lost[0], `blocks of ${name} that could not be corrected: ${lost[0]}`, port) };
}

/** Asks the kernel about the ports in the directory of a function. */
export function readPorts(sys: Tree, directory: string): readonly ReturnType<typeof readPort>[] {
  const place = sys.path(directory);
  const ports = netdevsOf(sys, directory).flatMap(({ name, devPort = 0, represents }) => {
    const index = Number(sys.text(`${directory}/net/${name}/ifindex`));
    return represents === undefined && index > 0 ? [{ port: String(devPort + 1), index, name }] : [];
  });
  // The kernel would answer for the machine on which a capture is replayed.
  const isOther = sys instanceof ReplayedTree || sys.guard?.isLeftOut(place) === true;
  const socket = ports.length === 0 || isOther ? undefined : NetlinkSocket.open(CONTROL);
  if (!(socket instanceof NetlinkSocket)) return [];
  sys.guard?.enter(`${place}/ETHTOOL_MSG`, 'call');
  const [low, high] = valueAt(socket.ask(CONTROL, FAMILY_REQUEST), 1);
  const samples =
    low === undefined || high === undefined ? [] : ports.map((port) => readPort(port, (request) => socket.ask(low + 256 * high, request)));
  sys.guard?.leave();
  socket.close();
  return samples;
}
