/** How long a port has been up, and what became of it in that time. */
export interface UpTime {
  readonly upMs: number;
  readonly isUp: boolean;
  readonly losses: number;
}

const CYCLE_MS = 180_000;
const DOWN_FROM_MS = 90_000;
const DOWN_UNTIL_MS = 130_000;

/** The story of the flapping port: down from second 90 to second 130 of every three minutes. */
export function upTimeMs(elapsedMs: number): UpTime {
  const cycles = Math.floor(elapsedMs / CYCLE_MS);
  const within = elapsedMs - cycles * CYCLE_MS;
  const downMs = Math.min(Math.max(within - DOWN_FROM_MS, 0), DOWN_UNTIL_MS - DOWN_FROM_MS);
  return {
    upMs: elapsedMs - cycles * (DOWN_UNTIL_MS - DOWN_FROM_MS) - downMs,
    isUp: within < DOWN_FROM_MS || within >= DOWN_UNTIL_MS,
    losses: cycles + (within >= DOWN_FROM_MS ? 1 : 0),
  };
}

/** Counters that move: growth per second of traffic of the first card; others carry a little less each. */
const MOVING: Readonly<Record<string, number>> = {
  'counters/port_rcv_data': 4_100_000_000,
  'counters/port_xmit_data': 3_900_000_000,
  'counters/port_rcv_packets': 4_000_000,
  'counters/port_xmit_packets': 3_800_000,
  'counters/unicast_rcv_packets': 3_999_000,
  'counters/unicast_xmit_packets': 3_799_500,
  'counters/multicast_rcv_packets': 1_000,
  'counters/multicast_xmit_packets': 500,
  'counters/port_xmit_wait': 1_200,
  'hw_counters/rx_write_requests': 900_000,
  'hw_counters/rx_read_requests': 2_000,
  'hw_counters/rx_atomic_requests': 40,
  'hw_counters/np_cnp_sent': 3,
  'hw_counters/rp_cnp_handled': 2,
  'hw_counters/np_ecn_marked_roce_packets': 4,
};

const STILL: readonly string[] = [
  ...[
    'symbol_error',
    'link_error_recovery',
    'port_rcv_errors',
    'port_rcv_remote_physical_errors',
    'port_rcv_switch_relay_errors',
    'port_xmit_discards',
    'port_xmit_constraint_errors',
    'port_rcv_constraint_errors',
    'local_link_integrity_errors',
    'excessive_buffer_overrun_errors',
    'VL15_dropped',
  ].map((file) => `counters/${file}`),
  ...[
    'rx_dct_connect',
    'out_of_buffer',
    'out_of_sequence',
    'duplicate_request',
    'rnr_nak_retry_err',
    'packet_seq_err',
    'implied_nak_seq_err',
    'local_ack_timeout_err',
    'resp_local_length_error',
    'resp_cqe_error',
    'req_cqe_error',
    'req_remote_invalid_request',
    'req_remote_access_errors',
    'resp_remote_access_errors',
    'resp_cqe_flush_error',
    'req_cqe_flush_error',
    'req_transport_retries_exceeded',
    'req_rnr_retries_exceeded',
    'roce_adp_retrans',
    'roce_adp_retrans_to',
    'roce_slow_restart',
    'roce_slow_restart_cnps',
    'roce_slow_restart_trans',
    'rp_cnp_ignored',
    'rx_icrc_encapsulated',
  ].map((file) => `hw_counters/${file}`),
];

/** 32-bit firmware counters begin anew after their largest value. */
const WRAP = 2n ** 32n;

/** Files of one port, path within the port's directory to content. `fn` gives the LID, `card` the share of traffic. */
export function simulatedPort(fn: number, card: number, { upMs, isUp, losses }: UpTime): [string, string][] {
  const share = 1000 - 7 * (card % 100) - 3 * (fn % 30);
  const counters = Object.entries(MOVING).map(([file, perSecond]): [string, string] => {
    const value = (BigInt(perSecond) * BigInt(share) * BigInt(Math.floor(upMs))) / 1_000_000n;
    return [file, `${file.startsWith('hw_counters/rx_') ? value % WRAP : value}\n`];
  });
  return [
    ['state', isUp ? '4: ACTIVE\n' : '1: DOWN\n'],
    ['phys_state', isUp ? '5: LinkUp\n' : '2: Polling\n'],
    ['rate', isUp ? '400 Gb/sec (4X NDR)\n' : '10 Gb/sec (4X SDR)\n'],
    ['link_layer', 'InfiniBand\n'],
    ['lid', `0x${(fn + 1).toString(16)}\n`],
    ['sm_lid', '0x1\n'],
    ['lid_mask_count', '0\n'],
    ['sm_sl', '0\n'],
    ['cap_mask', '0xa751e848\n'],
    ['counters/link_downed', `${Math.min(losses, 255)}\n`],
    ['hw_counters/lifespan', '10\n'],
    ...counters,
    ...STILL.map((file): [string, string] => [file, '0\n']),
  ];
}
