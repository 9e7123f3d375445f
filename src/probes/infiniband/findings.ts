import type { Finding, Remedy } from '../../model/health.ts';
import { pcieFindings } from '../kit/pcie/health.ts';
import { conditions } from './conditions.ts';
import type { HcaSample } from './hca.ts';
import { type PortFacts, type PortLevel, type PortSample, rateText } from './port.ts';

/** Data, besides its own sample, that is needed to judge a device. */
export interface FindingContext {
  /** Sample of the physical function of a virtual or scalable function, if the physical function is visible. */
  readonly parent?: HcaSample;
  readonly isExpected: (port: string) => boolean;
  /** Names below `/dev/infiniband`; absent when that directory cannot be listed. */
  readonly charNodes?: ReadonlySet<string>;
}

/** Returns all health findings of one sample of a device. Pure. */
export function findingsOf(sample: HcaSample, context: FindingContext): Finding[] {
  const isPartOfAnother = sample.facts.location.kind === 'vf' || sample.facts.location.kind === 'sf';
  const ports = sample.ports.flatMap((port) => {
    if (isPartOfAnother) return context.parent === undefined ? [] : parentPortFindings(port, sample, context.parent, context);
    return ownPortFindings(port, context);
  });
  const own = sample.pcie === undefined ? [] : pcieFindings(sample.pcie);
  return [
    ...reachability(sample),
    ...ports,
    ...unreadableCounters(sample),
    ...charDevices(sample, context),
    ...own,
    ...(isPartOfAnother ? cardFindings(context.parent, own) : []),
  ];
}

/** A fatal fault of a card affects all its functions. A function with its own error count gets both counts, under different instances. */
function cardFindings(parent: HcaSample | undefined, own: readonly Finding[]): Finding[] {
  if (parent?.pcie === undefined) return [];
  const findings = pcieFindings(parent.pcie).filter(({ type }) => type === 'AerFatal' || type === 'PciFunctionGone');
  return findings.map((finding) =>
    own.some(({ type }) => type === finding.type) ? { ...finding, instance: finding.instance ?? parent.facts.name } : finding,
  );
}

function ownPortFindings(sample: PortSample, context: FindingContext): Finding[] {
  return [portDown(sample, context.isExpected(sample.port)), ...initializing(sample), ...rateDegraded(sample), ...counters(sample)];
}

/** A port that was never up is not cabled, which is no fault. The health engine remembers whether the port was up since boot. */
function portDown({ port, level, memory, facts }: PortSample, isExpected: boolean): Finding {
  const base = { type: conditions.PortDown.type, instance: port };
  if (level.state === undefined) {
    return { ...base, status: 'unknown', reason: 'StateUnreadable', message: `port ${port}: state cannot be read` };
  }
  const physical = level.physicalState;
  const isDown = level.state === 'down' || level.state === 'nop' || (physical !== undefined && physical !== 'link_up');
  const message = `port ${port} is ${level.state}, physical state ${physical ?? 'not reported'}${interfaceText(level, facts.netdev)}`;
  const cause = isDown ? causeOfDown(level, facts) : { reason: 'LinkUp' };
  return { ...base, ...cause, message, level: !isDown, atLeast: isExpected || memory.wasEverActive };
}

/**
 * A port that searches for the other end of the link, or has lost it, gets the remedy of the condition: check the cable. The other
 * states come from a setting, a test or the subnet manager. A new cable does not change them.
 */
function causeOfDown(level: PortLevel, facts: PortFacts): { readonly reason: string; readonly remedy?: Remedy } {
  switch (level.physicalState) {
    case 'polling':
      return { reason: 'LinkPolling' };
    case 'disabled':
      return causeOfDisabled(level, facts);
    case 'sleep':
    case 'phy_test':
    case 'link_up':
      return { reason: 'LinkDown', remedy: 'inspect' };
    default:
      return { reason: 'LinkDown' };
  }
}

/** A RoCE port without a carrier also reports "disabled". When the real cause is unknown, the remedy is `inspect`. */
function causeOfDisabled({ isInterfaceUp }: PortLevel, { linkLayer }: PortFacts): { readonly reason: string; readonly remedy?: Remedy } {
  if (isInterfaceUp === true) return { reason: 'LinkDown' };
  const isUnsure = linkLayer === 'Ethernet' && isInterfaceUp === undefined;
  return { reason: 'PortDisabled', remedy: isUnsure ? 'inspect' : 'enable-port' };
}

