import { hours, minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';
import { declaredFinding, growthCondition, raiseGrowth } from '../kit/finding.ts';
import { nicLogConditions } from '../kit/network-conditions.ts';
import type { Settings } from './counters.ts';
import { LINK_STATES } from './metrics.ts';
import type { PortSample } from './port.ts';

const ABI = 'Linux Documentation/ABI/testing/sysfs-class-net';

export const conditions = {
  ...nicLogConditions,
  PortDown: {
    type: 'PortDown',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['LinkDown', 'PortDisabled', 'ParentPortDown', 'ParentPortDisabled', 'LinkUp', 'LinkUnreadable'],
    meaning:
      'A port that was up before has no link. Virtual functions use the port of their physical function. An interface that an administrator took down is only reported.',
    remedy: 'check-cable',
    source: `${ABI}: carrier is 0 and bit 0 of flags, IFF_UP, is set. 30 s: retraining of a link takes seconds`,
    forMs: seconds(30),
    recoveryMs: seconds(60),
  },
  VfLinkDisabled: {
    type: 'VfLinkDisabled',
    class: 'self-clearing',
    severity: 'info',
    reasons: ['LinkStateDisable', 'LinkStateAllows'],
    meaning: 'An administrator disabled the link of the virtual function. Its holder cannot use the network.',
    remedy: 'enable-port',
    source: 'Linux include/uapi/linux/if_link.h: IFLA_VF_LINK_STATE is IFLA_VF_LINK_STATE_DISABLE',
  },
  LinkFlapping: {
    ...growthCondition({
      type: 'LinkFlapping',
      severity: 'degraded',
      meaning: 'The link was lost three times or more in half a day. An administrator who takes the interface down is counted, too.',
      remedy: 'check-cable',
      source: `${ABI}: carrier_down_count; three in twelve hours, the limit of GPUd`,
      growth: 2,
      windowMs: hours(12),
    }),
  },
  TransmitTimeout: growthCondition({
    type: 'TransmitTimeout',
    severity: 'degraded',
    meaning: 'A transmit queue of the interface stopped, and the kernel asked the driver to reset it.',
    remedy: 'inspect',
    source: 'Linux Documentation/ABI/testing/sysfs-class-net-queues: tx_timeout; the kernel log has a line NETDEV WATCHDOG each time',
    growth: 0,
    windowMs: hours(1),
  }),
  ReceiveErrors: growthCondition({
    type: 'ReceiveErrors',
    severity: 'degraded',
    meaning: 'The port receives damaged frames: a bad cable, a dirty or a failing transceiver.',
    remedy: 'check-cable',
    source: `${ABI}-statistics: rx_crc_errors of the physical function; 100 in ten minutes, because single errors are normal`,
    growth: 100,
    windowMs: minutes(10),
  }),
} as const satisfies Readonly<Record<string, ConditionSpec>>;

/** Findings of the ports of a physical function, or of a function without SR-IOV. Pure. */
export function portFindings(ports: readonly PortSample[]): Finding[] {
  return ports.flatMap((sample) => {
    const { port, interfaceName, transmitTimeouts, counters } = sample;
    const { carrier_losses: carrierLosses, rx_crc_errors: crcErrors } = counters;
    return [
      portDown(sample),
      ...raiseGrowth(conditions.LinkFlapping, carrierLosses, `carrier losses of ${interfaceName}: ${carrierLosses}`, port),
      ...raiseGrowth(conditions.TransmitTimeout, transmitTimeouts, `transmit timeouts of ${interfaceName}: ${transmitTimeouts}`, port),
      ...raiseGrowth(conditions.ReceiveErrors, crcErrors, `frames with a wrong checksum of ${interfaceName}: ${crcErrors}`, port),
    ];
  });
}

/**
 * A port that was never up is not cabled, which is no fault. The health engine remembers whether the port was up since boot. `parent`: the
 * physical function, when the finding is for its virtual function.
 */
function portDown({ port, interfaceName, isUp, isEnabled }: PortSample, parent?: string): Finding {
  const text = (what: string): string => `port ${port}: ${what}${parent === undefined ? '' : `, the physical function ${parent}`}`;
  const down = { instance: port, level: false };
  if (isUp === undefined) {
    const message = text(`the carrier of ${interfaceName} cannot be read`);
    return declaredFinding(conditions.PortDown, 'LinkUnreadable', { instance: port, status: 'unknown', message });
  }
  if (isUp)
    return declaredFinding(conditions.PortDown, 'LinkUp', { instance: port, message: text(`${interfaceName} has a link`), level: true });
  if (isEnabled !== false) {
    const message = text(`${interfaceName} is up and has no link`);
    return declaredFinding(conditions.PortDown, parent === undefined ? 'LinkDown' : 'ParentPortDown', { ...down, message });
  }
  const message = text(`an administrator took ${interfaceName} down`);
  const reason = parent === undefined ? 'PortDisabled' : 'ParentPortDisabled';
  return declaredFinding(conditions.PortDown, reason, { ...down, message, severity: 'info', remedy: 'enable-port' });
}

/** Findings of a virtual function: the port of its physical function, and the setting of its own link. Pure. */
export function virtualFindings(parent: string, port: PortSample | undefined, { linkState }: Settings): Finding[] {
  return [...(port === undefined ? [] : [portDown(port, parent)]), ...ownLink(linkState)];
}

function ownLink(linkState: number | undefined): Finding[] {
  if (linkState === undefined) return [];
  const status = linkState === LINK_STATES.indexOf('disable');
  const message = `link-state of the virtual function is ${LINK_STATES[linkState]}`;
  return [declaredFinding(conditions.VfLinkDisabled, status ? 'LinkStateDisable' : 'LinkStateAllows', { status, message })];
}
