import type { Labels, MetricSpec } from '../../model/metric.ts';
import { ALL_ONES, plainValue } from '../kit/text.ts';
import { metrics } from './metrics.ts';

/** Exact value of a counter; `bigint` from 2^53 on. */
export type Count = number | bigint;

/** Reason why the text of a counter file is not a value. */
export type NoCount = 'not-available' | 'empty' | 'not-decimal' | 'too-large' | 'all-ones';

const SAFE_DIGITS = 15;

/**
 * Parses the text of one counter file. Only decimal numbers without leading zeros are valid. Kernels before about 4.19 print
 * `N/A (no PMA)` when a port has no performance management.
 */
export function parseCount(text: string): Count | NoCount {
  const trimmed = text.trim();
  if (trimmed === '') return 'empty';
  if (trimmed.startsWith('N/A')) return 'not-available';
  if (!/^(?:0|[1-9]\d*)$/.test(trimmed)) return 'not-decimal';
  if (trimmed.length <= SAFE_DIGITS) return Number(trimmed);
  if (trimmed.length > 20) return 'too-large';
  const value = BigInt(trimmed);
  if (value === ALL_ONES) return 'all-ones';
  return value > ALL_ONES ? 'too-large' : plainValue(value);
}

/** Multiplies `count` by an integer without loss of digits. */
export function scaleCount(count: Count, scale: number): Count {
  if (scale === 1) return count;
  if (typeof count === 'number' && count <= Number.MAX_SAFE_INTEGER / scale) return count * scale;
  return plainValue(BigInt(count) * BigInt(scale));
}

/** Parses `<n>: <TEXT>` of a port's `state` file and returns the label value; undefined for other text. */
export function parsePortState(text: string): PortState | undefined {
  return numbered(text, PORT_STATES);
}

/** Parses `<n>: <Text>` of a port's `phys_state` file; undefined when number and text contradict each other. */
export function parsePhysicalState(text: string): PhysicalState | undefined {
  return numbered(text, PHYSICAL_STATES);
}

/** Source: `enum ib_port_state` and `state_show` in drivers/infiniband/core/sysfs.c. */
const PORT_STATES = {
  '0: nop': 'nop',
  '1: down': 'down',
  '2: init': 'init',
  '3: armed': 'armed',
  '4: active': 'active',
  '5: active_defer': 'active_defer',
} as const;

/** Source: `phys_state_to_str` in drivers/infiniband/core/sysfs.c. */
const PHYSICAL_STATES = {
  '1: sleep': 'sleep',
  '2: polling': 'polling',
  '3: disabled': 'disabled',
  '4: portconfigurationtraining': 'training',
  '5: linkup': 'link_up',
  '6: linkerrorrecovery': 'link_error_recovery',
  '7: phy test': 'phy_test',
} as const;

export type PortState = (typeof PORT_STATES)[keyof typeof PORT_STATES];
export type PhysicalState = (typeof PHYSICAL_STATES)[keyof typeof PHYSICAL_STATES];

function numbered<T extends string>(text: string, states: Readonly<Record<string, T>>): T | undefined {
  const key = text.trim().toLowerCase();
  return Object.hasOwn(states, key) ? states[key] : undefined;
}

/** Signalling rate of a port. */
export interface Rate {
  /** Gigabits per second over all lanes. */
  readonly gigabits: number;
  readonly lanes?: number;
  /** `SDR` … `XDR`; absent when an older kernel does not print it. */
  readonly speed?: string;
}

/** Parses a port's `rate` file, for example `400 Gb/sec (4X NDR)`. Drivers print zero for "no rate", which gives undefined. */
export function parseRate(text: string): Rate | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*G[bB]\/sec(?:\s*\((\d{1,2})X(?:\s*(\w+))?\))?$/.exec(text.trim());
  if (match === null) return undefined;
  const [, gigabits, lanes, speed] = match;
  if (Number(gigabits) === 0) return undefined;
  return { gigabits: Number(gigabits), ...(lanes && { lanes: Number(lanes) }), ...(speed && { speed }) };
}

/** Parses a `lid` or `sm_lid` file, for example `0x2a`; undefined for other text. */
export function parseLid(text: string): number | undefined {
  return /^0x[0-9a-f]{1,8}$/i.test(text.trim()) ? Number(text.trim()) : undefined;
}

/** Parses a GUID such as `a088:c203:00aa:b000`; undefined for a GUID of zeros (an unconfigured VF) and for other text. */
export function parseGuid(text: string): string | undefined {
  const guid = text.trim().toLowerCase();
  return /^[0-9a-f]{4}(?::[0-9a-f]{4}){3}$/.test(guid) && guid !== '0000:0000:0000:0000' ? guid : undefined;
}

/** Returns the text after the number in `node_type`: `CA`, `RNIC`, …; undefined for other text. */
export function parseNodeType(text: string): string | undefined {
  return /^\d+: (.{1,64})$/.exec(text.trim())?.[1];
}

/** Directory of a counter file: three belong to a port, one belongs to the device. */
export type CounterSet = 'counters' | 'counters_ext' | 'hw_counters' | 'device';

