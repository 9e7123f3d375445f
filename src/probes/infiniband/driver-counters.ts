import type { Labels, MetricSpec } from '../../model/metric.ts';
import { type CounterRow, classicCounters, hardware, hardwareErrors } from './counters.ts';
import { metrics } from './metrics.ts';

/**
 * Returns all counter files of all drivers, in the order in which the files are read.
 *
 * Hardware counters come first and together, because one firmware query serves all of them for the milliseconds in `lifespan`. Each
 * other counter costs its own query. When two files feed one series, the earlier row is preferred; drivers come before the classic set.
 *
 * Sources of the names: mlx5 (counters.c), efa (efa_verbs.c), bnxt_re (hw_counters.c), irdma (verbs.c), rxe (rxe_hw_counters.c), mana
 * (counters.c), erdma (erdma_verbs.c) and hfi1 (verbs.c) of Linux drivers/infiniband; ionic: ionic_hw_stats.c takes them from firmware.
 */
export function allCounters(): readonly CounterRow[] {
  const drivers = [mlx5, efa, bnxtRe, irdma, rxe, mana, erdma, ionic, deviceCounters];
  return [...drivers.flatMap((rows) => rows()), ...classicCounters()];
}

/** mlx5 queue counters, file to error kind. They belong to a port, or to the device in switchdev mode. */
const MLX5_QUEUE_ERRORS = {
  out_of_buffer: 'out_of_buffer',
  out_of_sequence: 'out_of_sequence',
  duplicate_request: 'duplicate_request',
  rnr_nak_retry_err: 'rnr_nak_retry',
  packet_seq_err: 'packet_sequence',
  implied_nak_seq_err: 'implied_nak_sequence',
  local_ack_timeout_err: 'local_ack_timeout',
  resp_local_length_error: 'response_local_length',
  resp_cqe_error: 'response_completion',
  req_cqe_error: 'request_completion',
  req_remote_invalid_request: 'request_remote_invalid',
  req_remote_access_errors: 'request_remote_access',
  resp_remote_access_errors: 'response_remote_access',
  req_transport_retries_exceeded: 'transport_retries_exceeded',
  req_rnr_retries_exceeded: 'rnr_retries_exceeded',
} as const;

/** The first file must be read before all other hardware counters: its read makes the kernel refresh the whole set. */
const MLX5_REQUESTS = {
  rx_write_requests: 'write',
  rx_read_requests: 'read',
  rx_atomic_requests: 'atomic',
  rx_dct_connect: 'dct_connect',
} as const;

/** Queue counters of mlx5 have 32 bits. Source: mlx5_ifc_query_q_counter_out_bits in include/linux/mlx5/mlx5_ifc.h. */
const QUEUE_COUNTER = { driver: 'mlx5_core', at: 2 ** 32 } as const;

/** mlx5. bnxt_re shares most of its names. Ports of switchdev representors use the prefix `vport_`. */
function mlx5(): CounterRow[] {
  const queue = [
    ...Object.entries(MLX5_REQUESTS).map(([file, operation]) => hardware(file, metrics.receivedRequests, { operation })),
    ...hardwareErrors(MLX5_QUEUE_ERRORS),
    hardware('req_cqe_flush_error', metrics.flushedCompletions, { side: 'requester' }),
    hardware('resp_cqe_flush_error', metrics.flushedCompletions, { side: 'responder' }),
    hardware('roce_adp_retrans', metrics.roceRecovery, { event: 'adaptive_retransmission' }),
    hardware('roce_adp_retrans_to', metrics.roceRecovery, { event: 'adaptive_retransmission_timeout' }),
    hardware('roce_slow_restart', metrics.roceRecovery, { event: 'slow_restart' }),
    hardware('roce_slow_restart_cnps', metrics.roceRecovery, { event: 'slow_restart_notification' }),
    hardware('roce_slow_restart_trans', metrics.roceRecovery, { event: 'slow_restart_transition' }),
  ].map((row): CounterRow => ({ ...row, wraps: QUEUE_COUNTER }));
  return [
    ...queue,
    ...queue.map((row) => ({ ...row, file: `vport_${row.file}` })),
    hardware('np_cnp_sent', metrics.congestionNotifications, { event: 'sent' }),
    hardware('rp_cnp_handled', metrics.congestionNotifications, { event: 'handled' }),
    hardware('rp_cnp_ignored', metrics.congestionNotifications, { event: 'ignored' }),
    hardware('np_ecn_marked_roce_packets', metrics.ecnMarkedPackets),
    hardware('rx_icrc_encapsulated', metrics.errors, { kind: 'icrc' }),
    { ...hardware('lifespan', metrics.counterLifespan), divisor: 1000 },
  ];
}