/** Returns the interface state, which shows whether a port is disabled or its cable is unplugged. */
function interfaceText({ isInterfaceUp }: PortLevel, netdev: string | undefined): string {
  if (isInterfaceUp === undefined || netdev === undefined) return '';
  return isInterfaceUp ? `; its network interface ${netdev} is up and has no carrier` : `; its network interface ${netdev} is down`;
}

/** A fault of a physical port affects all functions that use it. A virtual function's own port state is only configuration. */
function parentPortFindings(sample: PortSample, own: HcaSample, parent: HcaSample, context: FindingContext): Finding[] {
  const above = parent.ports.find(({ port }) => port === sample.port) ?? parent.ports[0];
  if (above === undefined) return [];
  const finding = portDown(above, context.isExpected(above.port));
  return [
    {
      ...finding,
      instance: sample.port,
      reason: finding.reason === 'LinkUp' || finding.status === 'unknown' ? finding.reason : 'ParentPortDown',
      message: `${finding.message} at ${parent.facts.name}, the physical function of ${own.facts.name}`,
    },
  ];
}

function initializing({ port, level, facts }: PortSample): Finding[] {
  if (level.state === undefined) return [];
  const isWaiting = (level.state === 'init' || level.state === 'armed') && (level.physicalState ?? 'link_up') === 'link_up';
  // iWARP has no subnet manager. Its port waits for an address on its network interface.
  const isFabric = facts.linkLayer !== 'Ethernet';
  const reason = isFabric && facts.smLid === 0 ? 'NoSubnetManager' : 'NotConfigured';
  const message = `port ${port} is ${level.state}, sm_lid ${facts.smLid ?? 'not reported'}`;
  return [conditions.PortInitializing.type, conditions.PortNotActivated.type].map((type) => ({
    type,
    instance: port,
    status: isWaiting,
    reason,
    message,
    ...(isWaiting && !isFabric ? { remedy: 'inspect' as const } : {}),
  }));
}

/** A port that is down reports a placeholder rate. */
function rateDegraded({ port, level, memory }: PortSample): Finding[] {
  if (!memory.isActive || level.rate === undefined) return [];
  const { gigabits } = level.rate;
  const message = `port ${port} runs at ${gigabits} Gb/s (${rateText(level.rate)})`;
  return [{ type: conditions.RateDegraded.type, instance: port, reason: 'BelowHighestSeen', message, level: gigabits, tellsHighest: true }];
}

interface JudgedCounter {
  readonly file: string;
  readonly type: string;
  readonly reason: string;
  readonly ceiling?: number;
  /** Distinguishes the counters of a port that are judged by the same condition. */
  readonly part?: string;
}

/** Counters whose growth the policy judges. At its ceiling a counter stops, so its growth is then unknown. */
const JUDGED_COUNTERS: readonly JudgedCounter[] = [
  { file: 'link_downed', type: conditions.LinkFlapping.type, reason: 'LinkDownedGrows', ceiling: 255 },
  { file: 'symbol_error', type: conditions.SymbolErrors.type, reason: 'CounterGrows', ceiling: 65_535 },
  { file: 'link_error_recovery', type: conditions.LinkErrorRecovery.type, reason: 'CounterGrows', ceiling: 255 },
  { file: 'local_link_integrity_errors', type: conditions.LocalLinkIntegrity.type, reason: 'CounterGrows', ceiling: 15 },
  { file: 'excessive_buffer_overrun_errors', type: conditions.BufferOverrun.type, reason: 'CounterGrows', ceiling: 15 },
  { file: 'port_rcv_errors', type: conditions.ReceiveErrors.type, reason: 'CounterGrows', ceiling: 65_535 },
  { file: 'req_transport_retries_exceeded', type: conditions.TransportRetriesExceeded.type, reason: 'CounterGrows' },
  { file: 'max_retry_exceeded', type: conditions.TransportRetriesExceeded.type, reason: 'CounterGrows' },
  { file: 'retry_exceeded_err', type: conditions.TransportRetriesExceeded.type, reason: 'CounterGrows' },
  { file: 'requester_retries_exceeded', type: conditions.TransportRetriesExceeded.type, reason: 'CounterGrows' },
  { file: 'rx_drops', type: conditions.ReceiveDrops.type, reason: 'CounterGrows' },
  { file: 'rdma_read_wr_err', type: conditions.WorkRequestErrors.type, reason: 'CounterGrows', part: 'read' },
  { file: 'rdma_write_wr_err', type: conditions.WorkRequestErrors.type, reason: 'CounterGrows', part: 'write' },
  { file: 'unresponsive_remote_events', type: conditions.RemoteUnresponsive.type, reason: 'CounterGrows', part: 'unresponsive' },
  { file: 'impaired_remote_conn_events', type: conditions.RemoteUnresponsive.type, reason: 'CounterGrows', part: 'impaired' },
  { file: 'retrans_timeout_events', type: conditions.RetransmissionTimeouts.type, reason: 'CounterGrows' },
  { file: 'retrans_pkts', type: conditions.Retransmissions.type, reason: 'CounterGrows' },
  { file: 'retrans_bytes', type: conditions.RetransmittedBytes.type, reason: 'CounterGrows' },
];

