import type { Finding, Remedy } from '../../model/health.ts';
import { pcieFindings } from '../pcie-health.ts';
import { conditions } from './conditions.ts';
import type { HcaSample } from './hca.ts';
import { type PortFacts, type PortLevel, type PortSample, rateWord } from './port.ts';

/** What is needed to judge a device besides its own sample. */
export interface FindingContext {
  /** Sample of its physical function, for a virtual or scalable one whose physical function is visible. */
  readonly parent?: HcaSample;
  readonly isExpected: (port: string) => boolean;
  /** Names below `/dev/infiniband`; absent when that directory cannot be seen. */
  readonly charNodes?: ReadonlySet<string>;
}

/** Everything that one look at a device says about its health. Pure. */
export function findingsOf(sample: HcaSample, around: FindingContext): Finding[] {
  const isPartOfAnother = sample.facts.location.kind === 'vf' || sample.facts.location.kind === 'sf';
  const ports = sample.ports.flatMap((port) => {
    if (isPartOfAnother) return around.parent === undefined ? [] : parentPortFindings(port, sample, around.parent, around);
    return ownPortFindings(port, around);
  });
  const own = sample.pcie === undefined ? [] : pcieFindings(sample.pcie);
  return [
    ...reachability(sample),
    ...ports,
    ...unreadableCounters(sample),
    ...charDevices(sample, around),
    ...own,
    ...(isPartOfAnother ? wholeFindings(around.parent, own) : []),
  ];
}

/** What takes a card out takes out every function of it. One that counts for itself as well has both counts, each under its own name. */
function wholeFindings(parent: HcaSample | undefined, own: readonly Finding[]): Finding[] {
  if (parent?.pcie === undefined) return [];
  const findings = pcieFindings(parent.pcie).filter(({ type }) => type === 'AerFatal' || type === 'PciFunctionGone');
  return findings.map((finding) => (own.some(({ type }) => type === finding.type) ? { ...finding, instance: parent.facts.name } : finding));
}

function ownPortFindings(sample: PortSample, around: FindingContext): Finding[] {
  return [portDown(sample, around.isExpected(sample.port)), ...initializing(sample), ...rateDegraded(sample), ...counters(sample)];
}

/** A port that is not cabled was never up, and is no fault. Who has seen it up since the machine booted remembers that. */
function portDown({ port, level, memory, facts }: PortSample, isExpected: boolean): Finding {
  const base = { type: conditions.PortDown.type, instance: port };
  if (level.state === undefined) {
    return { ...base, status: 'unknown', reason: 'StateUnreadable', message: `port ${port}: state cannot be read` };
  }
  const physical = level.physicalState;
  const isDown = level.state === 'down' || level.state === 'nop' || (physical !== undefined && physical !== 'link_up');
  const message = `port ${port} is ${level.state}, physical state ${physical ?? 'not told'}${interfaceWords(level, facts.netdev)}`;
  const told = isDown ? whyDown(level, facts) : { reason: 'LinkUp' };
  return { ...base, ...told, message, level: !isDown, atLeast: isExpected || memory.wasEverActive };
}

/**
 * A port that looks for the far end, or that lost it, asks for a look at the cable, as the condition declares. The other states come from
 * a setting, a test or the subnet manager, and a new cable changes none of them.
 */
function whyDown(level: PortLevel, facts: PortFacts): { readonly reason: string; readonly remedy?: Remedy } {
  switch (level.physicalState) {
    case 'polling':
      return { reason: 'LinkPolling' };
    case 'disabled':
      return whyDisabled(level, facts);
    case 'sleep':
    case 'phy_test':
    case 'link_up':
      return { reason: 'LinkDown', remedy: 'inspect' };
    default:
      return { reason: 'LinkDown' };
  }
}

