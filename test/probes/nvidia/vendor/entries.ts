import * as layouts from '../../../../src/probes/nvidia/nvml/header.ts';
import { CODE } from '../../../../src/probes/nvidia/nvml/header.ts';
import { FABRIC_HEALTHS, FABRIC_STATES, RECOVERY_ACTIONS } from '../../../../src/probes/nvidia/sample.ts';
import {
  activityMeanings,
  callMeanings,
  eventMeanings,
  fieldMeanings,
  linkMeanings,
  type Meaning,
  reasonMeanings,
  systemEventMeanings,
  typeMeanings,
  wordMeanings,
} from './agent-numbers.ts';
import type { Entry } from './header.ts';

type Members = Readonly<Record<string, string>>;
/** A struct of the agent, its name in C, and the members by the agent's names. `version` is a macro of C. */
interface Struct {
  readonly ours: object;
  readonly type: string;
  readonly members: Members;
}

const struct = (ours: object, type: string, members: Members): Struct => ({ ours, type, members });
const engines = { gpu: 'smUtil', memory: 'memUtil', encoder: 'encUtil', decoder: 'decUtil' };
const fabric = { cluster: 'clusterUuid', status: 'status', clique: 'cliqueId', state: 'state' };
/** Each layout of `header.ts`. */
const STRUCTS: Readonly<Record<string, readonly Struct[]>> = {
  PCI_INFO: [struct(layouts.PCI_INFO, 'nvmlPciInfo_t', { domain: 'domain', deviceId: 'pciDeviceId', busId: 'busId' })],
  MEMORY: [
    struct(layouts.MEMORY, 'nvmlMemory_t', { total: 'total', free: 'free', used: 'used' }),
    struct(layouts.MEMORY, 'nvmlBAR1Memory_t', { total: 'bar1Total', free: 'bar1Free', used: 'bar1Used' }),
  ],
  MEMORY_V2: [
    struct(layouts.MEMORY_V2, 'nvmlMemory_v2_t', {
      version: 'nvmlMemory_v2',
      total: 'total',
      reserved: 'reserved',
      free: 'free',
      used: 'used',
    }),
  ],
  UTILIZATION: [struct(layouts.UTILIZATION, 'nvmlUtilization_t', { gpu: 'gpu', memory: 'memory' })],
  PROCESS: [
    struct(layouts.PROCESS, 'nvmlProcessInfo_v2_t', {
      pid: 'pid',
      memory: 'usedGpuMemory',
      gpuInstance: 'gpuInstanceId',
      computeInstance: 'computeInstanceId',
    }),
  ],
  PROCESS_SAMPLE: [
    struct(flat(layouts.PROCESS_SAMPLE), 'nvmlProcessUtilizationSample_t', { pid: 'pid', timestamp: 'timeStamp', ...engines }),
  ],
  PROCESS_SHARE: [
    struct(flat(layouts.PROCESS_SHARE), 'nvmlProcessUtilizationInfo_v1_t', {
      pid: 'pid',
      timestamp: 'timeStamp',
      ...engines,
      jpeg: 'jpgUtil',
      ofa: 'ofaUtil',
    }),
  ],
  PROCESS_SHARES: [
    struct(layouts.PROCESS_SHARES, 'nvmlProcessesUtilizationInfo_v1_t', {
      version: 'nvmlProcessesUtilizationInfo_v1',
      count: 'processSamplesCount',
      since: 'lastSeenTimeStamp',
      list: 'procUtilArray',
    }),
  ],
  ATTRIBUTES: [struct(layouts.ATTRIBUTES, 'nvmlDeviceAttributes_t', { multiprocessors: 'multiprocessorCount' })],
  FIELD: [
    struct(layouts.FIELD, 'nvmlFieldValue_t', {
      id: 'fieldId',
      scope: 'scopeId',
      type: 'valueType',
      code: 'nvmlReturn',
      value: 'value',
    }),
  ],
  EVENT: [
    struct(layouts.EVENT, 'nvmlEventData_t', {
      device: 'device',
      type: 'eventType',
      data: 'eventData',
      gpuInstance: 'gpuInstanceId',
      computeInstance: 'computeInstanceId',
    }),
  ],
  SYSTEM_EVENT_SET: ['Create', 'Free'].map((what) =>
    struct(layouts.SYSTEM_EVENT_SET, `nvmlSystemEventSet${what}Request_v1_t`, {
      version: `nvmlSystemEventSet${what}Request_v1`,
      set: 'set',
    }),
  ),
  SYSTEM_REGISTER: [
    struct(layouts.SYSTEM_REGISTER, 'nvmlSystemRegisterEventRequest_v1_t', {
      version: 'nvmlSystemRegisterEventRequest_v1',
      types: 'eventTypes',
      set: 'set',
    }),
  ],
  SYSTEM_EVENT_WAIT: [
    struct(layouts.SYSTEM_EVENT_WAIT, 'nvmlSystemEventSetWaitRequest_v1_t', {
      version: 'nvmlSystemEventSetWaitRequest_v1',
      set: 'set',
      events: 'data',
      room: 'dataSize',
      count: 'numEvent',
    }),
  ],
  SYSTEM_EVENT: [struct(layouts.SYSTEM_EVENT, 'nvmlSystemEventData_v1_t', { type: 'eventType' })],
  REMAP_HISTOGRAM: [
    struct(layouts.REMAP_HISTOGRAM, 'nvmlRowRemapperHistogramValues_t', {
      max: 'max',
      high: 'high',
      partial: 'partial',
      low: 'low',
      none: 'none',
    }),
  ],
  SRAM_STATUS: [
    struct(layouts.SRAM_STATUS, 'nvmlEccSramErrorStatus_v1_t', {
      version: 'nvmlEccSramErrorStatus_v1',
      l2: 'aggregateUncBucketL2',
      sm: 'aggregateUncBucketSm',
      pcie: 'aggregateUncBucketPcie',
      microcontroller: 'aggregateUncBucketMcu',
      other: 'aggregateUncBucketOther',
      thresholdExceeded: 'bThresholdExceeded',
    }),
  ],
  TEMPERATURE: [
    struct(layouts.TEMPERATURE, 'nvmlTemperature_v1_t', { version: 'nvmlTemperature_v1', sensor: 'sensorType', value: 'temperature' }),
  ],
  MARGIN: [struct(layouts.MARGIN, 'nvmlMarginTemperature_v1_t', { version: 'nvmlMarginTemperature_v1', value: 'marginTemperature' })],
  REPAIR: [
    struct(layouts.REPAIR, 'nvmlRepairStatus_v1_t', {
      version: 'nvmlRepairStatus_v1',
      channel: 'bChannelRepairPending',
      tpc: 'bTpcRepairPending',
    }),
  ],
  PLATFORM: [
    struct(layouts.PLATFORM, 'nvmlPlatformInfo_v2_t', {
      version: 'nvmlPlatformInfo_v2',
      chassis: 'chassisSerialNumber',
      slot: 'slotNumber',
      tray: 'trayIndex',
      host: 'hostId',
    }),
  ],
  LICENCES: [
    struct({ count: layouts.LICENCES.count, list: layouts.LICENCES.list }, 'nvmlGridLicensableFeatures_t', {
      count: 'licensableFeaturesCount',
      list: 'gridLicensableFeatures',
    }),
    struct({ size: layouts.LICENCES.size, state: layouts.LICENCES.state }, 'nvmlGridLicensableFeature_t', { state: 'featureState' }),
  ],
  FABRIC_V1: [struct(layouts.FABRIC_V1, 'nvmlGpuFabricInfo_t', fabric)],
  FABRIC_V2: [
    struct(layouts.FABRIC_V2, 'nvmlGpuFabricInfo_v2_t', { version: 'nvmlGpuFabricInfo_v2', ...fabric, healthMask: 'healthMask' }),
  ],
  FABRIC_V3: [
    struct(layouts.FABRIC_V3, 'nvmlGpuFabricInfo_v3_t', {
      version: 'nvmlGpuFabricInfo_v3',
      ...fabric,
      healthMask: 'healthMask',
      healthSummary: 'healthSummary',
    }),
  ],
  GPM_SUPPORT: [struct(layouts.GPM_SUPPORT, 'nvmlGpmSupport_t', { version: 'NVML_GPM_SUPPORT_VERSION', isSupported: 'isSupportedDevice' })],
  GPM_METRIC: [struct(layouts.GPM_METRIC, 'nvmlGpmMetric_t', { id: 'metricId', code: 'nvmlReturn', value: 'value' })],
  GPM_GET: [
    struct(layouts.GPM_GET, 'nvmlGpmMetricsGet_t', {
      version: 'NVML_GPM_METRICS_GET_VERSION',
      count: 'numMetrics',
      sample1: 'sample1',
      sample2: 'sample2',
      header: 'metrics',
    }),
  ],
};

