import { classicCounters } from './classic-counters.ts';
import type { CounterRow } from './counter-row.ts';
import { deviceCounters } from './device-counters.ts';
import { bnxtRe, efa, erdma, irdma, mana, rxe } from './driver-counters.ts';
import { mlx5 } from './mlx5-counters.ts';

/** Files whose value is judged besides being exported. */
export const JUDGED_FILES = [
  'link_downed',
  'symbol_error',
  'link_error_recovery',
  'local_link_integrity_errors',
  'excessive_buffer_overrun_errors',
  'port_rcv_errors',
  'req_transport_retries_exceeded',
  'max_retry_exceeded',
  'retry_exceeded_err',
  'requester_retries_exceeded',
] as const;
export type JudgedFile = (typeof JUDGED_FILES)[number];

/**
 * Every counter file of every driver. Of two files that feed one series, one in `hw_counters` is preferred (the driver's own
 * word), then the earlier row; the other is read only when the preferred one gave no value.
 *
 * Sources: Documentation/ABI/stable/sysfs-class-infiniband; widths from the PMA attributes that
 * drivers/infiniband/core/sysfs.c decodes (InfiniBand Architecture Specification, PortCounters and PortCountersExtended);
 * names of the hardware counters from the drivers mlx5 (counters.c), efa (efa_verbs.c), bnxt_re (hw_counters.c), irdma
 * (verbs.c), rxe (rxe_hw_counters.c), mana (counters.c), erdma (erdma_verbs.c) and hfi1 (verbs.c).
 */
export const counterRows: readonly CounterRow[] = [
  ...classicCounters(),
  ...mlx5(),
  ...efa(),
  ...bnxtRe(),
  ...irdma(),
  ...rxe(),
  ...mana(),
  ...erdma(),
  ...deviceCounters(),
];
