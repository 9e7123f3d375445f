import { type CounterRow, hardware, hardwareErrors } from './counter-row.ts';
import { metrics } from './metrics.ts';

/** Elastic Fabric Adapter: no performance management, traffic is in the hardware counters. */
export function efa(): CounterRow[] {
  const bytes = (file: string, operation: string): CounterRow => hardware(file, metrics.operationBytes, { operation });
  const requests = (file: string, operation: string): CounterRow => hardware(file, metrics.transmittedRequests, { operation });
  return [
    hardware('rx_bytes', metrics.receivedBytes),
    hardware('tx_bytes', metrics.transmittedBytes),
    hardware('rx_pkts', metrics.receivedPackets),
    hardware('tx_pkts', metrics.transmittedPackets),
    ...hardwareErrors({
      rx_drops: 'receive_discard',
      rdma_read_wr_err: 'read_work_request',
      rdma_write_wr_err: 'write_work_request',
      retrans_timeout_events: 'retransmission_timeout',
      unresponsive_remote_events: 'unresponsive_remote',
      impaired_remote_conn_events: 'impaired_remote_connection',
    }),
    bytes('send_bytes', 'send'),
    bytes('recv_bytes', 'receive'),
    bytes('rdma_read_bytes', 'read'),
    bytes('rdma_read_resp_bytes', 'read_response'),
    bytes('rdma_write_bytes', 'write'),
    bytes('rdma_write_recv_bytes', 'write_receive'),
    requests('send_wrs', 'send'),
    requests('rdma_read_wrs', 'read'),
    requests('rdma_write_wrs', 'write'),
    hardware('recv_wrs', metrics.receivedRequests, { operation: 'send' }),
    hardware('retrans_pkts', metrics.retransmittedPackets),
    hardware('retrans_bytes', metrics.retransmittedBytes),
  ];
}

/** Broadcom: `rx_bytes` and its like (shared with efa) are the only traffic counters. Older names first. */
export function bnxtRe(): CounterRow[] {
  const active = ['pds', 'ahs', 'qps', 'srqs', 'cqs', 'mrs', 'mws'];
  return [
    ...hardwareErrors({
      recoverable_errors: 'recoverable',
      unrecoverable_err: 'unrecoverable',
      rx_roce_errors: 'receive',
      tx_roce_errors: 'transmit',
      rx_roce_discards: 'receive_discard',
      tx_roce_discards: 'transmit_discard',
      to_retransmits: 'local_ack_timeout',
      seq_err_naks_rcvd: 'packet_sequence',
      rnr_naks_rcvd: 'rnr_nak_retry',
      missing_resp: 'implied_nak_sequence',
      max_retry_exceeded: 'transport_retries_exceeded',
      bad_resp_err: 'bad_response',
      local_qp_op_err: 'local_queue_pair_operation',
      local_protection_err: 'local_protection',
      mem_mgmt_op_err: 'memory_management_operation',
      remote_invalid_req_err: 'request_remote_invalid',
      remote_access_err: 'request_remote_access',
      remote_op_err: 'remote_operation',
      dup_req: 'duplicate_request',
      res_length_mismatch: 'response_local_length',
      oos_drop_count: 'out_of_sequence',
      rx_out_of_buffer: 'out_of_buffer',
    }),
    ...['atomic', 'read', 'write', 'send'].flatMap((operation) => [
      hardware(`rx_${operation}_req`, metrics.receivedRequests, { operation }),
      hardware(`tx_${operation}_req`, metrics.transmittedRequests, { operation }),
    ]),
    hardware('tx_cnp_pkts', metrics.congestionNotifications, { event: 'sent' }),
    hardware('np_cnp_pkts', metrics.congestionNotifications, { event: 'sent' }),
    hardware('rx_cnp_pkts', metrics.congestionNotifications, { event: 'handled' }),
    hardware('rx_ecn_marked_pkts', metrics.ecnMarkedPackets),
    ...active.map((resource) => hardware(`active_${resource}`, metrics.activeResources, { resource })),
  ];
}