/** The engines of a process are in an object of their own. */
function flat<T extends { readonly engines: object }>(layout: T): object {
  const { engines: inner, ...rest } = layout;
  return { ...rest, ...inner };
}

/** Lengths, of which no struct has a member. */
const LENGTHS = new Set(['busIdLength', 'chassisLength']);

/** Sizes, offsets and versions of all structs. A layout or member without a name in C is an error. */
export function layoutEntries(): readonly Entry[] {
  const named = Object.entries(layouts).filter(([name, layout]) => typeof layout === 'object' && name !== 'CODE');
  return [
    { what: 'PCI_INFO.busIdLength', expression: 'sizeof(((nvmlPciInfo_t *)0)->busId)', ours: layouts.PCI_INFO.busIdLength },
    {
      what: 'PLATFORM.chassisLength',
      expression: 'sizeof(((nvmlPlatformInfo_v2_t *)0)->chassisSerialNumber)',
      ours: layouts.PLATFORM.chassisLength,
    },
    ...named.flatMap(([name]) => {
      const structs = STRUCTS[name];
      if (structs === undefined) throw new Error(`header.ts has ${name}, and the test has no name of it in nvml.h`);
      return structs.flatMap(({ ours, type, members }) => entriesOf(name, ours, type, members));
    }),
  ];
}

