import type { SimulatedUse } from '../../family-simulation.ts';

/** What happened to one simulated port until now. */
export interface PortPast {
  readonly isUp: boolean;
  /** Number of link losses. */
  readonly losses: number;
  /** Time for which the cable was bad. */
  readonly errorsMs: number;
  /** Time of full traffic that gives the counters. */
  readonly trafficMs: number;
}

/** Growth per second of the traffic counters of the first card. Each further card has a little less traffic. */
const TRAFFIC: Readonly<Record<string, number>> = {
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

const CONSTANT: readonly string[] = [
  ...[
    'symbol_error',
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

/** The node itself causes this share of the traffic of a working card, for example for subnet management. */
const BACKGROUND = 1e-7;

/** Time of full traffic that moves as much data as a card without use until now, and with its use. */
export function trafficTimeMs(elapsedMs: number, { activeMs }: SimulatedUse = { activeMs: 0 }): number {
  return elapsedMs * BACKGROUND + activeMs;
}

/** 32-bit firmware counters restart at 0 after their largest value. */
const WRAP = 2n ** 32n;

/** The link of a bad cable retrains so often, and receives so many damaged packets in a second. */
const RETRAINS_PER_SECOND = 0.25;
const DAMAGED_PER_SECOND = 20;

/** Returns path (below the port's directory) and content of the files of one port. `fn` sets the LID, `card` the share of traffic. */
export function portFiles(fn: number, card: number, { trafficMs, isUp, losses, errorsMs }: PortPast): [string, string][] {
  const share = 1000 - 7 * (card % 100) - 3 * (fn % 30);
  const counters = Object.entries(TRAFFIC).map(([file, perSecond]): [string, string] => {
    const value = (BigInt(perSecond) * BigInt(share) * BigInt(Math.floor(1_000 * trafficMs))) / 1_000_000_000n;
    return [file, `${file.startsWith('hw_counters/rx_') ? value % WRAP : value}\n`];
  });
  // The firmware's error counters stop at their largest value: 8 bits and 16 bits.
  const grown = (perSecond: number, most: number): string => `${Math.min(Math.floor((errorsMs / 1_000) * perSecond), most)}\n`;
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
    ['hw_counters/lifespan', '10\n'],
    ...counters,
    ...CONSTANT.map((file): [string, string] => [file, '0\n']),
    ['counters/link_downed', `${Math.min(losses, 255)}\n`],
    ['counters/link_error_recovery', grown(RETRAINS_PER_SECOND, 255)],
    ['counters/port_rcv_errors', grown(DAMAGED_PER_SECOND, 65_535)],
  ];
}