/** One counter file and the series that it feeds. */
export interface CounterRow {
  readonly set: CounterSet;
  readonly file: string;
  readonly metric: MetricSpec;
  /** Labels in addition to `port`. */
  readonly labels: Labels;
  /** Whole number by which the file's value is multiplied to get the unit of the metric; default 1. */
  readonly scale?: number;
  /** Number by which the file's value is divided, for the one file whose unit is smaller than that of the metric. */
  readonly divisor?: number;
  /** Raw values at which the counter stops. */
  readonly ceilings?: readonly Count[];
  /** For a counter that does not stop: the driver with which it begins again at 0, and the raw value at which it does. */
  readonly wraps?: { readonly driver: string; readonly at: number };
}

/** Returns a row of `hw_counters`. */
export function hardware(file: string, metric: MetricSpec, labels: Labels = {}): CounterRow {
  return { set: 'hw_counters', file, metric, labels };
}

/** Returns the rows of `hw_counters` that count errors. `kinds` maps each file to its error kind. */
export function hardwareErrors(kinds: Readonly<Record<string, string>>): CounterRow[] {
  return Object.entries(kinds).map(([file, kind]) => hardware(file, metrics.errors, { kind }));
}

function allOnes(...bits: readonly number[]): readonly Count[] {
  return bits.map((count) => 2 ** count - 1);
}

/**
 * Returns the counters of classic performance management. Attributes of 4, 8, 16 and 32 bits stop at all ones. Data counters
 * count words of 4 bytes.
 * Sources: Documentation/ABI/stable/sysfs-class-infiniband; widths from the PMA attributes that drivers/infiniband/core/sysfs.c
 * decodes (InfiniBand Architecture Specification, PortCounters and PortCountersExtended).
 */
export function classicCounters(): CounterRow[] {
  const row = (set: CounterSet, file: string, metric: MetricSpec, bits: readonly number[], labels: Labels = {}, scale = 1): CounterRow => ({
    set,
    file,
    metric,
    labels,
    scale,
    // All ones of 64 bits are no value: see parseCount.
    ceilings: allOnes(...bits.filter((count) => count < 64)),
  });
  const error = (file: string, kind: string, bits: number): CounterRow => row('counters', file, metrics.errors, [bits], { kind });
  // A port without extended counters has 32 bits where other ports have 64.
  const wide = [32, 64];
  return [
    // Kernels before 4.5 have separate 64-bit counters. Their classic 32-bit counters overflow in a third of a second at 400 Gb/s.
    row('counters_ext', 'port_rcv_data_64', metrics.receivedBytes, [64], {}, 4),
    row('counters_ext', 'port_xmit_data_64', metrics.transmittedBytes, [64], {}, 4),
    row('counters_ext', 'port_rcv_packets_64', metrics.receivedPackets, [64]),
    row('counters_ext', 'port_xmit_packets_64', metrics.transmittedPackets, [64]),
    row('counters_ext', 'port_unicast_rcv_packets', metrics.receivedCastPackets, [64], { cast: 'unicast' }),
    row('counters_ext', 'port_multicast_rcv_packets', metrics.receivedCastPackets, [64], { cast: 'multicast' }),
    row('counters_ext', 'port_unicast_xmit_packets', metrics.transmittedCastPackets, [64], { cast: 'unicast' }),
    row('counters_ext', 'port_multicast_xmit_packets', metrics.transmittedCastPackets, [64], { cast: 'multicast' }),

    row('counters', 'port_rcv_data', metrics.receivedBytes, wide, {}, 4),
    row('counters', 'port_xmit_data', metrics.transmittedBytes, wide, {}, 4),
    row('counters', 'port_rcv_packets', metrics.receivedPackets, wide),
    row('counters', 'port_xmit_packets', metrics.transmittedPackets, wide),
    row('counters', 'unicast_rcv_packets', metrics.receivedCastPackets, [64], { cast: 'unicast' }),
    row('counters', 'multicast_rcv_packets', metrics.receivedCastPackets, [64], { cast: 'multicast' }),
    row('counters', 'unicast_xmit_packets', metrics.transmittedCastPackets, [64], { cast: 'unicast' }),
    row('counters', 'multicast_xmit_packets', metrics.transmittedCastPackets, [64], { cast: 'multicast' }),
    row('counters', 'port_xmit_wait', metrics.transmitWait, [32]),
    error('symbol_error', 'symbol', 16),
    error('link_error_recovery', 'link_error_recovery', 8),
    error('link_downed', 'link_downed', 8),
    error('port_rcv_errors', 'receive', 16),
    error('port_rcv_remote_physical_errors', 'receive_remote_physical', 16),
    error('port_rcv_switch_relay_errors', 'receive_switch_relay', 16),
    error('port_rcv_discards', 'receive_discard', 16),
    error('port_xmit_discards', 'transmit_discard', 16),
    error('port_rcv_constraint_errors', 'receive_constraint', 8),
    error('port_xmit_constraint_errors', 'transmit_constraint', 8),
    error('local_link_integrity_errors', 'local_link_integrity', 4),
    error('excessive_buffer_overrun_errors', 'excessive_buffer_overrun', 4),
    error('VL15_dropped', 'vl15_dropped', 16),
  ];
}