function entriesOf(name: string, ours: object, type: string, members: Members): readonly Entry[] {
  return Object.entries(ours)
    .filter(([member]) => !LENGTHS.has(member))
    .map(([member, number]): Entry => {
      const theirs = members[member];
      if (member === 'size') return { what: `${name}.size`, expression: `sizeof(${type})`, ours: number };
      if (theirs === undefined) throw new Error(`header.ts has ${name}.${member}, and the test has no name of it in nvml.h`);
      return { what: `${name}.${member}`, expression: member === 'version' ? theirs : `offsetof(${type}, ${theirs})`, ours: number };
    });
}

/** Fields of the old and new spelling of one name, by the first branch of the driver that has it. */
const heat = (driver: string): Members =>
  Number.parseInt(driver, 10) < 575
    ? { softwareHeatSeconds: 'NVML_FI_DEV_PERF_POLICY_THERMAL' }
    : {
        softwareHeatSeconds: 'NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN',
        heatSeconds: 'NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN',
        powerBrakeSeconds: 'NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN',
      };
/** Constants by what the agent means, in the order of the numbers; `0` and `length` are numbers for which C has no name. */
const FIELD_NAMES: Members = {
  memoryTemperatureCelsius: 'NVML_FI_DEV_MEMORY_TEMP',
  powerWatts: 'NVML_FI_DEV_POWER_INSTANT',
  averagePowerWatts: 'NVML_FI_DEV_POWER_AVERAGE',
  memoryPowerWatts: 'NVML_FI_DEV_POWER_INSTANT NVML_POWER_SCOPE_MEMORY',
  averageMemoryPowerWatts: 'NVML_FI_DEV_POWER_AVERAGE NVML_POWER_SCOPE_MEMORY',
  modulePowerWatts: 'NVML_FI_DEV_POWER_INSTANT NVML_POWER_SCOPE_MODULE',
  averageModulePowerWatts: 'NVML_FI_DEV_POWER_AVERAGE NVML_POWER_SCOPE_MODULE',
  energyJoules: 'NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION',
  powerCapSeconds: 'NVML_FI_DEV_PERF_POLICY_POWER',
  syncSeconds: 'NVML_FI_DEV_PERF_POLICY_SYNC_BOOST',
  boardLimitSeconds: 'NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT',
  lowUtilizationSeconds: 'NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION',
  reliabilitySeconds: 'NVML_FI_DEV_PERF_POLICY_RELIABILITY',
  pcieReplayRollovers: 'NVML_FI_DEV_PCIE_REPLAY_ROLLOVER_COUNTER',
  pcieTransmittedBytes: 'NVML_FI_DEV_PCIE_COUNT_TX_BYTES',
  pcieReceivedBytes: 'NVML_FI_DEV_PCIE_COUNT_RX_BYTES',
  recovery: 'NVML_FI_DEV_GET_GPU_RECOVERY_ACTION',
  shutdownMarginCelsius: 'NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT',
  slowdownMarginCelsius: 'NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT',
  maximumMarginCelsius: 'NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT',
  memoryMaximumMarginCelsius: 'NVML_FI_DEV_TEMPERATURE_MEM_MAX_TLIMIT',
  singleBitPages: 'NVML_FI_DEV_RETIRED_SBE',
  doubleBitPages: 'NVML_FI_DEV_RETIRED_DBE',
  arePagesPending: 'NVML_FI_DEV_RETIRED_PENDING',
};
const clocks = (symbol: string, names: Members): Members =>
  Object.fromEntries(Object.entries(names).map(([key, clock]) => [`${symbol} ${key}`, `NVML_CLOCK_${clock}`]));
