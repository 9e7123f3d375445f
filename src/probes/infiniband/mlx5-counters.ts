import { type CounterRow, hardware, hardwareErrors } from './counter-row.ts';
import { metrics } from './metrics.ts';

/** File to kind, for mlx5's queue counters: of a port, or of the device in switchdev mode. */
export const MLX5_QUEUE_ERRORS = {
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

/** The first is read before all other hardware counters: it makes the kernel refresh the set, which then serves the others. */
export const MLX5_REQUESTS = {
  rx_write_requests: 'write',
  rx_read_requests: 'read',
  rx_atomic_requests: 'atomic',
  rx_dct_connect: 'dct_connect',
} as const;

/** mlx5, whose names bnxt_re largely shares. Ports of switchdev representors carry the prefix `vport_`. */
export function mlx5(): CounterRow[] {
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
  ];
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
