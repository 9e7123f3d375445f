import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import type { FileRow } from '../kit/file-rows.ts';
import { familyMetrics } from '../kit/metrics.ts';
import { metricsOf, per, type RecordRow, recordRows, type Scale, times } from '../kit/record-rows.ts';

const { gauge, counter } = familyMetrics('nvme');

const CONTROLLER = '/sys/class/nvme/<controller>';
const SMART = 'SMART log: ';

/** Metrics that code fills, or that the family shows. */
export const metrics = {
  temperature: measured(shared.temperature, `${CONTROLLER}/hwmon<N>/temp<N>_input; ${SMART}temperatures in kelvin - 273.15`),
  temperatureLimit: measured(shared.temperatureLimit, `${CONTROLLER}/hwmon<N>/temp1_crit`),
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
    `${SMART}critical_warning, one bit each`,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Files of a controller and of a disk that are read with their facts. */
export const CONTROLLER_FACTS: readonly FileRow[] = [{ file: 'queue_count', metric: metrics.queues }];
export const DISK_FACTS: readonly FileRow[] = [{ file: 'size', metric: metrics.size, scale: 512 }];

/** Bytes of a sector in `stat` and `size`, whatever the drive's own block size is. Linux Documentation/block/stat.rst. */
const SECTORS = times(512n);

const STAT = '/sys/block/<namespace>/stat, or that of its only path while queue/iostats is 0, field ';
const HELD = { container: true } as const;
const MS = per(1_000, ', ms');

/** Numbers of the file, from 1. Kernels before 4.18 tell no discards, and kernels before 5.5 no flushes. */
export const STAT_ROWS: readonly RecordRow<number>[] = [
  recordRows(counter('read_bytes_total', 'Bytes read from a namespace.', [], STAT, HELD), [[3]], SECTORS),
  recordRows(counter('written_bytes_total', 'Bytes written to a namespace.', [], STAT, HELD), [[7]], SECTORS),
  recordRows(counter('discarded_bytes_total', 'Bytes of a namespace that were discarded.', [], STAT, HELD), [[14]], SECTORS),
  recordRows(counter('operations_total', 'Operations that a namespace completed.', ['operation'], STAT, HELD), [
    [1, 'read'],
    [5, 'write'],
    [12, 'discard'],
    [16, 'flush'],
  ]),
  recordRows(
    counter(
      'operation_seconds_total',
      'Sum of the times that operations took. It starts again at 0 when the sum reaches 49.7 days.',
      ['operation'],
      STAT,
      HELD,
    ),
    [
      [4, 'read'],
      [8, 'write'],
      [15, 'discard'],
      [17, 'flush'],
    ],
    MS,
  ),
  recordRows(
    counter(
      'busy_seconds_total',
      'Time with at least one operation in progress. It starts again at 0 when the sum reaches 49.7 days.',
      [],
      STAT,
      HELD,
    ),
    [[10]],
    MS,
  ),
  recordRows(gauge('in_flight_operations', 'Operations in progress.', [], STAT), [[9]]),
].flat();

/** One unsigned little-endian integer of the SMART log. NVM Express Base Specification, SMART / Health Information (Log Identifier 02h). */
export interface LogRow extends RecordRow<string> {
  readonly offset: number;
  readonly bytes: number;
  /** A larger value is no value. */
  readonly most?: bigint;
  /** Zero means that the drive does not measure it. */
  readonly isAbsentAtZero?: true;
}

/** `fields`: their names are those of nvme-cli's JSON; place, bytes, and the value of the metric's label. */
function log(
  metric: MetricSpec,
  fields: Readonly<Record<string, readonly [offset: number, bytes: number, value?: string]>>,
  scale?: Scale,
  limits: Pick<LogRow, 'most' | 'isAbsentAtZero'> = {},
): readonly LogRow[] {
  const rows = recordRows(
    metric,
    Object.entries(fields).map(([field, [, , value]]) => [field, value]),
    scale,
  );
  return Object.values(fields).map(([offset, bytes], at) => ({ ...(rows[at] as RecordRow<string>), offset, bytes, ...limits }));
}

const RATIO = per(100);
const MINUTES = times(60n, ', min');
const DATA_UNITS = times(512_000n);
/** The kernel's monitor subtracts the same. Millikelvin, so that the result has no rounding error. */
const KELVIN: Scale = { text: ', kelvin - 273.15', of: (kelvin) => (Number(kelvin) * 1_000 - 273_150) / 1_000 };

export const COMPOSITE = 'composite';

/** The kernel's monitor has the same temperatures. A temperature of 0 K is not measured, and no drive works at 200 °C. */
export const LOG_TEMPERATURES: readonly LogRow[] = log(
  metrics.temperature,
  {
    temperature: [1, 2, COMPOSITE],
    ...Object.fromEntries([1, 2, 3, 4, 5, 6, 7, 8].map((n) => [`temperature_sensor_${n}`, [198 + 2 * n, 2, `sensor_${n}`]] as const)),
  },
  KELVIN,
  { isAbsentAtZero: true, most: 473n },
);

export const LOG_ROWS: readonly LogRow[] = [
  log(gauge('available_spare_ratio', 'Spare capacity that is left, 0 to 1.', [], SMART), { avail_spare: [3, 1] }, RATIO, { most: 100n }),
  log(gauge('available_spare_threshold_ratio', 'Spare capacity below which the drive warns.', [], SMART), { spare_thresh: [4, 1] }, RATIO, {
    most: 100n,
  }),
  log(
    gauge('used_life_ratio', "Share of the drive's expected life that is used; may exceed 1.", [], SMART),
    { percent_used: [5, 1] },
    RATIO,
  ),
  log(
    counter('lifetime_read_bytes_total', 'Bytes that hosts read from the drive in its life.', [], SMART),
    { data_units_read: [32, 16] },
    DATA_UNITS,
  ),
  log(
    counter('lifetime_written_bytes_total', 'Bytes that hosts wrote to the drive in its life.', [], SMART),
    { data_units_written: [48, 16] },
    DATA_UNITS,
  ),
  log(counter('lifetime_commands_total', 'Commands of hosts that the drive completed in its life.', ['command'], SMART), {
    host_read_commands: [64, 16, 'read'],
    host_write_commands: [80, 16, 'write'],
  }),
  log(
    counter('lifetime_busy_seconds_total', 'Time for which the drive worked on commands in its life.', [], SMART),
    { controller_busy_time: [96, 16] },
    MINUTES,
  ),
  log(counter('power_cycles_total', 'Times that the drive was powered on.', [], SMART), { power_cycles: [112, 16] }),
  log(counter('powered_seconds_total', 'Time for which the drive was powered.', [], SMART), { power_on_hours: [128, 16] }, times(3_600n)),
  log(counter('unsafe_shutdowns_total', 'Times that the drive lost power without notice.', [], SMART), { unsafe_shutdowns: [144, 16] }),
  log(measured(shared.errors, SMART), { media_errors: [160, 16, 'media'], num_err_log_entries: [176, 16, 'error_log'] }),
  log(
    counter('over_temperature_seconds_total', 'Time for which the drive was above a limit of its composite temperature.', ['limit'], SMART),
    { warning_temp_time: [192, 4, 'warning'], critical_comp_time: [196, 4, 'critical'] },
    MINUTES,
  ),
  log(counter('throttles_total', 'Times that the drive became slower because of its temperature.', ['reason'], SMART), {
    thm_temp1_trans_count: [216, 4, 'thermal_1'],
    thm_temp2_trans_count: [220, 4, 'thermal_2'],
  }),
  log(measured(shared.throttledTime, SMART), {
    thm_temp1_total_time: [224, 4, 'thermal_1'],
    thm_temp2_total_time: [228, 4, 'thermal_2'],
  }),
].flat();

/** The order is that of the reference. */
export const allMetrics = [...Object.values(metrics), ...metricsOf([...STAT_ROWS, ...LOG_ROWS])];
