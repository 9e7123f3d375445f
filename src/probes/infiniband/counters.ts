import type { Labels, MetricSpec } from '../../model/metric.ts';
import { metrics } from './metrics.ts';
import type { Count } from './parse.ts';

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
