import type { Labels, MetricSpec, MetricTraits } from './metric.ts';

type Shared = Omit<MetricSpec, 'source'>;

/**
 * Metrics that more than one family measures, with one name and one unit for all vendors. They are declared only here.
 * A metric of a single family is declared by that family as `device_<family>_…`.
 */
export const shared = {
  utilization: gauge('device_utilization_ratio', 'Share of time an engine was busy, 0 to 1.', ['engine'], { container: true }),
  memoryUsed: gauge('device_memory_used_bytes', 'Device memory in use.', [], { container: true }),
  memoryTotal: gauge('device_memory_total_bytes', 'Device memory installed.', [], { container: true }),
  memoryReserved: gauge('device_memory_reserved_bytes', 'Device memory kept by driver and firmware.', []),
  temperature: gauge('device_temperature_celsius', 'Temperature at one sensor.', ['sensor'], { container: true }),
  temperatureLimit: gauge('device_temperature_limit_celsius', 'Temperature at which the device acts: throttles, alarms or shuts down.', [
    'sensor',
    'limit',
  ]),
  power: gauge('device_power_watts', 'Power drawn, as one sensor measures it.', ['sensor'], { container: true }),
  powerLimit: gauge('device_power_limit_watts', 'Power limits of the device.', ['limit']),
  energy: counter('device_energy_joules_total', 'Energy used since the driver was loaded.', [], { container: true }),
  voltage: gauge('device_voltage_volts', 'Voltage at one sensor.', ['sensor']),
  clock: gauge('device_clock_hertz', 'Present frequency of one clock.', ['clock'], { container: true }),
  clockMax: gauge('device_clock_max_hertz', 'Highest frequency of one clock.', ['clock']),
  fanRatio: gauge('device_fan_speed_ratio', 'Intended fan speed as share of the maximum; may exceed 1.', ['fan']),
  fanSpeed: gauge('device_fan_speed_rpm', 'Measured fan speed in revolutions per minute.', ['fan']),
  throttled: gauge('device_throttled', '1 while the device runs slower for this reason, 0 while it does not.', ['reason'], {
    container: true,
  }),
  throttledTime: counter('device_throttled_seconds_total', 'Time spent throttled for this reason.', ['reason'], { container: true }),
  pcieWidth: gauge('device_pcie_link_width_lanes', 'Present width of the PCIe link.', [], { wiped: true }),
  pcieWidthMax: gauge('device_pcie_link_max_width_lanes', 'Largest width that device and slot support.', []),
  pcieGeneration: gauge('device_pcie_link_generation', 'Present generation (speed) of the PCIe link; drops on idle devices.', [], {
    wiped: true,
  }),
  pcieGenerationMax: gauge('device_pcie_link_max_generation', 'Highest generation that device and slot support.', []),
  pcieReplays: counter('device_pcie_replays_total', 'PCIe packets sent again.', [], { wiped: true }),
  pcieErrors: counter('device_pcie_errors_total', 'PCIe errors by AER severity and kind.', ['severity', 'kind'], { wiped: true }),
  linkUp: gauge('device_link_up', '1 while the link of a port is usable, 0 while it is not.', ['port'], { container: true, wiped: true }),
  linkSpeed: gauge('device_link_speed_bytes_per_second', 'Signalling rate of a port.', ['port'], { wiped: true }),
  receivedBytes: counter('device_received_bytes_total', 'Bytes received.', ['port'], { container: true }),
  transmittedBytes: counter('device_transmitted_bytes_total', 'Bytes transmitted.', ['port'], { container: true }),
  receivedPackets: counter('device_received_packets_total', 'Packets received.', ['port'], { container: true }),
  transmittedPackets: counter('device_transmitted_packets_total', 'Packets transmitted.', ['port'], { container: true }),
  fecBlocks: counter(
    'device_fec_blocks_total',
    'Blocks that forward error correction (FEC) of a port corrected or could not correct; lane is all where the driver does not count by lane.',
    ['port', 'lane', 'kind'],
    { wiped: true },
  ),
  symbolErrors: counter('device_symbol_errors_total', 'Symbols that the physical layer (PCS) of a port could not decode.', ['port'], {
    wiped: true,
  }),
  logEvents: counter(
    'device_kernel_log_events_total',
    'Lines of drivers in the kernel log that tell a fault, since the machine booted, by event.',
    ['event'],
    { container: true, faults: true, wiped: true },
  ),
  errors: counter('device_errors_total', 'Errors that the hardware counted, by kind.', ['kind'], { container: true, wiped: true }),
} as const satisfies Readonly<Record<string, Shared>>;

/** A shared metric of one family. `labels` is needed only for more labels than the declared ones (an error counter per port). */
export function measured(metric: Shared, source: string, labels: readonly string[] = metric.labels): MetricSpec {
  return { ...metric, labels, source };
}

function gauge(name: string, help: string, labels: readonly string[], traits: MetricTraits = {}): Shared {
  return { name, type: 'gauge', help, labels, ...traits };
}

function counter(name: string, help: string, labels: readonly string[], traits: MetricTraits = {}): Shared {
  return { name, type: 'counter', help, labels, ...traits };
}

/**
 * A reading that people see first of a device. `traffic` is what goes in and out, as one reading; `in` and `out` are two. The others say
 * themselves what they are. All of them come from shared metrics.
 */
export type SharedReading = 'busy' | 'memory' | 'power' | 'temperature' | 'in' | 'out' | 'traffic' | 'link';

/** A reading of a metric that the family declares. Plain data. */
export interface OwnReading {
  /** One or two words: `Wear`. */
  readonly label: string;
  /** A counter is shown by its growth per second. Several series are added. */
  readonly metric: string;
  /** Labels that a series must have; others may have any value. */
  readonly labels?: Labels;
  /** The value that fills the bar. Absent: there is no bar. */
  readonly full?: number;
  /** Words for values that are no amounts: `{ 1: 'asleep' }`. A value without a word is not shown. */
  readonly words?: Readonly<Record<number, string>>;
}

export type PageReading = SharedReading | OwnReading;

/**
 * What people see first, keyed by `Device.kind`, the most telling first. The first is also the one that has a trend. Three that are known
 * are shown, so that a fourth takes the place of one that is not.
 */
export type PageReadings = Readonly<Record<string, readonly PageReading[]>>;
