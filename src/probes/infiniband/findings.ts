import type { Finding, Remedy } from '../../model/health.ts';
import { declaredFinding, type ReasonOf } from '../kit/finding.ts';
import { cardFaults, pcieFindings } from '../kit/pcie/health.ts';
import { conditions } from './conditions.ts';
import type { HcaSample } from './hca.ts';
import { JUDGED_COUNTERS, LINK_DOWNED } from './judged-counters.ts';
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
    ...(sample.sensors ?? []),
    ...(isPartOfAnother ? cardFaults(context.parent?.pcie, context.parent?.facts.name ?? '', own) : []),
  ];
}

function ownPortFindings(sample: PortSample, context: FindingContext): Finding[] {
  const down = sample.level.isUntold === true ? [] : [portDown(sample, context.isExpected(sample.port))];
  return [...down, ...initializing(sample), ...rateDegraded(sample), ...counters(sample)];
}

interface Cause {
  readonly reason: ReasonOf<typeof conditions.PortDown>;
  readonly remedy?: Remedy;
}

/** Names for the finding of a virtual function whose port is that of its physical function. */
interface Parent {
  /** Port of the virtual function. */
  readonly port: string;
  readonly name: string;
  readonly function: string;
}

/** A port that was never up is not cabled, which is no fault. The health engine remembers whether the port was up since boot. */
function portDown({ port, level, memory, facts }: PortSample, isExpected: boolean, parent?: Parent): Finding {
  const instance = parent?.port ?? port;
  const at = parent === undefined ? '' : ` at ${parent.name}, the physical function of ${parent.function}`;
  if (level.state === undefined) {
    return declaredFinding(conditions.PortDown, 'StateUnreadable', {
      instance,
      status: 'unknown',
      message: `port ${port}: state cannot be read${at}`,
    });
  }
  const physical = level.physicalState;
  const isDown = level.state === 'down' || level.state === 'nop' || (physical !== undefined && physical !== 'link_up');
  const message = `port ${port} is ${level.state}, physical state ${physical ?? 'not reported'}${interfaceText(level, facts.netdev)}${at}`;
  const { reason, ...cause }: Cause = isDown ? causeOfDown(level, facts) : { reason: 'LinkUp' };
  const judgement = { ...cause, instance, message, level: !isDown, atLeast: isExpected || memory.wasEverActive };
  return declaredFinding(conditions.PortDown, isDown && parent !== undefined ? 'ParentPortDown' : reason, judgement);
}

/**
 * A port that searches for the other end of the link, or has lost it, gets the remedy of the condition: check the cable. The other
 * states come from a setting, a test or the subnet manager. A new cable does not change them.
 */