/** Elastic Fabric Adapter (Amazon). It has no performance management, so its hardware counters also count traffic. */
function efa(): CounterRow[] {
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

/** Errors that bnxt_re meets as the responder, without `res_`. That of a wrong length has the name that other drivers share. */
const BNXT_RESPONDER_ERRORS = [
  ...['exceed_max', 'exceeds_wqe', 'opcode_err', 'irrq_oflow', 'unsup_opcode', 'unaligned_atomic', 'rem_inv_err', 'mem_err', 'srq_err'],
  ...['cmp_err', 'invalid_dup_rkey', 'wqe_format_err', 'cq_load_err', 'srq_load_err', 'tx_pci_err', 'rx_pci_err'],
  ...['rx', 'tx'].flatMap((side) => ['invalid_rkey', 'domain_err', 'no_perm', 'range_err'].map((what) => `${side}_${what}`)),
];

/**
 * Broadcom. Its only traffic counters are `rx_bytes` and similar files, which it shares with efa. Older names come first. It also has
 * `recoverable_errors`, which is no error: the driver fills it with the broadcast packets that the function sent (hw_counters.c,
 * `tx_bcast_pkts`).
 */
function bnxtRe(): CounterRow[] {
  const active = ['pds', 'ahs', 'qps', 'rc_qps', 'ud_qps', 'srqs', 'cqs', 'mrs', 'mws'];
  const responder = BNXT_RESPONDER_ERRORS.map((name): [string, string] => [`res_${name}`, `response_${name.replace(/_err$/, '')}`]);
  return [
    ...hardwareErrors({
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
      ...Object.fromEntries(responder),
    }),
    ...['atomic', 'read', 'write', 'send'].flatMap((operation) => [
      hardware(`rx_${operation}_req`, metrics.receivedRequests, { operation }),
      hardware(`tx_${operation}_req`, metrics.transmittedRequests, { operation }),
    ]),
    hardware('rx_read_resp', metrics.receivedRequests, { operation: 'read_response' }),
    hardware('tx_read_resp', metrics.transmittedRequests, { operation: 'read_response' }),
    hardware('tx_cnp_pkts', metrics.congestionNotifications, { event: 'sent' }),
    hardware('np_cnp_pkts', metrics.congestionNotifications, { event: 'sent' }),
    hardware('rx_cnp_pkts', metrics.congestionNotifications, { event: 'handled' }),
    hardware('rx_ecn_marked_pkts', metrics.ecnMarkedPackets),
    ...active.map((resource) => hardware(`active_${resource}`, metrics.activeResources, { resource })),
  ];
}

/** Intel: iWARP and RoCE over IP. Kernels from 2025 on do not use the prefix `iw`. */
function irdma(): CounterRow[] {
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

/** Soft RoCE. It counts in software with more than 32 bits. Names that it shares with mlx5 have the same meaning. */
function rxe(): CounterRow[] {
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

/** Microsoft. It counts the same events as mlx5, mostly under different names. */
function mana(): CounterRow[] {
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

/** Alibaba: iWARP. The driver outside the kernel used names with the prefix `hw_`. */
function erdma(): CounterRow[] {
  return ['', 'hw_'].flatMap((prefix) => [
    hardware(`${prefix}rx_bytes_cnt`, metrics.receivedBytes),
    hardware(`${prefix}tx_bytes_cnt`, metrics.transmittedBytes),
    hardware(`${prefix}rx_packets_cnt`, metrics.receivedPackets),
    hardware(`${prefix}tx_packets_cnt`, metrics.transmittedPackets),
    ...hardwareErrors({ [`${prefix}rx_disable_drop_cnt`]: 'receive_discard' }),
  ]);
}

/**
 * AMD Pensando and Pollara, since Linux 6.18. Firmware gives the names, and older firmware gives none. Bytes are those of unicast: one
 * series has one file, and RoCE sends multicast only in datagrams.
 */
function ionic(): CounterRow[] {
  return [
    hardware('rx_rdma_ucast_bytes', metrics.receivedBytes),
    hardware('tx_rdma_ucast_bytes', metrics.transmittedBytes),
    ...(['unicast', 'multicast'] as const).flatMap((cast) => {
      const name = cast === 'unicast' ? 'ucast' : 'mcast';
      return [
        hardware(`rx_rdma_${name}_pkts`, metrics.receivedCastPackets, { cast }),
        hardware(`tx_rdma_${name}_pkts`, metrics.transmittedCastPackets, { cast }),
      ];
    }),
    hardware('tx_rdma_cnp_pkts', metrics.congestionNotifications, { event: 'sent' }),
    hardware('rx_rdma_cnp_pkts', metrics.congestionNotifications, { event: 'handled' }),
    hardware('rx_rdma_ecn_pkts', metrics.ecnMarkedPackets),
    hardware('req_rx_cqe_flush', metrics.flushedCompletions, { side: 'requester' }),
    hardware('resp_rx_cqe_flush', metrics.flushedCompletions, { side: 'responder' }),
    ...hardwareErrors({
      req_rx_pkt_seq_err: 'packet_sequence',
      req_rx_impl_nak_seq_err: 'implied_nak_sequence',
      req_rx_rnr_retry_err: 'rnr_nak_retry',
      req_rx_cqe_err: 'request_completion',
      req_rx_rmt_acc_err: 'request_remote_access',
      req_rx_rmt_req_err: 'request_remote_invalid',
      req_tx_retry_excd_err: 'transport_retries_exceeded',
      tx_rdma_ack_timeout: 'local_ack_timeout',
      resp_rx_cqe_err: 'response_completion',
      resp_rx_dup_request: 'duplicate_request',
      resp_rx_loc_len_err: 'response_local_length',
      resp_rx_outof_buf: 'out_of_buffer',
      resp_rx_outouf_seq: 'out_of_sequence',
      resp_tx_rmt_acc_err: 'response_remote_access',
      resp_tx_rnr_retry_err: 'rnr_nak_sent',
      req_rx_oper_err: 'request_remote_operation',
      req_rx_dup_response: 'duplicate_response',
      req_tx_loc_acc_err: 'request_local_access',
      req_tx_loc_oper_err: 'request_local_operation',
      req_tx_loc_sgl_inv_err: 'request_local_list',
      req_tx_mem_mgmt_err: 'memory_management_operation',
      resp_rx_inval_request: 'response_invalid_request',
      resp_rx_loc_oper_err: 'response_local_operation',
      resp_rx_outof_atomic: 'response_out_of_atomic',
      resp_rx_s0_table_err: 'response_table',
      resp_tx_pkt_seq_err: 'response_packet_sequence',
      resp_tx_rmt_inval_req_err: 'response_remote_invalid',
      resp_tx_rmt_oper_err: 'response_remote_operation',
      resp_tx_loc_sgl_inv_err: 'response_local_list',
    }),
  ];
}

/** Counters of the device itself and not of a port: efa, hfi1, mlx5 in switchdev mode. */
function deviceCounters(): CounterRow[] {
  const device = (file: string, metric: MetricSpec, labels: Labels = {}): CounterRow => ({ set: 'device', file, metric, labels });
  const errors: Readonly<Record<string, string>> = {
    ...MLX5_QUEUE_ERRORS,
    cmds_err: 'command',
    no_completion_cmds: 'command_without_completion',
    alloc_pd_err: 'allocate_protection_domain',
    create_qp_err: 'create_queue_pair',
    create_cq_err: 'create_completion_queue',
    reg_mr_err: 'register_memory',
    alloc_ucontext_err: 'allocate_context',
    create_ah_err: 'create_address_handle',
    mmap_err: 'map_memory',
    DRIVER_ErrorIntr: 'error_interrupt',
    DRIVER_Tx_Errs: 'transmit',
    DRIVER_Rcv_Errs: 'receive',
    DRIVER_HW_Errs: 'hardware',
    DRIVER_NoPIOBufs: 'no_send_buffer',
    DRIVER_RcvLen_Errs: 'receive_length',
    DRIVER_EgrBufFull: 'eager_buffer_full',
    DRIVER_EgrHdrFull: 'eager_header_full',
  };
  return [
    ...Object.entries(MLX5_REQUESTS).map(([file, operation]) => device(file, metrics.deviceRequests, { operation })),
    ...Object.entries(errors).map(([file, kind]) => device(file, metrics.deviceErrors, { kind })),
    device('submitted_cmds', metrics.adminCommands, { event: 'submitted' }),
    device('completed_cmds', metrics.adminCommands, { event: 'completed' }),
    device('keep_alive_rcvd', metrics.keepalivesReceived),
    device('DRIVER_CtxtsOpen', metrics.openContexts),
  ];
}
