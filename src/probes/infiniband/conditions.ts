import { hours, minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { growthCondition } from '../kit/finding.ts';
import { nicLogConditions } from '../kit/network-conditions.ts';

const ABI = 'Linux Documentation/ABI/stable/sysfs-class-infiniband';
const NVSENTINEL = 'NVSentinel nic-health-monitor defaults';

const EFA = 'efa: hw_counters/';
/**
 * The EKS node monitoring agent takes one token per count from a bucket, and emits an event when the bucket is empty. Each burst that
 * empties it at once also exceeds the growth here. A slow growth of more than 100 a minute empties it after two and a half minutes; a
 * growth of 60 to 100 a minute empties it later and is not judged here. The events change no condition of its node, so they are `info`.
 */
const EKS_BUCKET = 'more than 100 in a minute empty the bucket of the EKS node monitoring agent, which holds 100 and gains one a second';
const perMinute = { severity: 'info', growth: 100, windowMs: minutes(1) } as const;

export const conditions = {
  ...nicLogConditions,
  PortDown: {
    type: 'PortDown',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['LinkDown', 'LinkPolling', 'PortDisabled', 'ParentPortDown', 'LinkUp', 'StateUnreadable'],
    meaning:
      'A port that was up before, or that must be up, has no link. Virtual and scalable functions follow the port of their physical function. When only their own port is down, they are not configured.',
    remedy: 'check-cable',
    source: `${ABI}: state is 1: DOWN or 0: NOP, or phys_state is not 5: LinkUp; of EFA, whose driver says ACTIVE always, carrier and operstate of its network interface, and unjudged without one. 30 s: NVIDIA Health Validation calls an outage of that length fatal; retraining takes seconds`,
    forMs: seconds(30),
    recoveryMs: seconds(60),
  },
  PortInitializing: {
    type: 'PortInitializing',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['NoSubnetManager', 'NotConfigured'],
    meaning: 'The link is up, but the port waits in INIT or ARMED for a subnet manager.',
    remedy: 'check-subnet-manager',
    source: `${ABI}: state 2: INIT or 3: ARMED; sm_lid 0x0 when no subnet manager was seen`,
    forMs: seconds(10),
    recoveryMs: seconds(10),
  },
  PortNotActivated: {
    type: 'PortNotActivated',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['NoSubnetManager', 'NotConfigured'],
    meaning: 'The port has waited for a subnet manager for longer than a fail-over takes. It cannot carry traffic.',
    remedy: 'check-subnet-manager',
    source: `${ABI}: state 2: INIT or 3: ARMED; five minutes cover a fail-over of the subnet manager`,
    forMs: minutes(5),
    recoveryMs: seconds(60),
  },
  LinkFlapping: {
    type: 'LinkFlapping',
    class: 'rate',
    severity: 'fatal',
    reasons: ['LinkDownedGrows', 'PortLost', 'CounterTells'],
    meaning: 'The link was lost three times or more in half a day.',
    remedy: 'check-cable',
    source: `${ABI}: counters/link_downed, 8 bit; three in twelve hours, the limit of GPUd. The agent counts link losses itself when that counter is absent or stuck`,
    recoveryMs: minutes(10),
    threshold: { growth: 2, windowMs: hours(12) },
  },
  RateDegraded: {
    type: 'RateDegraded',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['BelowHighestSeen'],
    meaning:
      'The port is up at a lower rate than before: fewer lanes or a lower speed after retraining. If the lower rate is intended, ignore this condition on the device.',
    remedy: 'check-cable',
    source: `${ABI}: rate, compared with the highest rate of this card (node_guid) since boot; a restart of the agent does not reset it`,
    forMs: seconds(20),
    recoveryMs: seconds(60),
  },
  SymbolErrors: growthCondition({
    type: 'SymbolErrors',
    severity: 'degraded',
    meaning: 'The port receives more bit errors than the link specification allows.',
    remedy: 'check-cable',
    source: `${ABI}: counters/symbol_error, 16 bit; ${NVSENTINEL} allow 120 an hour, from a bit error rate of 1e-12`,
    growth: 120,
    windowMs: hours(1),
  }),
  LinkErrorRecovery: growthCondition({
    type: 'LinkErrorRecovery',
    severity: 'degraded',
    meaning: 'The link retrains repeatedly.',
    remedy: 'check-cable',
    source: `${ABI}: counters/link_error_recovery, 8 bit; five a minute: ${NVSENTINEL}`,
    growth: 5,
    windowMs: minutes(1),
  }),
  LocalLinkIntegrity: growthCondition({
    type: 'LocalLinkIntegrity',
    severity: 'degraded',
    meaning: 'Local physical errors exceeded the threshold that is set for the port.',
    remedy: 'check-cable',
    source: `${ABI}: counters/local_link_integrity_errors, 4 bit; any growth: ${NVSENTINEL}`,
    growth: 0,
    windowMs: hours(1),
  }),
  BufferOverrun: growthCondition({
    type: 'BufferOverrun',
    severity: 'degraded',
    meaning: 'Flow control failed: buffers overflowed in consecutive periods.',
    remedy: 'check-cable',
    source: `${ABI}: counters/excessive_buffer_overrun_errors, 4 bit; any growth: ${NVSENTINEL}`,
    growth: 0,
    windowMs: hours(1),
  }),
  ReceiveErrors: growthCondition({
    type: 'ReceiveErrors',
    severity: 'info',
    meaning: 'Many packets arrive damaged.',
    remedy: 'check-cable',
    source: `${ABI}: counters/port_rcv_errors, 16 bit; ten a second: ${NVSENTINEL}`,
    growth: 600,
    windowMs: minutes(1),
  }),
  TransportRetriesExceeded: growthCondition({
    type: 'TransportRetriesExceeded',
    severity: 'info',
    meaning: 'Connections failed because the remote side did not answer. The fault may be remote, in the network or local.',
    remedy: 'inspect',
    source:
      'mlx5 counters.c: hw_counters/req_transport_retries_exceeded; bnxt_re: max_retry_exceeded; rxe: retry_exceeded_err; mana: requester_retries_exceeded',
    growth: 0,
    windowMs: hours(1),
  }),
  ReceiveDrops: growthCondition({
    type: 'ReceiveDrops',
    meaning: 'The adapter dropped many packets that arrived.',
    remedy: 'inspect',
    source: `${EFA}rx_drops; ${EKS_BUCKET}`,
    ...perMinute,
  }),
  WorkRequestErrors: growthCondition({
    type: 'WorkRequestErrors',
    meaning: 'Many RDMA reads or writes of programs failed.',
    remedy: 'restart-workload',
    source: `${EFA}rdma_read_wr_err, rdma_write_wr_err; ${EKS_BUCKET}`,
    ...perMinute,
  }),
  RemoteUnresponsive: growthCondition({
    type: 'RemoteUnresponsive',
    meaning:
      'Remote nodes often did not answer, or connections to them were impaired. The cause may be the remote node, the network or this node.',
    remedy: 'inspect',
    source: `${EFA}unresponsive_remote_events, impaired_remote_conn_events; ${EKS_BUCKET}`,
    ...perMinute,
  }),
  RetransmissionTimeouts: growthCondition({
    type: 'RetransmissionTimeouts',
    meaning: 'Packets often stayed without acknowledgement until a timeout.',
    remedy: 'inspect',
    source: `${EFA}retrans_timeout_events; ${EKS_BUCKET}`,
    ...perMinute,
  }),
  Retransmissions: growthCondition({
    type: 'Retransmissions',
    severity: 'info',
    meaning: 'The adapter retransmitted many packets.',
    remedy: 'inspect',
    source: `${EFA}retrans_pkts; more than 1,000 in ten minutes empty the bucket of the EKS node monitoring agent, which holds 1,000 and gains one a second`,
    growth: 1_000,
    windowMs: minutes(10),
  }),
  RetransmittedBytes: growthCondition({
    type: 'RetransmittedBytes',
    severity: 'info',
    meaning: 'The adapter sent much data again.',
    remedy: 'inspect',
    source: `${EFA}retrans_bytes; the bucket of the EKS node monitoring agent holds 1,000,000 and gains one byte a second, which is next to nothing. It has no window, so the window is that of Retransmissions`,
    growth: 1_000_000,
    windowMs: minutes(10),
  }),
  CountersUnreadable: {
    type: 'CountersUnreadable',
    class: 'no-data',
    severity: 'info',
    reasons: ['NoCounterReadable', 'Readable'],
    meaning: 'No performance counter of the port can be read, as on ports that only the fabric manager may query. This is not a fault.',
    remedy: 'none',
    source: 'Linux drivers/infiniband/core/sysfs.c: a failed management datagram reads as EINVAL',
  },
  DeviceUnreachable: {
    type: 'DeviceUnreachable',
    class: 'no-data',
    severity: 'fatal',
    reasons: ['ReadsHang', 'NoDevice', 'StateUnreadable', 'Reachable'],
    meaning: 'The device is listed but does not answer: its firmware hangs, or the driver has released the device.',
    remedy: 'reset',
    source: 'Linux drivers/infiniband/core/sysfs.c: a read of state queries the firmware; ENODEV after the driver released the device',
    forMs: seconds(30),
    recoveryMs: seconds(30),
  },
  CharDeviceMissing: {
    type: 'CharDeviceMissing',
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['UverbsNodeMissing', 'Present', 'NodesHidden'],
    meaning: 'The port is up, but the character device that programs need to use it does not exist.',
    remedy: 'reload-driver',
    source: `/sys/class/infiniband_verbs/uverbsN/ibdev against /dev/infiniband; ${NVSENTINEL}`,
    forMs: seconds(20),
    recoveryMs: seconds(20),
  },
} as const satisfies Readonly<Record<string, ConditionSpec>>;