function causeOfDown(level: PortLevel, facts: PortFacts): Cause {
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
function causeOfDisabled({ isInterfaceUp }: PortLevel, { linkLayer }: PortFacts): Cause {
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
  const names = { port: sample.port, name: parent.facts.name, function: own.facts.name };
  return [portDown(above, context.isExpected(above.port), names)];
}

function initializing({ port, level, facts }: PortSample): Finding[] {
  if (level.state === undefined) return [];
  const isWaiting = (level.state === 'init' || level.state === 'armed') && (level.physicalState ?? 'link_up') === 'link_up';
  // iWARP has no subnet manager. Its port waits for an address on its network interface.
  const isFabric = facts.linkLayer !== 'Ethernet';
  const reason = isFabric && facts.smLid === 0 ? 'NoSubnetManager' : 'NotConfigured';
  const message = `port ${port} is ${level.state}, sm_lid ${facts.smLid ?? 'not reported'}`;
  const remedy: { readonly remedy?: Remedy } = isWaiting && !isFabric ? { remedy: 'inspect' } : {};
  const judgement = { instance: port, status: isWaiting, message, ...remedy };
  return [conditions.PortInitializing, conditions.PortNotActivated].map((condition) => declaredFinding(condition, reason, judgement));
}

/** A port that is down reports a placeholder rate. */
function rateDegraded({ port, level, memory }: PortSample): Finding[] {
  if (!memory.isActive || level.rate === undefined) return [];
  const { gigabits } = level.rate;
  const message = `port ${port} runs at ${gigabits} Gb/s (${rateText(level.rate)})`;
  return [declaredFinding(conditions.RateDegraded, 'BelowHighestSeen', { instance: port, message, level: gigabits, tellsHighest: true })];
}

function counters({ port, counters: { raw, saturated }, memory }: PortSample): Finding[] {
  // Soft RoCE also counts lost links, and its counter goes beyond the ceiling of the classic counter.
  const grown = (file: string, count: number | bigint, ceiling?: number) => ({
    message: `port ${port}: ${file} is ${count}`,
    count: Number(count),
    ...(ceiling !== undefined && count <= ceiling && { ceiling }),
  });
  const findings = JUDGED_COUNTERS.flatMap(({ file, condition, ceiling, part }): Finding[] => {
    const count = raw.get(file);
    const instance = part === undefined ? port : `${port}/${part}`;
    return count === undefined ? [] : [declaredFinding(condition, 'CounterGrows', { instance, ...grown(file, count, ceiling) })];
  });
  const { LinkFlapping } = conditions;
  const downed = raw.get(LINK_DOWNED);
  if (downed !== undefined) {
    findings.unshift(declaredFinding(LinkFlapping, 'LinkDownedGrows', { instance: port, ...grown(LINK_DOWNED, downed, 255) }));
  }
  const instance = `${port}/observed`;
  if (downed !== undefined && !saturated.includes(LINK_DOWNED)) {
    return [
      ...findings,
      declaredFinding(LinkFlapping, 'CounterTells', { instance, status: false, message: `port ${port}: link_downed counts` }),
    ];
  }
  const message = `port ${port} was seen to go down ${memory.losses} times`;
  return [...findings, declaredFinding(LinkFlapping, 'PortLost', { instance, message, count: memory.losses })];
}

function reachability({ ports, pcie, isInOtherNamespace }: HcaSample): Finding[] {
  if (pcie?.link.isAsleep === true || isInOtherNamespace) return [];
  const { DeviceUnreachable } = conditions;
  // Each RDMA device has at least one port.
  if (ports.length === 0) {
    return [declaredFinding(DeviceUnreachable, 'StateUnreadable', { status: true, message: 'no port of the device can be listed' })];
  }
  const errors = ports.map(({ level }) => level.error);
  const [error] = errors;
  if (errors.includes(undefined) || error === undefined) {
    return [declaredFinding(DeviceUnreachable, 'Reachable', { status: false, message: 'the state of a port can be read' })];
  }
  const reason = error === 'EHUNG' ? 'ReadsHang' : error === 'ENODEV' || error === 'ENOENT' ? 'NoDevice' : 'StateUnreadable';
  return [declaredFinding(DeviceUnreachable, reason, { status: true, message: `reading the state of every port fails with ${error}` })];
}

function unreadableCounters({ ports }: HcaSample): Finding[] {
  return ports.flatMap(({ port, counters: { classicFiles, classicUnreadable } }): readonly Finding[] => {
    if (classicFiles === 0) return [];
    const status = classicUnreadable === classicFiles;
    const message = `port ${port}: ${classicUnreadable} of ${classicFiles} performance counters cannot be read`;
    return [declaredFinding(conditions.CountersUnreadable, status ? 'NoCounterReadable' : 'Readable', { instance: port, status, message })];
  });
}

function charDevices({ facts, ports }: HcaSample, { charNodes }: FindingContext): Finding[] {
  const { uverbs } = facts.charDevices;
  const { CharDeviceMissing } = conditions;
  // Without a uverbs device in the kernel, no node is missing.
  if (uverbs.length === 0) return [];
  if (charNodes === undefined) {
    return [declaredFinding(CharDeviceMissing, 'NodesHidden', { status: 'unknown', message: 'the agent does not see /dev/infiniband' })];
  }
  if (!ports.some(({ memory, level }) => memory.isActive || level.isUntold === true)) return [];
  const missing = uverbs.filter((name) => !charNodes.has(name));
  const status = missing.length > 0;
  const message = status ? `/dev/infiniband/${missing.join(', ')} is missing` : `/dev/infiniband/${uverbs.join(', ')} is there`;
  return [declaredFinding(CharDeviceMissing, status ? 'UverbsNodeMissing' : 'Present', { status, message })];
}
