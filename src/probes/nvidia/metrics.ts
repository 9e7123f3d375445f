import type { MetricSpec } from '../../model/metric.ts';
import { measured, shared } from '../../model/shared-metrics.ts';

const own = (name: string, type: MetricSpec['type'], help: string, labels: readonly string[], source: string): MetricSpec => ({
  name: `device_nvidia_${name}`,
  type,
  help,
  labels,
  source: `nvidia-smi ${source}`,
});

/** Spec of a metric that only the library provides. */
const byLibrary = (name: string, type: MetricSpec['type'], help: string, labels: readonly string[], source: string): MetricSpec => ({
  ...own(name, type, help, labels, ''),
  source: `NVML ${source}`,
});

/** Marks a metric that is also exported for the devices of a container. */
const forContainers = (spec: MetricSpec): MetricSpec => ({ ...spec, container: true });

/** Sources are paths below `<gpu>` of `nvidia-smi -q -x`. Most values also come from the library, see `nvml/*-questions.ts`. */
export const metrics: readonly MetricSpec[] = [
  measured(
    shared.utilization,
    'nvidia-smi utilization/*; absent while MIG is on, of instances GPM 1 of NVML; of containers that share a GPU, from NVML alone, the utilization of their processes',
  ),
  measured(shared.memoryUsed, 'nvidia-smi fb_memory_usage/used'),
  measured(shared.memoryTotal, 'nvidia-smi fb_memory_usage/total'),
  measured(shared.memoryReserved, 'nvidia-smi fb_memory_usage/reserved'),
  measured(shared.temperature, 'nvidia-smi temperature/{gpu_temp,memory_temp}'),
  measured(shared.temperatureLimit, 'nvidia-smi temperature/gpu_temp_*_threshold; up to Ampere, later boards give margins'),
  measured(shared.power, 'nvidia-smi {gpu,module,gpu_memory}_power_readings, power_readings'),
  measured(shared.energy, 'NVML field 83; not by nvidia-smi'),
  measured(shared.powerLimit, 'nvidia-smi gpu_power_readings/*_power_limit, power_readings/*'),
  measured(shared.voltage, 'nvidia-smi voltage/graphics_volt'),
  measured(shared.clock, 'nvidia-smi clocks/*'),
  measured(shared.clockMax, 'nvidia-smi max_clocks/*'),
  measured(shared.fanRatio, 'nvidia-smi fan_speed'),
  measured(shared.throttled, 'nvidia-smi clocks_event_reasons/*, clocks_throttle_reasons/*'),
  measured(
    shared.throttledTime,
    'nvidia-smi clocks_event_reasons_counters/*; board_limit, low_utilization, reliability: NVML fields 77 to 79',
  ),
  measured(shared.pcieWidth, 'nvidia-smi pci/pci_gpu_link_info/link_widths/current_link_width'),
  measured(shared.pcieWidthMax, 'nvidia-smi pci/pci_gpu_link_info/link_widths/max_link_width'),
  measured(shared.pcieGeneration, 'nvidia-smi pci/pci_gpu_link_info/pcie_gen/current_link_gen'),
  measured(shared.pcieGenerationMax, 'nvidia-smi pci/pci_gpu_link_info/pcie_gen/max_link_gen'),
  measured(shared.pcieReplays, 'nvidia-smi pci/replay_counter'),
  measured(shared.linkUp, 'NVML nvmlDeviceGetNvLinkState; port nvlink0 and on; not by nvidia-smi'),
  measured(
    shared.transmittedBytes,
    'NVML fields 138 (NVLink before 5), 202 (NVLink 5) of a link, 197 of port pcie where it has 64 bits; not by nvidia-smi',
  ),
  measured(
    shared.receivedBytes,
    'NVML fields 139 (NVLink before 5), 204 (NVLink 5) of a link, 198 of port pcie where it has 64 bits; not by nvidia-smi',
  ),
  byLibrary(
    'nvlink_errors_total',
    'counter',
    'Errors of an NVLink.',
    ['port', 'kind'],
    'nvmlDeviceGetNvLinkErrorCounter before NVLink 5; fields 206 to 214 of NVLink 5; not by nvidia-smi',
  ),
  forContainers(
    byLibrary(
      'activity_ratio',
      'gauge',
      'Mean share of multiprocessors, or of their time, that a unit was active since the reading before, 0 to 1.',
      ['unit'],
      'GPM 1, 2, 4 to 9, 11 to 13, of a GPU or GPU instance; Hopper and later, not by nvidia-smi',
    ),
  ),
  forContainers(
    byLibrary(
      'sm_occupancy_ratio',
      'gauge',
      'Mean share of the warp slots of the multiprocessors that were in use since the reading before, 0 to 1.',
      [],
      'GPM 3; Hopper and later, not by nvidia-smi',
    ),
  ),
  forContainers(
    byLibrary(
      'memory_bandwidth_ratio',
      'gauge',
      'Mean share of the memory bandwidth in use since the reading before, 0 to 1.',
      [],
      'GPM 10; Hopper and later, not by nvidia-smi',
    ),
  ),
  forContainers(
    byLibrary(
      'traffic_bytes_per_second',
      'gauge',
      'Mean traffic since the reading before, over PCIe or over all NVLinks together.',
      ['link', 'direction'],
      'GPM 20, 21, 60, 61; Hopper and later, not by nvidia-smi',
    ),
  ),
  byLibrary(
    'fabric_fault',
    'gauge',
    '1 while the GPU sees this fault of the NVLink fabric.',
    ['fault'],
    'nvmlDeviceGetGpuFabricInfoV, healthMask; not by nvidia-smi',
  ),
  measured(
    shared.errors,
    'nvidia-smi ecc_errors/volatile, summed over all memories: since the driver was loaded. `device_nvidia_ecc_errors_total` has the life of the board',
  ),
  own(
    'ecc_errors_total',
    'counter',
    'Memory errors in the life of the board, as the board itself records them.',
    ['severity', 'location'],
    'ecc_errors/aggregate/*',
  ),
  own(
    'ecc_sram_uncorrectable_errors_total',
    'counter',
    'Uncorrectable SRAM errors in the life of the board, by unit.',
    ['unit'],
    'ecc_errors/aggregate_uncorrectable_sram_sources/*',
  ),
  own(
    'ecc_sram_threshold_exceeded',
    'gauge',
    '1 when the board asks to be replaced because of SRAM errors.',
    [],
    'ecc_errors/aggregate/sram_threshold_exceeded',
  ),
  own(
    'ecc_mode_enabled',
    'gauge',
    '1 while ECC is on; `when` is now, or pending for the mode after the next reset.',
    ['when'],
    'ecc_mode/*',
  ),
  own('memory_repair_pending', 'gauge', '1 while a repair waits for a reset.', ['part'], 'ecc_errors/{channel,tpc}_repair_pending'),
  own(
    'memory_unrepairable',
    'gauge',
    '1 when the driver reports memory that it cannot repair; some sound boards report it too.',
    [],
    'ecc_errors/unrepairable_memory',
  ),
  own('retired_pages', 'gauge', 'Memory pages out of use.', ['cause'], 'retired_pages/*/retired_count'),
  own('retired_pages_pending', 'gauge', '1 while a page waits for a reset to be retired.', [], 'retired_pages/pending_retirement'),
  own('remapped_rows_total', 'counter', 'Memory rows replaced by spare ones.', ['cause'], 'remapped_rows/remapped_row_{corr,unc}'),
  own('row_remap_pending', 'gauge', '1 while a replacement waits for a reset.', [], 'remapped_rows/remapped_row_pending'),
  own('row_remap_failure', 'gauge', '1 when a row could not be replaced.', [], 'remapped_rows/remapped_row_failure'),
  own(
    'row_remap_banks',
    'gauge',
    'Memory banks by how many spare rows they have left.',
    ['availability'],
    'remapped_rows/row_remapper_histogram/*',
  ),
  own('temperature_margin_celsius', 'gauge', 'Degrees left before the GPU slows down.', [], 'temperature/gpu_temp_tlimit'),
  own(
    'temperature_limit_margin_celsius',
    'gauge',
    'Temperature margin at which the GPU acts: throttles or shuts down; usually zero or below.',
    ['limit'],
    'temperature/gpu_temp_*_tlimit_threshold',
  ),
  own('performance_state', 'gauge', 'Performance state: 0 is fastest, 15 slowest.', [], 'performance_state'),
  own('bar1_memory_used_bytes', 'gauge', 'BAR1 address space in use.', [], 'bar1_memory_usage/used'),
  own('bar1_memory_total_bytes', 'gauge', 'BAR1 address space.', [], 'bar1_memory_usage/total'),
  own(
    'protected_memory_used_bytes',
    'gauge',
    'Memory in use that is protected for confidential computing.',
    [],
    'cc_protected_memory_usage/used',
  ),
  own(
    'protected_memory_total_bytes',
    'gauge',
    'Memory that is protected for confidential computing.',
    [],
    'cc_protected_memory_usage/total',
  ),
  own('pcie_throughput_bytes_per_second', 'gauge', 'PCIe traffic over the last 20 ms.', ['direction'], 'pci/{tx,rx}_util'),
  own(
    'pcie_replay_rollovers_total',
    'counter',
    'How often the hardware counter of PCIe replays overflowed.',
    [],
    'pci/replay_rollover_counter',
  ),
  own('encoder_sessions', 'gauge', 'Video encoder sessions.', [], 'encoder_stats/session_count'),
  own('processes', 'gauge', 'Processes with a context on the device.', [], 'processes/process_info'),
  own('persistence_mode_enabled', 'gauge', '1 while the driver keeps the GPU initialised without clients.', [], 'persistence_mode'),
  own(
    'mig_mode_enabled',
    'gauge',
    '1 while MIG mode is on; `when` is now, or pending for the mode after the next reset.',
    ['when'],
    'mig_mode/*',
  ),
  own(
    'mig_multiprocessors',
    'gauge',
    'Multiprocessors of a MIG instance.',
    [],
    'mig_devices/mig_device/device_attributes/shared/multiprocessor_count',
  ),
  own('fabric_state', 'gauge', 'The state of the registration with the NVLink fabric; always 1.', ['state'], 'fabric/state'),
  own('fabric_health', 'gauge', 'The health of the NVLink fabric as the GPU sees it; always 1.', ['state'], 'fabric/health/summary'),
  own(
    'recovery_action',
    'gauge',
    'The action that the driver asks for, which is often none; always 1.',
    ['action'],
    'gpu_recovery_action, gpu_reset_status',
  ),
  own(
    'info',
    'gauge',
    'Further identity of the board; always 1.',
    ['index', 'minor', 'brand', 'architecture', 'vbios', 'board_part', 'gpu_part', 'compute_mode', 'cuda_version', 'gsp_firmware'],
    'one element each',
  ),
];
