import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';
import { familyMetrics } from '../kit/metrics.ts';

const { gauge, counter } = familyMetrics('amdgpu');

const GPU = '/sys/bus/pci/devices/<address>';
const HWMON = `${GPU}/hwmon/hwmon<n>`;
const TABLE = `${GPU}/gpu_metrics`;
const KFD = '/sys/class/kfd/kfd';

/** Every value is optional: old cards, APUs, partitions and virtual functions have only some of the files. */
export const metrics = {
  utilization: measured(
    shared.utilization,
    `${GPU}/{gpu,mem,vcn}_busy_percent, else gpu_metrics; of partitions xcp/xcp_metrics, else gpu_metrics; of containers that share a GPU, drm-engine-* of their processes`,
  ),
  memoryUsed: measured(shared.memoryUsed, `${GPU}/mem_info_vram_used; of partitions ${KFD}/topology/nodes/<n>/mem_banks/0/used_memory`),
  memoryTotal: measured(
    shared.memoryTotal,
    `${GPU}/mem_info_vram_total; of partitions ${KFD}/topology/nodes/<n>/mem_banks/0/properties, size_in_bytes`,
  ),
  temperature: measured(shared.temperature, `${HWMON}/temp*_input by label, else gpu_metrics; 0 of a memory sensor means not wired`),
  temperatureLimit: measured(shared.temperatureLimit, `${HWMON}/temp*_{crit,emergency}`),
  power: measured(
    shared.power,
    `${HWMON}/power*_{input,average}, else gpu_metrics; gpu is the present power, or the average where the card has only that`,
  ),
  powerLimit: measured(shared.powerLimit, `${HWMON}/power1_cap, power1_cap_{default,min,max}`),
  energy: measured(
    shared.energy,
    `${TABLE} of Instinct cards, steps of 15.259 µJ. Other cards count in another unit, or not at all: no series`,
  ),
  voltage: measured(shared.voltage, `${HWMON}/in*_input by label, else gpu_metrics`),
  clock: measured(shared.clock, `${HWMON}/freq*_input by label, else gpu_metrics`),
  fanRatio: measured(shared.fanRatio, `${HWMON}/pwm1 by pwm1_max`),
  fanSpeed: measured(shared.fanSpeed, `${HWMON}/fan1_input`),
  throttled: measured(
    shared.throttled,
    `${TABLE}, indep_throttle_status in groups; "unspecified" is throttle_status, whose bits depend on the chip`,
  ),
  pcieReplays: measured(shared.pcieReplays, `${GPU}/pcie_replay_count, else gpu_metrics`),
  linkUp: measured(shared.linkUp, `${TABLE}, xgmi_link_status 1 or 0; port xgmi0 and on`),
  receivedBytes: measured(shared.receivedBytes, `${TABLE}, xgmi_read_data_acc x 1024; port xgmi0 and on`),
  transmittedBytes: measured(shared.transmittedBytes, `${TABLE}, xgmi_write_data_acc x 1024; port xgmi0 and on`),
  errors: measured(shared.errors, `${GPU}/ras/<block>_err_count or aca_<block>, summed over all blocks, since the driver was loaded`),

  asleep: gauge(
    'asleep',
    '1 while the card sleeps (runtime power management) and nothing else of it is read, 0 while it is awake.',
    [],
    `${GPU}/power/runtime_status`,
  ),
  info: gauge(
    'info',
    'Further identity of the card; a label is empty where the card does not report it; always 1.',
    ['vbios', 'memory_vendor', 'gfx_target', 'unique_id', 'compute_partition', 'memory_partition'],
    `${GPU}/{vbios_version,mem_info_vram_vendor,unique_id,current_compute_partition,current_memory_partition}, ${KFD}/topology`,
  ),
  gttUsed: container('gtt_used_bytes', 'Memory of the host in use for the card (GTT).', `${GPU}/mem_info_gtt_used`),
  gttTotal: gauge('gtt_total_bytes', 'Memory of the host that the card can use (GTT).', [], `${GPU}/mem_info_gtt_total`),
  memoryTraffic: gauge(
    'memory_traffic_bytes_per_second',
    'Mean traffic of an APU on the memory of the host.',
    ['direction'],
    `${TABLE} v3.0, average_dram_{reads,writes}, MB/s`,
  ),
  busyAccumulated: counter(
    'busy_accumulated_total',
    'Sum of the samples of activity that firmware took; compare growth, not values.',
    ['engine'],
    `${TABLE}, {gfx,mem}_activity_acc; of partitions gfx_busy_acc`,
  ),
  limitedAccumulated: counter(
    'below_limit_accumulated_total',
    'Sum of the samples in which a partition ran below its highest clock, by reason; compare growth with reason="total".',
    ['reason'],
    'xcp_metrics and gpu_metrics v1.8, gfx_below_host_limit_*_acc, gfx_low_utilization_acc',
  ),
  throttleResidency: counter(
    'throttle_residency_total',
    'Firmware samples in which the card was throttled, by reason; compare growth with that of the samples.',
    ['reason'],
    `${TABLE} v1.6 and later, *_residency_acc; v3.0 throttle_residency_*`,
  ),
  firmwareSamples: counter(
    'firmware_samples_total',
    'Samples that firmware took for its residencies.',
    [],
    `${TABLE}, accumulation_counter`,
  ),
  pcieEvents: counter(
    'pcie_events_total',
    'Events of the PCIe link that firmware counts.',
    ['event'],
    `${TABLE} v1.4 and later, pcie_l0_to_recov_count_acc, pcie_replay_rover_count_acc, pcie_nak_*_count_acc`,
  ),
  pcieBandwidth: gauge(
    'pcie_bandwidth_bytes_per_second',
    'Present traffic over PCIe, as firmware measures it.',
    [],
    `${TABLE}, pcie_bandwidth_inst, GB/s`,
  ),
  rasErrors: counter(
    'ras_errors_total',
    'Errors that a block of the card reported since the driver was loaded.',
    ['block', 'severity'],
    `${GPU}/ras/<block>_err_count or aca_<block>`,
    { wiped: true },
  ),
  rasEvents: counter('ras_events_total', 'Events of error handling since the driver was loaded.', ['event'], `${GPU}/ras/event_state`),
  badPages: gauge(
    'bad_pages',
    'Pages of memory that the card does not use any more, by state.',
    ['state'],
    `${GPU}/ras/gpu_vram_bad_pages`,
  ),
  partitions: gauge('partitions', 'Partitions of the card that a container can use; 1 without partitioning.', [], `${KFD}/topology`),
  computeUnitsBusy: gauge(
    'compute_units_busy',
    'Compute units that processes use now, as KFD reports.',
    [],
    `${KFD}/proc/<pid>/stats_<gpu>/cu_occupancy, summed`,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

function container(name: string, help: string, source: string): MetricSpec {
  return gauge(name, help, [], source, { container: true });
}
