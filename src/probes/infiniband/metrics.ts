import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';

const { gauge, counter } = familyMetrics('infiniband');

const PORT = '/sys/class/infiniband/<device>/ports/<port>';
const PORT_ERRORS = `${PORT}/counters and hw_counters: one file per kind`;

export const metrics = {
  linkUp: measured(shared.linkUp, `${PORT}/state: 1 for "4: ACTIVE"`),
  linkSpeed: measured(shared.linkSpeed, `${PORT}/rate, Gb/s x 125000000`),
  receivedBytes: measured(shared.receivedBytes, `${PORT}/counters/port_rcv_data x 4; hw_counters/rx_bytes where a driver counts there`),
  transmittedBytes: measured(
    shared.transmittedBytes,
    `${PORT}/counters/port_xmit_data x 4; hw_counters/tx_bytes where a driver counts there`,
  ),
  receivedPackets: measured(shared.receivedPackets, `${PORT}/counters/port_rcv_packets; hw_counters/rx_pkts where a driver counts there`),
  transmittedPackets: measured(
    shared.transmittedPackets,
    `${PORT}/counters/port_xmit_packets; hw_counters/tx_pkts where a driver counts there`,
  ),
  errors: measured(shared.errors, PORT_ERRORS, ['port', 'kind']),

  info: gauge(
    'info',
    'Identity of an RDMA device; a label is empty where the driver does not report it.',
    ['board_id', 'node_guid', 'sys_image_guid', 'node_type', 'hardware_revision'],
    '/sys/class/infiniband/<device>/{board_id,node_guid,sys_image_guid,node_type,hw_rev}',
  ),
  portInfo: gauge(
    'port_info',
    'What a port is connected to and how it signals; a label is empty where the driver does not report it.',
    ['port', 'link_layer', 'netdev', 'rate', 'lid', 'sm_lid'],
    `${PORT}/{link_layer,rate,lid,sm_lid} and the device's net directory`,
  ),
  portState: gauge('port_state', 'The logical state that a port is in; always 1.', ['port', 'state'], `${PORT}/state`, { wiped: true }),
  portPhysicalState: gauge(
    'port_physical_state',
    'The physical state that a port is in; always 1.',
    ['port', 'state'],
    `${PORT}/phys_state`,
    { wiped: true },
  ),
  linkWidth: gauge('link_width_lanes', 'Lanes in use on a port.', ['port'], `${PORT}/rate, the figure before X`, { wiped: true }),
  counterSaturated: gauge(
    'saturated',
    '1 for a counter that has reached its largest value and no longer counts; no series for the others.',
    ['port', 'counter'],
    `${PORT}/counters: 4, 8, 16 and 32 bit attributes of PortCounters stick at all ones`,
  ),
  unmappedCounters: gauge(
    'unmapped_counters',
    'Counters of the driver or firmware that no metric of the agent has, by their number of names; nothing is wrong with them.',
    [],
    'names below hw_counters of the device and its ports that the agent does not know',
  ),
  unreadableFiles: gauge(
    'unreadable_files',
    'Counter files of the device that exist and could not be read, or held no value.',
    [],
    '/sys/class/infiniband/<device>: EINVAL, EACCES, "N/A (no PMA)", empty, not decimal, ...',
  ),
  counterLifespan: gauge(
    'hw_cache_lifespan_seconds',
    'How long the kernel answers from one firmware query of the hardware counters.',
    ['port'],
    `${PORT}/hw_counters/lifespan, milliseconds`,
  ),

  transmitWait: counter(
    'transmit_wait_total',
    'How often a port counted that it had data to send but could not: no credit, or no arbitration. The vendor does not document the rate at which the hardware counts, so compare growth, not values.',
    ['port'],
    `${PORT}/counters/port_xmit_wait`,
  ),
  receivedCastPackets: counter(
    'received_cast_packets_total',
    'Packets received, unicast and multicast apart.',
    ['port', 'cast'],
    `${PORT}/counters/{unicast,multicast}_rcv_packets`,
  ),
  transmittedCastPackets: counter(
    'transmitted_cast_packets_total',
    'Packets transmitted, unicast and multicast apart.',
    ['port', 'cast'],
    `${PORT}/counters/{unicast,multicast}_xmit_packets`,
  ),
  receivedRequests: counter(
    'received_requests_total',
    'RDMA requests received, by operation.',
    ['port', 'operation'],
    `${PORT}/hw_counters/rx_*_requests and the like`,
  ),
  transmittedRequests: counter(
    'transmitted_requests_total',
    'RDMA requests sent, by operation.',
    ['port', 'operation'],
    `${PORT}/hw_counters/tx_*_req, iwOutRdma*, *_wrs`,
  ),
  operationBytes: counter(
    'operation_bytes_total',
    'Payload bytes by operation.',
    ['port', 'operation'],
    `${PORT}/hw_counters/{send,recv,rdma_read,rdma_write,…}_bytes of efa`,
  ),
  flushedCompletions: counter(
    'flushed_completions_total',
    'Completions flushed in error; grows whenever a queue pair is torn down, so it is no error by itself.',
    ['port', 'side'],
    `${PORT}/hw_counters/{req,resp}_cqe_flush_error`,
  ),
  congestionNotifications: counter(
    'congestion_notifications_total',
    'RoCE congestion notification packets, by what became of them.',
    ['port', 'event'],
    `${PORT}/hw_counters/{np_cnp_sent,rp_cnp_handled,rp_cnp_ignored}`,
  ),
  ecnMarkedPackets: counter(
    'ecn_marked_packets_total',
    'RoCE packets received with the mark of a congested switch.',
    ['port'],
    `${PORT}/hw_counters/np_ecn_marked_roce_packets`,
  ),
  roceRecovery: counter(
    'roce_recovery_events_total',
    'Adaptive retransmissions and slow restarts of RoCE acceleration.',
    ['port', 'event'],
    `${PORT}/hw_counters/roce_*`,
  ),
  retransmittedPackets: counter(
    'retransmitted_packets_total',
    'Packets or segments sent again.',
    ['port'],
    `${PORT}/hw_counters/retrans_pkts of efa, tcpRetransSegs of irdma`,
    { wiped: true },
  ),
  retransmittedBytes: counter('retransmitted_bytes_total', 'Bytes sent again.', ['port'], `${PORT}/hw_counters/retrans_bytes of efa`, {
    wiped: true,
  }),
  receivedIpBytes: counter(
    'received_ip_bytes_total',
    'Bytes received in IP packets, by IP version.',
    ['port', 'version'],
    `${PORT}/hw_counters/ip{4,6}InOctets of irdma`,
  ),
  transmittedIpBytes: counter(
    'transmitted_ip_bytes_total',
    'Bytes transmitted in IP packets, by IP version.',
    ['port', 'version'],
    `${PORT}/hw_counters/ip{4,6}OutOctets of irdma`,
  ),
  receivedIpPackets: counter(
    'received_ip_packets_total',
    'IP packets received, by IP version.',
    ['port', 'version'],
    `${PORT}/hw_counters/ip{4,6}InPkts of irdma`,
  ),
  transmittedIpPackets: counter(
    'transmitted_ip_packets_total',
    'IP packets transmitted, by IP version.',
    ['port', 'version'],
    `${PORT}/hw_counters/ip{4,6}OutPkts of irdma`,
  ),
  activeResources: gauge(
    'active_resources',
    'Objects in use on the device, by kind.',
    ['port', 'resource'],
    `${PORT}/hw_counters/active_* of bnxt_re`,
  ),

  deviceErrors: counter(
    'device_errors_total',
    'Errors that the driver books for the device and not for one port, by kind.',
    ['kind'],
    '/sys/class/infiniband/<device>/hw_counters: one file per kind',
    { wiped: true },
  ),
  deviceRequests: counter(
    'device_received_requests_total',
    'RDMA requests received by the device, where the driver does not count them by port.',
    ['operation'],
    '/sys/class/infiniband/<device>/hw_counters/rx_*_requests',
  ),
  adminCommands: counter(
    'admin_commands_total',
    'Commands that the driver sent to the device.',
    ['event'],
    '/sys/class/infiniband/<device>/hw_counters/{submitted,completed}_cmds of efa',
  ),
  keepalivesReceived: counter(
    'keepalives_received_total',
    'Keep-alive messages that the device sent.',
    [],
    '/sys/class/infiniband/<device>/hw_counters/keep_alive_rcvd of efa',
  ),
  openContexts: gauge(
    'open_contexts',
    'User contexts open on the driver.',
    [],
    '/sys/class/infiniband/<device>/hw_counters/DRIVER_CtxtsOpen of hfi1',
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;