const limits = (names: Members): Members =>
  Object.fromEntries(
    Object.entries(names).map(([key, limit]) => [`nvmlDeviceGetTemperatureThreshold ${key}`, `NVML_TEMPERATURE_THRESHOLD_${limit}`]),
  );
const LOCATIONS: Members = {
  sram: 'SRAM',
  dram: 'DRAM',
  device_memory: 'DEVICE_MEMORY',
  register_file: 'REGISTER_FILE',
  l1_cache: 'L1_CACHE',
  l2_cache: 'L2_CACHE',
  texture_memory: 'TEXTURE_MEMORY',
  texture_shm: 'TEXTURE_SHM',
  cbu: 'CBU',
};
const errors = (): Members =>
  Object.fromEntries(
    Object.entries(LOCATIONS).flatMap(([location, name]) =>
      [
        ['volatile', 'NVML_VOLATILE_ECC'],
        ['lifetime', 'NVML_AGGREGATE_ECC'],
      ].flatMap(([period, counter]) =>
        [
          ['correctable', 'NVML_MEMORY_ERROR_TYPE_CORRECTED'],
          ['uncorrectable', 'NVML_MEMORY_ERROR_TYPE_UNCORRECTED'],
        ].map(([severity, type]) => [`errors ${period} ${severity} ${location}`, `${type} ${counter} NVML_MEMORY_LOCATION_${name}`]),
      ),
    ),
  );
