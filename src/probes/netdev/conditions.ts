import { hours, minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { growthCondition } from '../kit/growth-condition.ts';

const ABI = 'Linux Documentation/ABI/testing/sysfs-class-net';

export const conditions = {
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
