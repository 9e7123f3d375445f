import { hours, minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';

const ABI = 'Linux Documentation/ABI/stable/sysfs-class-infiniband';
const NVSENTINEL = 'NVSentinel nic-health-monitor defaults';

export const conditions = {
  PortDown: {
    type: 'PortDown',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['LinkDown', 'LinkPolling', 'PortDisabled', 'ParentPortDown', 'NeverSeenUp', 'StateUnreadable'],
    meaning:
      'A port that was up before, or is expected to be, has no link. Virtual and scalable functions follow the port of their physical function; one that is down by itself is merely not configured.',
    remedy: 'check-cable',
    source: `${ABI}: state is not 4: ACTIVE or phys_state is not 5: LinkUp. 30 s: outage that NVIDIA Health Validation calls fatal; retraining takes seconds`,
    forMs: seconds(30),
    recoveryMs: seconds(60),
  },
  PortInitializing: {
    type: 'PortInitializing',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['NoSubnetManager', 'NotConfigured'],
    meaning: 'The link is up and the port waits in INIT or ARMED for a subnet manager.',
    remedy: 'inspect',
    source: `${ABI}: state 2: INIT or 3: ARMED; sm_lid 0x0 when no subnet manager was seen`,
    forMs: seconds(10),
    recoveryMs: seconds(10),
  },
  PortNotActivated: {
    type: 'PortNotActivated',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['NoSubnetManager', 'NotConfigured'],
    meaning: 'The port has waited for a subnet manager for longer than a fail-over takes: it cannot carry traffic.',
    remedy: 'inspect',
    source: `${ABI}: state 2: INIT or 3: ARMED; five minutes cover a fail-over of the subnet manager`,
    forMs: minutes(5),
    recoveryMs: seconds(60),
  },
  LinkFlapping: {
    type: 'LinkFlapping',
    class: 'rate',
    severity: 'fatal',
    reasons: ['LinkDownedGrows', 'PortLost'],
    meaning: 'The link was lost three times or more in half a day.',
    remedy: 'check-cable',
    source: `${ABI}: counters/link_downed, 8 bit; three in twelve hours as GPUd judges. Own observations where that counter is absent or stuck`,
    recoveryMs: minutes(10),
    threshold: { growth: 2, windowMs: hours(12) },
  },
  RateDegraded: {
    type: 'RateDegraded',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['BelowHighestSeen'],
    meaning:
      'The port is up at a lower rate than it had before: fewer lanes or a lower speed after retraining. Where that is meant to stay, ignore it on this device.',
    remedy: 'check-cable',
    source: `${ABI}: rate, compared with the highest of this card (node_guid) since the machine booted, over restarts of the agent`,
    forMs: seconds(20),
    recoveryMs: seconds(60),
  },
  SymbolErrors: counterRate('SymbolErrors', 'degraded', 'Bits arrive wrong more often than the link is built for.', {
    source: `${ABI}: counters/symbol_error, 16 bit; 120 an hour: ${NVSENTINEL}, from a bit error rate of 1e-12`,
    growth: 120,
    windowMs: hours(1),
  }),
  LinkErrorRecovery: counterRate('LinkErrorRecovery', 'degraded', 'The link retrains itself again and again.', {
    source: `${ABI}: counters/link_error_recovery, 8 bit; five a minute: ${NVSENTINEL}`,
    growth: 5,
    windowMs: minutes(1),
  }),
  LocalLinkIntegrity: counterRate('LocalLinkIntegrity', 'degraded', 'Local physical errors passed the threshold that the port was given.', {
    source: `${ABI}: counters/local_link_integrity_errors, 4 bit; any growth: ${NVSENTINEL}`,
    growth: 0,
    windowMs: hours(1),
  }),
  BufferOverrun: counterRate('BufferOverrun', 'degraded', 'Flow control failed: buffers overran in consecutive periods.', {
    source: `${ABI}: counters/excessive_buffer_overrun_errors, 4 bit; any growth: ${NVSENTINEL}`,
    growth: 0,
    windowMs: hours(1),
  }),
  ReceiveErrors: counterRate('ReceiveErrors', 'info', 'Many packets arrive damaged.', {
    source: `${ABI}: counters/port_rcv_errors, 16 bit; ten a second: ${NVSENTINEL}`,
    growth: 600,
    windowMs: minutes(1),
  }),
  TransportRetriesExceeded: {
    type: 'TransportRetriesExceeded',
    class: 'rate',
    severity: 'info',
    reasons: ['CounterGrows'],
    meaning: 'Connections died because the far side did not answer; the fault may lie there, in between or here.',
    remedy: 'inspect',
    source: 'mlx5 counters.c: hw_counters/req_transport_retries_exceeded; bnxt_re: max_retry_exceeded; rxe: retry_exceeded_err',
    threshold: { growth: 0, windowMs: hours(1) },
    recoveryMs: minutes(10),
  },
  CountersUnreadable: {
    type: 'CountersUnreadable',
    class: 'no-data',
    severity: 'info',
    reasons: ['NoCounterReadable', 'Readable'],
    meaning: 'A port has performance counters and none of them can be read, as on ports that only the fabric manager may query. No fault.',
    remedy: 'none',
    source: 'Linux drivers/infiniband/core/sysfs.c: a failed management datagram reads as EINVAL',
  },
  DeviceUnreachable: {
    type: 'DeviceUnreachable',
    class: 'no-data',
    severity: 'fatal',
    reasons: ['ReadsHang', 'NoDevice', 'StateUnreadable', 'Reachable'],
    meaning: 'The device is listed and does not answer: its firmware hangs or the driver has given it up.',
    remedy: 'reset',
    source: 'Linux drivers/infiniband/core/sysfs.c: state asks the firmware; ENODEV after the driver let go',
    forMs: seconds(30),
    recoveryMs: seconds(30),
  },
  CharDeviceMissing: {
    type: 'CharDeviceMissing',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['UverbsNodeMissing', 'Present'],
    meaning: 'The port is up and the character device through which programs reach it is not there.',
    remedy: 'reload-driver',
    source: `/sys/class/infiniband_verbs/uverbsN/ibdev against /dev/infiniband; ${NVSENTINEL}`,
    forMs: seconds(20),
    recoveryMs: seconds(20),
  },
} as const satisfies Readonly<Record<string, ConditionSpec>>;

function counterRate(
  type: string,
  severity: ConditionSpec['severity'],
  meaning: string,
  rule: { readonly source: string; readonly growth: number; readonly windowMs: number },
): ConditionSpec {
  const { source, growth, windowMs } = rule;
  const threshold = { growth, windowMs };
  return {
    type,
    class: 'rate',
    severity,
    reasons: ['CounterGrows'],
    meaning,
    remedy: 'check-cable',
    source,
    threshold,
    recoveryMs: minutes(10),
  };
}
