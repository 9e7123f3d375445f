import type { Labels, MetricSpec } from '../../model/metric.ts';
import type { CounterRow } from './counter-row.ts';
import { metrics } from './metrics.ts';
import { MLX5_QUEUE_ERRORS, MLX5_REQUESTS } from './mlx5-counters.ts';

/** Counters that belong to the device and to none of its ports: efa, hfi1, mlx5 in switchdev mode. */
export function deviceCounters(): CounterRow[] {
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
