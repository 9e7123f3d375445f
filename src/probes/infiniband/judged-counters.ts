import type { Growing } from '../kit/finding.ts';
import { conditions } from './conditions.ts';

interface JudgedCounter {
  readonly file: string;
  readonly condition: Growing;
  readonly ceiling?: number;
  /** Distinguishes the counters of a port that are judged by the same condition. */
  readonly part?: string;
}

/** Counters whose growth the policy judges. At its ceiling a counter stops, so its growth is then unknown. */
export const JUDGED_COUNTERS: readonly JudgedCounter[] = [
  { file: 'symbol_error', condition: conditions.SymbolErrors, ceiling: 65_535 },
  { file: 'link_error_recovery', condition: conditions.LinkErrorRecovery, ceiling: 255 },
  { file: 'local_link_integrity_errors', condition: conditions.LocalLinkIntegrity, ceiling: 15 },
  { file: 'excessive_buffer_overrun_errors', condition: conditions.BufferOverrun, ceiling: 15 },
  { file: 'port_rcv_errors', condition: conditions.ReceiveErrors, ceiling: 65_535 },
  { file: 'req_transport_retries_exceeded', condition: conditions.TransportRetriesExceeded },
  { file: 'max_retry_exceeded', condition: conditions.TransportRetriesExceeded },
  { file: 'retry_exceeded_err', condition: conditions.TransportRetriesExceeded },
  { file: 'requester_retries_exceeded', condition: conditions.TransportRetriesExceeded },
  { file: 'rx_drops', condition: conditions.ReceiveDrops },
  { file: 'rdma_read_wr_err', condition: conditions.WorkRequestErrors, part: 'read' },
  { file: 'rdma_write_wr_err', condition: conditions.WorkRequestErrors, part: 'write' },
  { file: 'unresponsive_remote_events', condition: conditions.RemoteUnresponsive, part: 'unresponsive' },
  { file: 'impaired_remote_conn_events', condition: conditions.RemoteUnresponsive, part: 'impaired' },
  { file: 'retrans_timeout_events', condition: conditions.RetransmissionTimeouts },
  { file: 'retrans_pkts', condition: conditions.Retransmissions },
  { file: 'retrans_bytes', condition: conditions.RetransmittedBytes },
];

/** Judged with what the port itself was seen to do. */
export const LINK_DOWNED = 'link_downed';

export const JUDGED_FILES: ReadonlySet<string> = new Set([LINK_DOWNED, ...JUDGED_COUNTERS.map(({ file }) => file)]);
