import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';

const { gauge, counter } = familyMetrics('nvme');

const CONTROLLER = '/sys/class/nvme/<controller>';
const STAT = '/sys/block/<namespace>/stat, or that of its only path while queue/iostats is 0';
const SMART = 'SMART log';

export const metrics = {
  temperature: measured(shared.temperature, `${CONTROLLER}/hwmon<N>/temp<N>_input; ${SMART}: temperatures in kelvin - 273.15`),
  temperatureLimit: measured(shared.temperatureLimit, `${CONTROLLER}/hwmon<N>/temp1_crit`),
  errors: measured(shared.errors, `${SMART}: media_errors (kind media), num_err_log_entries (kind error_log)`),
  throttledTime: measured(
    shared.throttledTime,
    `${SMART}: thm_temp1_total_time (reason thermal_1), thm_temp2_total_time (reason thermal_2)`,
  ),

  state: gauge('state', 'The state that a controller is in; always 1.', ['state'], `${CONTROLLER}/state`),
  info: gauge('info', 'How a controller is attached; always 1.', ['transport'], `${CONTROLLER}/transport`),
  asleep: gauge(
    'asleep',
    '1 while the PCI function of a controller sleeps and is not read, 0 while it does not.',
    [],
    `${CONTROLLER}/device/power/runtime_status, power_state`,
  ),
  queues: gauge('queues', 'Queues of a controller, with the one for commands of administration.', [], `${CONTROLLER}/queue_count`),

  size: gauge('size_bytes', 'Size of a namespace.', [], '/sys/block/<namespace>/size x 512'),
  readOnly: gauge('read_only', '1 while a namespace refuses writes, 0 while it does not.', [], '/sys/block/<namespace>/ro'),
  readBytes: counter('read_bytes_total', 'Bytes read from a namespace.', [], `${STAT}, field 3 x 512`, { container: true }),
  writtenBytes: counter('written_bytes_total', 'Bytes written to a namespace.', [], `${STAT}, field 7 x 512`, { container: true }),
  discardedBytes: counter('discarded_bytes_total', 'Bytes of a namespace that were discarded.', [], `${STAT}, field 14 x 512`, {
    container: true,
  }),
  operations: counter('operations_total', 'Operations that a namespace completed.', ['operation'], `${STAT}, fields 1, 5, 12 and 16`, {
    container: true,
  }),
  operationTime: counter(
    'operation_seconds_total',
    'Sum of the times that operations took. It starts again at 0 when the sum reaches 49.7 days.',
    ['operation'],
    `${STAT}, fields 4, 8, 15 and 17, ms / 1000`,
    { container: true },
  ),
  busyTime: counter(
    'busy_seconds_total',
    'Time with at least one operation in progress. It starts again at 0 when the sum reaches 49.7 days.',
    [],
    `${STAT}, field 10, ms / 1000`,
    { container: true },
  ),
  inFlight: gauge('in_flight_operations', 'Operations in progress.', [], `${STAT}, field 9`),
  paths: gauge('paths', 'Paths to a namespace that has several, through one controller each.', [], `${CONTROLLER}/nvme<N>c<N>n<N>`),
  usablePaths: gauge(
    'usable_paths',
    'Paths to a namespace whose controller is live and gives access to it.',
    [],
    `${CONTROLLER}/state and nvme<N>c<N>n<N>/ana_state`,
  ),

  criticalWarning: gauge(
    'critical_warning',
    '1 while the drive gives the warning, 0 while it does not.',
    ['warning'],
    `${SMART}: critical_warning, one bit each`,
  ),
  spare: gauge('available_spare_ratio', 'Spare capacity that is left, 0 to 1.', [], `${SMART}: avail_spare / 100`),
  spareThreshold: gauge(
    'available_spare_threshold_ratio',
    'Spare capacity below which the drive warns.',
    [],
    `${SMART}: spare_thresh / 100`,
  ),
  used: gauge('used_life_ratio', "Share of the drive's expected life that is used; may exceed 1.", [], `${SMART}: percent_used / 100`),
  lifetimeRead: counter(
    'lifetime_read_bytes_total',
    'Bytes that hosts read from the drive in its life.',
    [],
    `${SMART}: data_units_read x 512000`,
  ),
  lifetimeWritten: counter(
    'lifetime_written_bytes_total',
    'Bytes that hosts wrote to the drive in its life.',
    [],
    `${SMART}: data_units_written x 512000`,
  ),
  lifetimeCommands: counter(
    'lifetime_commands_total',
    'Commands of hosts that the drive completed in its life.',
    ['command'],
    `${SMART}: host_read_commands, host_write_commands`,
  ),
  lifetimeBusy: counter(
    'lifetime_busy_seconds_total',
    'Time for which the drive worked on commands in its life.',
    [],
    `${SMART}: controller_busy_time, min x 60`,
  ),
  powerCycles: counter('power_cycles_total', 'Times that the drive was powered on.', [], `${SMART}: power_cycles`),
  powered: counter('powered_seconds_total', 'Time for which the drive was powered.', [], `${SMART}: power_on_hours x 3600`),
  unsafeShutdowns: counter('unsafe_shutdowns_total', 'Times that the drive lost power without notice.', [], `${SMART}: unsafe_shutdowns`),
  overTemperatureTime: counter(
    'over_temperature_seconds_total',
    'Time for which the drive was above a limit of its composite temperature.',
    ['limit'],
    `${SMART}: warning_temp_time, critical_comp_time, min x 60`,
  ),
  throttles: counter(
    'throttles_total',
    'Times that the drive became slower because of its temperature.',
    ['reason'],
    `${SMART}: thm_temp1_trans_count (reason thermal_1), thm_temp2_trans_count (reason thermal_2)`,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;