function counters({ port, counters: { raw, saturated }, memory }: PortSample): Finding[] {
  const findings = JUDGED_COUNTERS.flatMap(({ file, type, reason, ceiling, part }): Finding[] => {
    const count = raw.get(file);
    if (count === undefined) return [];
    const instance = part === undefined ? port : `${port}/${part}`;
    const base = { type, instance, reason, message: `port ${port}: ${file} is ${count}`, count: Number(count) };
    // Soft RoCE also counts lost links, and its counter goes beyond the ceiling of the classic counter.
    return [ceiling === undefined || count > ceiling ? base : { ...base, ceiling }];
  });
  const observed = { type: conditions.LinkFlapping.type, instance: `${port}/observed` };
  if (raw.has('link_downed') && !saturated.includes('link_downed')) {
    return [...findings, { ...observed, status: false, reason: 'CounterTells', message: `port ${port}: link_downed counts` }];
  }
  const message = `port ${port} was seen to go down ${memory.losses} times`;
  return [...findings, { ...observed, reason: 'PortLost', message, count: memory.losses }];
}

function reachability({ ports, pcie, isInOtherNamespace }: HcaSample): Finding[] {
  if (pcie?.link.isAsleep === true || isInOtherNamespace) return [];
  const type = conditions.DeviceUnreachable.type;
  // Each RDMA device has at least one port.
  if (ports.length === 0) return [{ type, status: true, reason: 'StateUnreadable', message: 'no port of the device can be listed' }];
  const errors = ports.map(({ level }) => level.error);
  const [error] = errors;
  if (errors.includes(undefined) || error === undefined) {
    return [{ type, status: false, reason: 'Reachable', message: 'the state of a port can be read' }];
  }
  const reason = error === 'EHUNG' ? 'ReadsHang' : error === 'ENODEV' || error === 'ENOENT' ? 'NoDevice' : 'StateUnreadable';
  return [{ type, status: true, reason, message: `reading the state of every port fails with ${error}` }];
}

function unreadableCounters({ ports }: HcaSample): Finding[] {
  return ports.flatMap(({ port, counters: { classicFiles, classicUnreadable } }): Finding[] => {
    if (classicFiles === 0) return [];
    const status = classicUnreadable === classicFiles;
    const message = `port ${port}: ${classicUnreadable} of ${classicFiles} performance counters cannot be read`;
    const reason = status ? 'NoCounterReadable' : 'Readable';
    return [{ type: conditions.CountersUnreadable.type, instance: port, status, reason, message }];
  });
}

function charDevices({ facts, ports }: HcaSample, { charNodes }: FindingContext): Finding[] {
  const { uverbs } = facts.charDevices;
  const { type } = conditions.CharDeviceMissing;
  // Without a uverbs device in the kernel, no node is missing.
  if (uverbs.length === 0) return [];
  if (charNodes === undefined)
    return [{ type, status: 'unknown', reason: 'NodesHidden', message: 'the agent does not see /dev/infiniband' }];
  if (!ports.some(({ memory }) => memory.isActive)) return [];
  const missing = uverbs.filter((name) => !charNodes.has(name));
  const status = missing.length > 0;
  const message = status ? `/dev/infiniband/${missing.join(', ')} is missing` : `/dev/infiniband/${uverbs.join(', ')} is there`;
  return [{ type, status, reason: status ? 'UverbsNodeMissing' : 'Present', message }];
}