/** Intel: iWARP and RoCE over IP; kernels from 2025 on drop the prefix `iw`. */
export function irdma(): CounterRow[] {
  const ip = (['4', '6'] as const).flatMap((version) => [
    hardware(`ip${version}InOctets`, metrics.receivedIpBytes, { version }),
    hardware(`ip${version}OutOctets`, metrics.transmittedIpBytes, { version }),
    hardware(`ip${version}InPkts`, metrics.receivedIpPackets, { version }),
    hardware(`ip${version}OutPkts`, metrics.transmittedIpPackets, { version }),
    ...hardwareErrors({
      [`ip${version}InDiscards`]: `ip${version}_receive_discard`,
      [`ip${version}InTruncatedPkts`]: `ip${version}_truncated`,
      [`ip${version}OutNoRoutes`]: `ip${version}_no_route`,
    }),
  ]);
  const operations = ['Read', 'Send', 'Write'].flatMap((name) =>
    ['', 'iw'].flatMap((prefix) => [
      hardware(`${prefix}InRdma${name}s`, metrics.receivedRequests, { operation: name.toLowerCase() }),
      hardware(`${prefix}OutRdma${name}s`, metrics.transmittedRequests, { operation: name.toLowerCase() }),
    ]),
  );
  return [
    ...ip,
    ...operations,
    ...hardwareErrors({ rxVlanErrors: 'receive_vlan', tcpInOptErrors: 'tcp_option', tcpInProtoErrors: 'tcp_protocol' }),
    hardware('tcpRetransSegs', metrics.retransmittedPackets),
    hardware('cnpSent', metrics.congestionNotifications, { event: 'sent' }),
    hardware('cnpHandled', metrics.congestionNotifications, { event: 'handled' }),
    hardware('cnpIgnored', metrics.congestionNotifications, { event: 'ignored' }),
    hardware('RxECNMrkd', metrics.ecnMarkedPackets),
  ];
}

/** Soft RoCE, which counts in software and beyond 32 bits. What it shares with mlx5 by name it shares by meaning. */
export function rxe(): CounterRow[] {
  return [
    hardware('rcvd_pkts', metrics.receivedPackets),
    hardware('sent_pkts', metrics.transmittedPackets),
    hardware('rdma_recvs', metrics.receivedRequests, { operation: 'send' }),
    hardware('rdma_sends', metrics.transmittedRequests, { operation: 'send' }),
    ...hardwareErrors({
      out_of_seq_request: 'out_of_sequence',
      rcvd_rnr_err: 'rnr_nak_retry',
      send_rnr_err: 'rnr_nak_sent',
      rcvd_seq_err: 'packet_sequence',
      retry_exceeded_err: 'transport_retries_exceeded',
      retry_rnr_exceeded_err: 'rnr_retries_exceeded',
      completer_retry_err: 'completer_retry',
      send_err: 'transmit',
      link_downed: 'link_downed',
    }),
  ];
}

/** Microsoft: what mlx5 counts, for the most part in words of its own. */
export function mana(): CounterRow[] {
  return [
    hardware('rx_packets', metrics.receivedPackets),
    hardware('tx_packets', metrics.transmittedPackets),
    hardware('rx_send_requests', metrics.receivedRequests, { operation: 'send' }),
    ...hardwareErrors({
      requester_timeout: 'local_ack_timeout',
      requester_oos_nak: 'packet_sequence',
      requester_rnr_nak: 'rnr_nak_retry',
      requester_implicit_nak: 'implied_nak_sequence',
      requester_retries_exceeded: 'transport_retries_exceeded',
      requester_rnr_nak_retries_exceeded: 'rnr_retries_exceeded',
      responder_rnr_nak: 'rnr_nak_sent',
      responder_oos: 'out_of_sequence',
      responder_dup_request: 'duplicate_request',
      responder_local_len_error: 'response_local_length',
      responder_rem_access_error: 'response_remote_access',
      requestor_local_prot_error: 'local_protection',
    }),
  ];
}

/** Alibaba: iWARP. Before the driver came into the kernel the names began with `hw_`. */
export function erdma(): CounterRow[] {
  return ['', 'hw_'].flatMap((prefix) => [
    hardware(`${prefix}rx_bytes_cnt`, metrics.receivedBytes),
    hardware(`${prefix}tx_bytes_cnt`, metrics.transmittedBytes),
    hardware(`${prefix}rx_packets_cnt`, metrics.receivedPackets),
    hardware(`${prefix}tx_packets_cnt`, metrics.transmittedPackets),
    ...hardwareErrors({ [`${prefix}rx_disable_drop_cnt`]: 'receive_discard' }),
  ]);
}