const CALL_NAMES: Members = {
  'nvmlDeviceGetTemperature temperatureCelsius': 'NVML_TEMPERATURE_GPU',
  'nvmlDeviceGetFanSpeed_v2 fanRatio': '0',
  'nvmlDeviceGetName name': 'NVML_DEVICE_NAME_V2_BUFFER_SIZE',
  'nvmlDeviceGetSerial serial': 'NVML_DEVICE_SERIAL_BUFFER_SIZE',
  'nvmlDeviceGetBoardPartNumber boardPart': 'NVML_DEVICE_PART_NUMBER_BUFFER_SIZE',
  'nvmlDeviceGetVbiosVersion vbios': 'NVML_DEVICE_VBIOS_VERSION_BUFFER_SIZE',
  ...clocks('nvmlDeviceGetClockInfo', { graphicsHertz: 'GRAPHICS', smHertz: 'SM', memoryHertz: 'MEM', videoHertz: 'VIDEO' }),
  ...clocks('nvmlDeviceGetMaxClockInfo', {
    graphicsMaxHertz: 'GRAPHICS',
    smMaxHertz: 'SM',
    memoryMaxHertz: 'MEM',
    videoMaxHertz: 'VIDEO',
  }),
  ...limits({ shutdownCelsius: 'SHUTDOWN', slowdownCelsius: 'SLOWDOWN', maximumCelsius: 'GPU_MAX', memoryMaximumCelsius: 'MEM_MAX' }),
  ...errors(),
};
const REASON_NAMES: Members = {
  isIdle: 'nvmlClocksThrottleReasonGpuIdle',
  isThrottledBySettings: 'nvmlClocksThrottleReasonApplicationsClocksSetting',
  isThrottledByPowerCap: 'nvmlClocksThrottleReasonSwPowerCap',
  isThrottledByHardware: 'nvmlClocksThrottleReasonHwSlowdown',
  isThrottledBySync: 'nvmlClocksThrottleReasonSyncBoost',
  isThrottledBySoftwareForHeat: 'nvmlClocksThrottleReasonSwThermalSlowdown',
  isThrottledByHeat: 'nvmlClocksThrottleReasonHwThermalSlowdown',
  isThrottledByPowerBrake: 'nvmlClocksThrottleReasonHwPowerBrakeSlowdown',
  isThrottledByDisplay: 'nvmlClocksThrottleReasonDisplayClockSetting',
  isThrottledByBoardLimit: 'nvmlClocksEventReasonBoardLimit',
  isThrottledForReliability: 'nvmlClocksEventReasonReliability',
};
const gpm = (names: Members): Members => Object.fromEntries(Object.entries(names).map(([key, name]) => [key, `NVML_GPM_METRIC_${name}`]));
const ACTIVITY_NAMES = gpm({
  graphicsActivityRatio: 'GRAPHICS_UTIL',
  smActivityRatio: 'SM_UTIL',
  occupancyRatio: 'SM_OCCUPANCY',
  integerActivityRatio: 'INTEGER_UTIL',
  tensorActivityRatio: 'ANY_TENSOR_UTIL',
  dfmaActivityRatio: 'DFMA_TENSOR_UTIL',
  hmmaActivityRatio: 'HMMA_TENSOR_UTIL',
  dmmaActivityRatio: 'DMMA_TENSOR_UTIL',
  immaActivityRatio: 'IMMA_TENSOR_UTIL',
  memoryBandwidthRatio: 'DRAM_BW_UTIL',
  fp64ActivityRatio: 'FP64_UTIL',
  fp32ActivityRatio: 'FP32_UTIL',
  fp16ActivityRatio: 'FP16_UTIL',
  pcieMeanTransmitBytesPerSecond: 'PCIE_TX_PER_SEC',
  pcieMeanReceiveBytesPerSecond: 'PCIE_RX_PER_SEC',
  nvlinkMeanReceiveBytesPerSecond: 'NVLINK_TOTAL_RX_PER_SEC',
  nvlinkMeanTransmitBytesPerSecond: 'NVLINK_TOTAL_TX_PER_SEC',
});
const LINK_NAMES: Members = {
  'link transmitted KiB': 'NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX',
  'link received KiB': 'NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX',
  'link transmitted bytes': 'NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES',
  'link received bytes': 'NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES',
  'link malformed': 'NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS',
  'link overrun': 'NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS',
  'link receive': 'NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS',
  'link remote': 'NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS',
  'link general': 'NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS',
  'link local_integrity': 'NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS',
  'link discarded': 'NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS',
  'link recovery': 'NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS',
  'link effective': 'NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS',
  'link symbol': 'NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS',
  'link recovery_failed': 'NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS',
  'link counter replay': 'NVML_NVLINK_ERROR_DL_REPLAY',
  'link counter recovery': 'NVML_NVLINK_ERROR_DL_RECOVERY',
  'link counter crc_flit': 'NVML_NVLINK_ERROR_DL_CRC_FLIT',
  'link counter crc_data': 'NVML_NVLINK_ERROR_DL_CRC_DATA',
  'link counter ecc': 'NVML_NVLINK_ERROR_DL_ECC_DATA',
  'link to a switch': 'NVML_NVLINK_DEVICE_TYPE_SWITCH',
};
const TYPE_NAMES: Members = {
  'type double': 'NVML_VALUE_TYPE_DOUBLE',
  'type u32': 'NVML_VALUE_TYPE_UNSIGNED_INT',
  'type u64': 'NVML_VALUE_TYPE_UNSIGNED_LONG_LONG',
  'type i64': 'NVML_VALUE_TYPE_SIGNED_LONG_LONG',
  'type i32': 'NVML_VALUE_TYPE_SIGNED_INT',
  'type u16': 'NVML_VALUE_TYPE_UNSIGNED_SHORT',
};
const words = (kind: string, prefix: string, names: Members): Members =>
  Object.fromEntries(Object.entries(names).map(([word, name]) => [`${kind} ${word}`, `${prefix}${name}`]));
