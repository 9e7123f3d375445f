import { hours, minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec } from '../../model/health.ts';
import { growthCondition } from '../kit/finding.ts';
import { licenceConditions } from './licence.ts';

const SMI = 'nvidia-smi';

export const FATAL = { class: 'latched', severity: 'fatal' } as const;
export const DEGRADED = { class: 'latched', severity: 'degraded' } as const;
const SLOW = { class: 'self-clearing', severity: 'degraded', forMs: seconds(30), recoveryMs: minutes(1) } as const;
const LINK = { class: 'self-clearing', severity: 'degraded', forMs: seconds(60), recoveryMs: minutes(2) } as const;

type Named<T> = { readonly [type in keyof T]: T[type] & { readonly type: type } };

/** Gives each condition the name that it has in the table. */
export const named = <const T extends Readonly<Record<string, Omit<ConditionSpec, 'type'>>>>(all: T): Named<T> =>
  Object.fromEntries(Object.entries(all).map(([type, spec]) => [type, { type, ...spec }])) as Named<T>;

/** Conditions that a read of the driver can show. */
export const conditions = named({
  GpuLost: {
    ...FATAL,
    reasons: ['GpuIsLost', 'ValuesUnreadable', 'Answers'],
    meaning: 'The driver has lost the GPU: it does not answer on the bus.',
    consequences: ['Xid/79', 'GpuFallenOffBus', 'InitializationFailed'],
    remedy: 'reboot',
    source: `${SMI}: "GPU is lost" in place of values or of the whole GPU (NVML_ERROR_GPU_IS_LOST)`,
  },
  NotInitialized: {
    ...FATAL,
    reasons: ['NotShown', 'NeverStarted', 'Answers'],
    meaning: 'The machine has the GPU, and the driver is bound to it and does not show it: the driver could not start it.',
    consequences: ['InitializationFailed', 'GpuFallenOffBus'],
    remedy: 'reboot',
    source:
      '/sys/bus/pci/devices and /proc/driver/nvidia/gpus, compared with the GPUs that NVML or nvidia-smi shows. The remedy is that of InitializationFailed where the kernel log has such a line',
  },
  DriverUnusable: {
    ...FATAL,
    reasons: ['DriverNotLoaded', 'LibraryMismatch', 'Answers'],
    meaning: 'No GPU of the node can be used: the driver is not loaded, or its library has another version.',
    remedy: 'reload-driver',
    source: `${SMI}: NVML_ERROR_DRIVER_NOT_LOADED, NVML_ERROR_LIB_RM_VERSION_MISMATCH`,
    outOfBand: true,
  },
  DriverReleased: {
    class: 'no-data',
    severity: 'fatal',
    reasons: ['Released', 'Answers'],
    meaning: 'A person, a program or the driver asked the agent to close the driver. The agent reads no GPU until the release ends.',
    remedy: 'none',
    source: 'device-agent release, POST /-/release, or the file of --probe.nvidia.release-file',
    outOfBand: true,
  },
  RecoveryAction: {
    ...FATAL,
    reasons: ['GpuReset', 'NodeReboot', 'DrainP2p', 'DrainAndReset', 'RecoverImexDomain', 'BusReset', 'SystemReboot', 'None'],
    meaning: 'The driver reports a recovery action that the GPU needs.',
    consequences: ['Xid/154', 'ResetRequired'],
    remedy: 'reset',
    source: `${SMI}: gpu_recovery_action, gpu_reset_status`,
  },
  UncorrectableEcc: {
    ...DEGRADED,
    reasons: ['UncorrectableErrors', 'NoErrors'],
    meaning:
      'The memory has had uncorrectable errors since the driver was loaded. A board that remaps rows isolates such errors. On other boards the finding is fatal.',
    consequences: ['Xid/48', 'Xid/94', 'Xid/95'],
    remedy: 'reset',
    source: `${SMI}: ecc_errors/volatile; DCGM and most node checks fail above 0`,
  },
  CorrectableEccRate: growthCondition({
    type: 'CorrectableEccRate',
    severity: 'info',
    meaning: 'Many memory errors were corrected.',
    remedy: 'inspect',
    source: `${SMI}: ecc_errors/volatile; Azure's node checks use the same limit for SRAM`,
    growth: 10_000,
    windowMs: hours(1),
  }),
  SramThresholdExceeded: {
    ...FATAL,
    reasons: ['ThresholdExceeded', 'BelowThreshold'],
    meaning: 'The board has counted more SRAM errors in its lifetime than its vendor accepts.',
    remedy: 'replace',
    source: `${SMI}: ecc_errors/aggregate/sram_threshold_exceeded`,
  },
  RowRemapPending: {
    ...DEGRADED,
    reasons: ['RemapPending', 'NonePending'],
    meaning: 'A memory row will be replaced at the next reset.',
    consequences: ['Xid/63'],
    remedy: 'reset',
    source: `${SMI}: remapped_rows/remapped_row_pending`,
  },
  RowRemapFailure: {
    ...FATAL,
    reasons: ['RemapFailed', 'NoneFailed'],
    meaning: 'A memory row could not be replaced: the spare rows are used up.',
    consequences: ['Xid/64'],
    remedy: 'replace',
    source: `${SMI}: remapped_rows/remapped_row_failure`,
  },
  SpareRowsLow: {
    ...DEGRADED,
    reasons: ['BanksWithoutSpareRows', 'BanksWithFewSpareRows', 'Enough'],
    meaning: 'Memory banks have few spare rows left, or none.',
    remedy: 'inspect',
    source: `${SMI}: remapped_rows/row_remapper_histogram`,
  },
  RetiredPages: {
    ...DEGRADED,
    reasons: ['RetirementPending', 'PagesUsedUp', 'Few'],
    meaning: 'Memory pages will be retired at the next reset, or so many are retired that the board must be replaced.',
    remedy: 'reset',
    source: `${SMI}: retired_pages; 63 or 64 pages can be retired, up to Turing`,
  },
  MemoryRepairPending: {
    ...DEGRADED,
    reasons: ['ChannelRepairPending', 'TpcRepairPending', 'NonePending'],
    meaning: 'A memory repair will take effect at the next reset.',
    remedy: 'reset',
    source: `${SMI}: ecc_errors/{channel,tpc}_repair_pending`,
  },
  ...licenceConditions,
  MemoryUnrepairable: {
    class: 'latched',
    severity: 'info',
    reasons: ['Unrepairable', 'Repairable'],
    meaning: 'The driver reports memory that it cannot repair. Healthy boards also report this, so it is for information only.',
    remedy: 'inspect',
    source: `${SMI}: ecc_errors/unrepairable_memory`,
  },
  InforomCorrupted: {
    ...FATAL,
    reasons: ['InforomCorrupted', 'Sound'],
    meaning: 'The infoROM is damaged: the memory in which the board stores its configuration and error history.',
    remedy: 'reset',
    source: `${SMI}: line "infoROM is corrupted at gpu", exit status 14; nvmlDeviceValidateInforom once, when the library is opened`,
  },
  ThermalSlowdown: {
    ...SLOW,
    reasons: ['HardwareThermalSlowdown', 'NotThrottled'],
    meaning: 'The hardware halves its clocks because it is too hot.',
    remedy: 'check-cooling',
    source: `${SMI}: clocks_event_reasons/hw_thermal_slowdown`,
  },
  PowerBrake: {
    ...SLOW,
    reasons: ['HardwarePowerBrake', 'NotThrottled'],
    meaning: 'The power supply signals the GPU to slow down.',
    remedy: 'check-power',
    source: `${SMI}: clocks_event_reasons/hw_power_brake_slowdown`,
  },
  HardwareSlowdown: {
    ...SLOW,
    reasons: ['AbovePowerLimit', 'AtSlowdownTemperature', 'UnknownCause', 'NotThrottled'],
    meaning:
      'The hardware halves its clocks or lowers them further, and reports neither heat nor the power brake. The reason names the cause where power or temperature show one.',
    remedy: 'inspect',
    source: `${SMI}: clocks_event_reasons/hw_slowdown without hw_thermal_slowdown and hw_power_brake_slowdown. The driver may also report it for a moment when the clocks change`,
  },
  OverTemperature: {
    ...SLOW,
    reasons: ['AtSlowdownTemperature', 'BelowLimit'],
    meaning: 'The GPU is at or above the temperature at which it slows down.',
    remedy: 'check-cooling',
    source: `${SMI}: temperature/gpu_temp against gpu_temp_slow_threshold; later boards: gpu_temp_tlimit against gpu_temp_slow_tlimit_threshold`,
  },
  FabricNotReady: {
    class: 'in-progress',
    severity: 'fatal',
    reasons: ['NotStarted', 'InProgress', 'RegistrationFailed', 'Ready'],
    meaning: 'The GPU has not joined the NVLink fabric, so programs cannot start on it.',
    remedy: 'inspect',
    source: `${SMI}: fabric/state, fabric/status`,
    forMs: minutes(5),
    recoveryMs: seconds(30),
  },
  FabricUnhealthy: {
    class: 'self-clearing',
    severity: 'fatal',
    reasons: [
      'RouteUnhealthy',
      'NoPartition',
      'TooFewNvLinks',
      'WrongConfiguration',
      'RouteRecovery',
      'AccessTimeoutRecovery',
      'DegradedBandwidth',
      'Unhealthy',
      'LimitedCapacity',
      'Healthy',
    ],
    meaning:
      'The NVLink fabric is unhealthy for this GPU, or has less capacity. NVML names the cause. A reset helps when a route is unhealthy; a missing partition, a wrong configuration and missing NVLinks are to be repaired in the fabric.',
    remedy: 'reset',
    source: `${SMI}: fabric/health/summary; NVML nvmlDeviceGetGpuFabricInfoV, healthMask, which decides where there is no summary (driver 550)`,
    forMs: seconds(60),
    recoveryMs: seconds(60),
  },
  FabricCliqueDiffers: {
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['OtherClique', 'SameClique'],
    meaning: 'The GPU is in another clique or domain of the NVLink fabric than most GPUs of the node, so it does not reach them.',
    remedy: 'inspect',
    source: `${SMI}: fabric/cliqueId, fabric/clusterUuid`,
    forMs: minutes(1),
    recoveryMs: minutes(1),
  },
  FabricCliqueChanged: growthCondition({
    type: 'FabricCliqueChanged',
    severity: 'degraded',
    meaning:
      'The GPU moved to another clique or domain of the NVLink fabric while a program used it. The program may lose the memory of other GPUs.',
    remedy: 'restart-workload',
    source: `${SMI}: fabric/cliqueId, fabric/clusterUuid; a change during a restart of the agent is not seen`,
    growth: 0,
    windowMs: hours(24),
  }),
  NvLinkDown: {
    ...LINK,
    reasons: ['DownAfterUp', 'DownUnlikeOthers'],
    meaning:
      'An NVLink of the GPU is down that was up before in this boot. When no link is left, programs on several GPUs cannot run: then it is fatal. So is a GPU without any link while most other GPUs of its model in the node reach a switch.',
    remedy: 'reset',
    source:
      'NVML nvmlDeviceGetNvLinkState; not while MIG is on. A link that is down since the boot is not judged, unless no link is up and the other GPUs show that some must be: many boards have such links',
  },
  NvLinkSlow: {
    ...LINK,
    reasons: ['SlowerThanOthers'],
    meaning: 'An NVLink was trained at a lower speed than the fastest link of the GPU, or than before.',
    remedy: 'reset',
    source: 'NVML field 164; the links of a GPU have one speed. Not while MIG is on',
  },
  NvLinkErrorRate: {
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['ManyErrors', 'FewErrors'],
    meaning:
      'NVLinks of the GPU have a hundred or more new errors of one kind a second. The message counts and names the links. Such minutes do not count for NvLinkErrors and NvLinkRecoveries.',
    consequences: ['NvLinkErrors', 'NvLinkRecoveries'],
    remedy: 'inspect',
    source: 'the counters of NvLinkErrors between two reads, 30 seconds apart by default; DCGM reports 100 CRC errors a second',
    forMs: seconds(60),
    recoveryMs: minutes(10),
  },
  NvLinkErrors: growthCondition({
    type: 'NvLinkErrors',
    severity: 'degraded',
    meaning:
      'An NVLink of the GPU had new errors in many minutes of half an hour. The counter counts the minutes with new errors, so one burst counts once.',
    remedy: 'inspect',
    source:
      'NVML nvmlDeviceGetNvLinkErrorCounter before NVLink 5, fields 206 to 214 and 221 of NVLink 5; NVRx excludes a link with errors in more than 15 of 30 minutes',
    growth: 15,
    windowMs: minutes(30),
  }),
  NvLinkRecoveries: growthCondition({
    type: 'NvLinkRecoveries',
    severity: 'degraded',
    meaning:
      'An NVLink of the GPU recovered in many minutes of a day. Such a link often fails some days later. The counter counts the minutes with a new recovery.',
    remedy: 'inspect',
    source:
      'NVML nvmlDeviceGetNvLinkErrorCounter before NVLink 5, fields 213 and 214 of NVLink 5; a published link that failed had 505 recoveries in the five days before',
    growth: 15,
    windowMs: hours(24),
  }),
  NvLinkPeerLost: {
    ...LINK,
    reasons: ['NoAccessAfterAccess'],
    meaning: 'The GPU no longer reaches another GPU of the node over NVLink. It did before in this boot.',
    remedy: 'reset',
    source: 'NVML nvmlDeviceGetP2PStatus of NVML_P2P_CAPS_INDEX_NVLINK; not while one of them is split',
  },
  PcieLinkDegraded: {
    ...SLOW,
    reasons: ['NarrowerThanBefore'],
    meaning: 'The PCIe link is narrower than before. It is not compared with its maximum: healthy boards in clouds run below the maximum.',
    remedy: 'reseat',
    source: `${SMI}: pci/pci_gpu_link_info/link_widths/current_link_width, compared with the widest link of this GPU since boot; a restart of the agent does not reset it`,
  },
  StuckProcess: {
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['WaitsInKernel', 'NoneStuck'],
    meaning:
      'A process that uses the GPU waits in the kernel at every read. It cannot be killed, so its GPU is not free when its pod ends. It waits for the GPU, or for other hardware such as network storage. The name of the function in /proc/<pid>/stack shows the cause.',
    remedy: 'inspect',
    source:
      '/proc/<pid>/stat: state D of the main thread, for processes that the driver lists. GPUd calls such a process degraded, and asks for a reboot when it is a program of NVIDIA; the five minutes are of this agent',
    forMs: minutes(5),
    recoveryMs: minutes(1),
  },
});