/** A RoCE port without a carrier says that it is disabled too. Where nothing tells which of the two it is, neither is advised. */
function whyDisabled({ isInterfaceUp }: PortLevel, { linkLayer }: PortFacts): { readonly reason: string; readonly remedy?: Remedy } {
  if (isInterfaceUp === true) return { reason: 'LinkDown' };
  const isUnsure = linkLayer === 'Ethernet' && isInterfaceUp === undefined;
  return { reason: 'PortDisabled', remedy: isUnsure ? 'inspect' : 'enable-port' };
}

/** What tells a disabled port from one whose cable is out. */
function interfaceWords({ isInterfaceUp }: PortLevel, netdev: string | undefined): string {
  if (isInterfaceUp === undefined || netdev === undefined) return '';
  return isInterfaceUp ? `; its network interface ${netdev} is up and has no carrier` : `; its network interface ${netdev} is down`;
}

/** A port fault is the fault of every function behind it; what a virtual function says of its own port is configuration. */
function parentPortFindings(sample: PortSample, own: HcaSample, parent: HcaSample, around: FindingContext): Finding[] {
  const above = parent.ports.find(({ port }) => port === sample.port) ?? parent.ports[0];
  if (above === undefined) return [];
  const finding = portDown(above, around.isExpected(above.port));
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
  // iWARP has no subnet manager: such a port waits for an address of its network interface.
  const isFabric = facts.linkLayer !== 'Ethernet';
  const reason = isFabric && facts.smLid === 0 ? 'NoSubnetManager' : 'NotConfigured';
  const message = `port ${port} is ${level.state}, sm_lid ${facts.smLid ?? 'not told'}`;
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
  const message = `port ${port} runs at ${gigabits} Gb/s (${rateWord(level.rate)})`;
  return [{ type: conditions.RateDegraded.type, instance: port, reason: 'BelowHighestSeen', message, level: gigabits, tellsHighest: true }];
}

/** Counters that the policy judges by their growth. A ceiling tells it from where on growth says nothing. */
const JUDGED: readonly { readonly file: string; readonly type: string; readonly reason: string; readonly ceiling?: number }[] = [
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
];

function counters({ port, counters: { raw, saturated }, memory }: PortSample): Finding[] {
  const findings = JUDGED.flatMap(({ file, type, reason, ceiling }): Finding[] => {
    const count = raw.get(file);
    if (count === undefined) return [];
    const base = { type, instance: port, reason, message: `port ${port}: ${file} is ${count}`, count: Number(count) };
    // Soft RoCE counts lost links too, and beyond what the classic counter can.
    return [ceiling === undefined || count > ceiling ? base : { ...base, ceiling }];
  });
  const observed = { type: conditions.LinkFlapping.type, instance: `${port}/observed` };
  if (raw.has('link_downed') && !saturated.includes('link_downed')) {
    return [...findings, { ...observed, status: false, reason: 'CounterTells', message: `port ${port}: link_downed counts` }];
  }
  const message = `port ${port} was seen to go down ${memory.losses} times`;
  return [...findings, { ...observed, reason: 'PortLost', message, count: memory.losses }];
}

function reachability({ ports, pcie, isElsewhere }: HcaSample): Finding[] {
  if (ports.length === 0 || pcie?.link.isAsleep === true || isElsewhere) return [];
  const errors = ports.map(({ level }) => level.error);
  const [error] = errors;
  const type = conditions.DeviceUnreachable.type;
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
  // Where no node is visible at all, the agent was not given /dev; where the kernel has no uverbs device, none is missing.
  if (charNodes === undefined || uverbs.length === 0 || !ports.some(({ memory }) => memory.isActive)) return [];
  const missing = uverbs.filter((name) => !charNodes.has(name));
  const status = missing.length > 0;
  const message = status ? `/dev/infiniband/${missing.join(', ')} is missing` : `/dev/infiniband/${uverbs.join(', ')} is there`;
  return [{ type: conditions.CharDeviceMissing.type, status, reason: status ? 'UverbsNodeMissing' : 'Present', message }];
}