const WORD_NAMES: Members = {
  ...words('brand', 'NVML_BRAND_', {
    Quadro: 'QUADRO',
    Tesla: 'TESLA',
    NVS: 'NVS',
    GRID: 'GRID',
    GeForce: 'GEFORCE',
    Titan: 'TITAN',
    'NVIDIA Virtual Applications': 'NVIDIA_VAPPS',
    'NVIDIA Virtual PC': 'NVIDIA_VPC',
    'NVIDIA Virtual Compute Server': 'NVIDIA_VCS',
    'NVIDIA RTX Virtual Workstation': 'NVIDIA_VWS',
    'NVIDIA Cloud Gaming': 'NVIDIA_CLOUD_GAMING',
    'Quadro RTX': 'QUADRO_RTX',
    'NVIDIA RTX': 'NVIDIA_RTX',
    NVIDIA: 'NVIDIA',
    'GeForce RTX': 'GEFORCE_RTX',
    'Titan RTX': 'TITAN_RTX',
  }),
  ...words('architecture', 'NVML_DEVICE_ARCH_', {
    Kepler: 'KEPLER',
    Maxwell: 'MAXWELL',
    Pascal: 'PASCAL',
    Volta: 'VOLTA',
    Turing: 'TURING',
    Ampere: 'AMPERE',
    'Ada Lovelace': 'ADA',
    Hopper: 'HOPPER',
    Blackwell: 'BLACKWELL',
    Rubin: 'RUBIN',
  }),
  ...words('computeMode', 'NVML_COMPUTEMODE_', {
    Default: 'DEFAULT',
    Exclusive_Thread: 'EXCLUSIVE_THREAD',
    Prohibited: 'PROHIBITED',
    Exclusive_Process: 'EXCLUSIVE_PROCESS',
  }),
};

