import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';

const { gauge, counter } = familyMetrics('intelgpu');

const GPU = '/sys/bus/pci/devices/<address>';
const HWMON = `${GPU}/hwmon/hwmon<n>`;
const XE = `${GPU}/tile<t>/gt<g>`;
const I915 = '/sys/class/drm/card<n>/gt/gt<g>';
const LOG = 'kernel log since the machine booted';

/** Every value is optional: integrated GPUs, virtual functions and old kernels have only some of the files. */
export const metrics = {
  utilization: measured(
    shared.utilization,
    'sum over the processes of the growth of drm-engine-* (i915) or drm-cycles-* (xe) in /proc/<pid>/fdinfo, once every process was searched and read twice; 0 while the GPU sleeps or all its GTs are in C6',
  ),
  memoryTotal: measured(
    shared.memoryTotal,
    `${GPU}/sriov_admin/vf<n>/profile/vram_quota of virtual functions; lmem_total_bytes, physical_vram_size_bytes of Intel's own driver packages`,
  ),
  temperature: measured(shared.temperature, `${HWMON}/temp*_input by label`),
  temperatureLimit: measured(shared.temperatureLimit, `${HWMON}/temp*_{max,crit,emergency}`),
  power: measured(shared.power, `${HWMON}/energy*_input: mean power between two refreshes; the drivers measure no momentary power`),
  powerLimit: measured(shared.powerLimit, `${HWMON}/power*_{max,rated_max,crit,cap} by label; 0 means no limit: no series`),
  energy: measured(
    shared.energy,
    `${HWMON}/energy*_input of the card, or of the package where the card counts nothing. The driver counts at each read, so a refresh above 4 minutes can lose energy`,
  ),
  voltage: measured(shared.voltage, `${HWMON}/in*_input by label`),
  clock: measured(shared.clock, `${XE}/freq0/act_freq, ${I915}/rps_act_freq_mhz, gt_act_freq_mhz; 0 while the GT sleeps`),
  clockMax: measured(shared.clockMax, `${XE}/freq0/rp0_freq, ${I915}/rps_RP0_freq_mhz, gt_RP0_freq_mhz`),
  fanSpeed: measured(shared.fanSpeed, `${HWMON}/fan*_input`),
  throttled: measured(shared.throttled, `${XE}/freq0/throttle/reasons, else reason_*; ${I915}/throttle_reason_*; of any GT`),

  asleep: gauge(
    'asleep',
    '1 while the card sleeps (runtime power management) and nothing else of it is read, 0 while it is awake.',
    [],
    `${GPU}/power/runtime_status`,
  ),
  info: gauge(
    'info',
    'Further identity of the card; a label is empty where the card does not report it; always 1.',
    ['type', 'fan_control_version', 'voltage_regulator_version'],
    `type: integrated at PCI device 00:02.0, else discrete, or vf; ${GPU}/lb_{fan_control,voltage_regulator}_version`,
  ),
  gtInfo: gauge(
    'gt_info',
    'Tile and kind of a GT; a label is empty where the driver does not report it; always 1.',
    ['gt', 'tile', 'type'],
    `${XE}/gtidle/name`,
  ),
  requestedClock: gauge(
    'requested_clock_hertz',
    'Frequency that the driver requests.',
    ['clock'],
    `${XE}/freq0/cur_freq, ${I915}/rps_cur_freq_mhz, gt_cur_freq_mhz`,
  ),
  clockLimit: gauge(
    'clock_limit_hertz',
    'Limits of the frequency that the administrator set.',
    ['clock', 'limit'],
    `${XE}/freq0/{min,max}_freq, ${I915}/rps_{min,max}_freq_mhz, gt_{min,max}_freq_mhz`,
  ),
  gtIdle: counter(
    'gt_idle_seconds_total',
    'Time that a GT spent in the power state C6. A GT outside C6 may be idle, too.',
    ['gt'],
    `${XE}/gtidle/idle_residency_ms, ${I915}/rc6_residency_ms, power/rc6_residency_ms`,
  ),
  functions: gauge('virtual_functions', 'Virtual functions that the card has now.', [], `${GPU}/sriov_numvfs`),
  functionsMax: gauge('virtual_functions_max', 'Maximum number of virtual functions that the card supports.', [], `${GPU}/sriov_totalvfs`),
  quantum: gauge(
    'execution_quantum_seconds',
    'Time that the card gives a function at once; 0 means no limit.',
    [],
    `${GPU}/sriov_admin/{pf,vf<n>}/profile/exec_quantum_ms`,
  ),
  preemption: gauge(
    'preemption_timeout_seconds',
    'Time after which the card stops a function that does not yield; 0 means no limit.',
    [],
    `${GPU}/sriov_admin/{pf,vf<n>}/profile/preempt_timeout_us`,
  ),
  priority: gauge(
    'scheduling_priority',
    '1 for the scheduling priority of a function.',
    ['priority'],
    `${GPU}/sriov_admin/{pf,vf<n>}/profile/sched_priority`,
  ),
  recoveries: counter(
    'recoveries_total',
    'Resets after which the driver recovered the card by itself.',
    [],
    `${LOG}: "device wedged, but …"`,
  ),
  hardwareErrors: counter(
    'hardware_errors_total',
    'Hardware errors that the driver logged, by severity.',
    ['severity'],
    `${LOG}: "[Hardware Error]: Tile<n> reported …"`,
    { wiped: true },
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;