function named(meanings: readonly Meaning[], names: Members): readonly Entry[] {
  return meanings.flatMap(({ what, numbers }) => {
    const expressions = names[what]?.split(' ');
    if (expressions?.length !== numbers.length) throw new Error(`the test has no name in nvml.h for ${what} (${numbers.join(', ')})`);
    return expressions.map((expression, at) => ({ what, expression, ours: numbers[at] as number }));
  });
}

/** Field ids, types of their values, metrics of GPM, arguments, reasons and words. */
export const numberEntries = (driver: string): readonly Entry[] => [
  ...named(fieldMeanings(driver), { ...FIELD_NAMES, ...heat(driver) }),
  ...named(linkMeanings(), LINK_NAMES),
  ...named(
    // Two types have one form: the second is that of the C type `unsigned long long`.
    typeMeanings().filter(({ numbers }) => numbers[0] !== 2),
    TYPE_NAMES,
  ),
  ...named(activityMeanings(), ACTIVITY_NAMES),
  ...named(callMeanings(driver), CALL_NAMES),
  ...named(reasonMeanings(driver), REASON_NAMES),
  ...named(
    [
      ...wordMeanings(driver, 'nvmlDeviceGetBrand', 'brand'),
      ...wordMeanings(driver, 'nvmlDeviceGetArchitecture', 'architecture'),
      ...wordMeanings(driver, 'nvmlDeviceGetComputeMode', 'computeMode'),
    ],
    WORD_NAMES,
  ),
];

const EVENT_NAMES = [
  'nvmlEventTypeDoubleBitEccError',
  'nvmlEventTypeXidCriticalError',
  'nvmlEventMigConfigChange',
  'nvmlEventTypeSingleBitEccErrorStorm',
  'nvmlEventTypeDramRetirementEvent',
  'nvmlEventTypeDramRetirementFailure',
  'nvmlEventTypeNonFatalPoisonError',
  'nvmlEventTypeFatalPoisonError',
  'nvmlEventTypeGpuUnavailableError',
  'nvmlEventTypeGpuRecoveryAction',
];
/** Codes whose names in C have other words. */
const CODE_NAMES: Members = {
  success: 'NVML_SUCCESS',
  libraryMismatch: 'NVML_ERROR_LIB_RM_VERSION_MISMATCH',
  versionMismatch: 'NVML_ERROR_ARGUMENT_VERSION_MISMATCH',
};
const capitals = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();

/** Return codes, event types, states of the fabric and recovery actions. */
export function codeEntries(): readonly Entry[] {
  const { wanted, xid } = eventMeanings();
  const system = systemEventMeanings();
  return [
    { what: 'the event that the agent registers for', expression: 'nvmlSystemEventTypeGpuDriverUnbind', ours: system.wanted },
    ...system.unbind.map((ours) => ({ what: 'the event of an unbind', expression: 'nvmlSystemEventTypeGpuDriverUnbind', ours })),
    ...Object.entries(CODE).map(([name, ours]) => ({
      what: `CODE.${name}`,
      expression: CODE_NAMES[name] ?? `NVML_ERROR_${capitals(name)}`,
      ours,
    })),
    { what: 'all events that the agent registers for', expression: EVENT_NAMES.join(' | '), ours: wanted },
    ...xid.map((ours) => ({ what: 'the event of an Xid', expression: 'nvmlEventTypeXidCriticalError', ours })),
    ...FABRIC_STATES.map((state, at) => ({ what: state, expression: `NVML_GPU_FABRIC_STATE_${state.toUpperCase()}`, ours: at + 1 })),
    ...FABRIC_HEALTHS.map((health, at) => ({
      what: health,
      expression: `NVML_GPU_FABRIC_HEALTH_SUMMARY_${health.toUpperCase()}`,
      ours: at + 1,
    })),
    ...RECOVERY_ACTIONS.map(({ action }, at) => ({
      what: action,
      expression: `NVML_GPU_RECOVERY_ACTION_${action.toUpperCase()}`,
      ours: at,
    })),
  ];
}
