import type { GpuSample } from '../sample.ts';
import { FABRIC_FAULTS, FABRIC_HEALTHS, FABRIC_STATES, type FabricFault, RECOVERY_ACTIONS } from '../states.ts';
import type { ValueKey, Values } from '../values.ts';
import { CODE, textOf } from './codes.ts';
import { errorQuestions, instanceErrors } from './error-questions.ts';
import { identityQuestions } from './identity-questions.ts';
import { FABRIC_V1, FABRIC_V2, FABRIC_V3, MARGIN, MEMORY, MEMORY_V2, TEMPERATURE, UTILIZATION } from './layouts.ts';
import type { Library } from './library.ts';
import type { Memory } from './memory.ts';
import {
  at,
  type Field,
  FLAG,
  field,
  fieldQuestion,
  type Interval,
  int32At,
  longAt,
  MEGA,
  MILLI,
  NANO,
  PERCENT,
  type Question,
  question,
  SAME,
  type ValueVariant,
  valueQuestion,
} from './question.ts';

/** Version of a driver. `580.105.08` has branch 580 and build 105. Both are 0 when the version is unknown. */
export interface DriverVersion {
  readonly branch: number;
  readonly build: number;
}

export function driverVersionOf(text: string): DriverVersion {
  const [, branch = '0', build = '0'] = /^(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  return { branch: Number(branch), build: Number(build) };
}

/** All questions to a GPU, in the order of the calls and of their results. */
export function gpuQuestions(library: Library, driver: DriverVersion): readonly Question[] {
  const ask = (interval: Interval, first: ValueVariant, ...older: readonly ValueVariant[]): Question =>
    valueQuestion(library, interval, first, ...older);
  /** `before` holds the arguments between the handle and the answer. */
  const one = (interval: Interval, key: ValueKey, symbol: string, convert = SAME, ...before: readonly number[]): Question =>
    ask(interval, { symbol, before, reads: { [key]: at(0, convert) } });
  const engine = (key: ValueKey, name: string): Question =>
    ask('slow', { symbol: `nvmlDeviceGet${name}Utilization`, outs: 2, reads: { [key]: at(0, PERCENT) } });
  const threshold = (key: ValueKey, type: number): Question => ({
    ...one('facts', key, 'nvmlDeviceGetTemperatureThreshold', SAME, type),
    // Otherwise the same limit would be reported twice: in degrees and as a margin.
    unless: ({ values = {} }) => MARGINS.some((margin) => values[margin] !== undefined),
  });
  return [
    ...identityQuestions(library),
    // This is the first call of each read, so it shows whether the GPU is lost.
    ask(
      'read',
      { symbol: 'nvmlDeviceGetTemperatureV', version: TEMPERATURE.version, reads: { temperatureCelsius: int32At(TEMPERATURE.value) } },
      { symbol: 'nvmlDeviceGetTemperature', before: [0], reads: { temperatureCelsius: at(0) } },
    ),
    ask('read', { symbol: 'nvmlDeviceGetMigMode', outs: 2, reads: { isMigOn: at(0, FLAG), isMigPending: at(8, FLAG) } }),
    memoryQuestion(library),
    bar1Question(library),
    ask('slow', {
      symbol: 'nvmlDeviceGetConfComputeProtectedMemoryUsage',
      reads: { protectedTotalBytes: longAt(MEMORY.total), protectedUsedBytes: longAt(MEMORY.used) },
    }),
    ask('read', {
      symbol: 'nvmlDeviceGetUtilizationRates',
      reads: { busyRatio: at(UTILIZATION.gpu, PERCENT), memoryBusyRatio: at(UTILIZATION.memory, PERCENT) },
    }),
    engine('encoderBusyRatio', 'Encoder'),
    engine('decoderBusyRatio', 'Decoder'),
    engine('jpegBusyRatio', 'Jpg'),
    engine('ofaBusyRatio', 'Ofa'),
    fieldQuestion(library, 'facts', MARGIN_FIELDS),
    threshold('shutdownCelsius', 0),
    threshold('slowdownCelsius', 1),
    threshold('maximumCelsius', 3),
    threshold('memoryMaximumCelsius', 2),
    // A temperature must hold for half a minute to count, so that one slow read of it would prove nothing.
    ask('read', { symbol: 'nvmlDeviceGetMarginTemperature', version: MARGIN.version, reads: { marginCelsius: int32At(MARGIN.value) } }),
    one('facts', 'enforcedLimitWatts', 'nvmlDeviceGetEnforcedPowerLimit', MILLI),
    one('facts', 'requestedLimitWatts', 'nvmlDeviceGetPowerManagementLimit', MILLI),
    one('facts', 'defaultLimitWatts', 'nvmlDeviceGetPowerManagementDefaultLimit', MILLI),
    ask('facts', {
      symbol: 'nvmlDeviceGetPowerManagementLimitConstraints',
      outs: 2,
      reads: { minimumLimitWatts: at(0, MILLI), maximumLimitWatts: at(8, MILLI) },
    }),
    one('slow', 'graphicsHertz', 'nvmlDeviceGetClockInfo', MEGA, 0),
    // On compute boards the graphics clock is the same, and the other clocks rarely change.
    one('read', 'smHertz', 'nvmlDeviceGetClockInfo', MEGA, 1),
    one('slow', 'memoryHertz', 'nvmlDeviceGetClockInfo', MEGA, 2),
    one('slow', 'videoHertz', 'nvmlDeviceGetClockInfo', MEGA, 3),
    one('facts', 'graphicsMaxHertz', 'nvmlDeviceGetMaxClockInfo', MEGA, 0),
    one('facts', 'smMaxHertz', 'nvmlDeviceGetMaxClockInfo', MEGA, 1),
    one('facts', 'memoryMaxHertz', 'nvmlDeviceGetMaxClockInfo', MEGA, 2),
    one('facts', 'videoMaxHertz', 'nvmlDeviceGetMaxClockInfo', MEGA, 3),
    ask(
      'slow',
      { symbol: 'nvmlDeviceGetFanSpeed_v2', before: [0], reads: { fanRatio: at(0, PERCENT) } },
      { symbol: 'nvmlDeviceGetFanSpeed', reads: { fanRatio: at(0, PERCENT) } },
    ),
    reasonsQuestion(library, driver),
    fieldQuestion(library, 'read', [...READ_FIELDS, ...(hasPolicyCounterOnly(driver) ? [] : throttleFields(driver))]),
    // This field alone takes 0.7 ms of CPU on an H100.
    ...(hasPolicyCounterOnly(driver) ? [fieldQuestion(library, 'slow', [field(75, 'softwareHeatSeconds', NANO)])] : []),
    // Older drivers lack the field of the current power.
    { ...one('read', 'powerWatts', 'nvmlDeviceGetPowerUsage', MILLI), unless: ({ values }) => values?.powerWatts !== undefined },
    one('slow', 'pcieLanes', 'nvmlDeviceGetCurrPcieLinkWidth'),
    one('facts', 'pcieMaxLanes', 'nvmlDeviceGetMaxPcieLinkWidth'),
    one('slow', 'pcieGeneration', 'nvmlDeviceGetCurrPcieLinkGeneration'),
    one('facts', 'pcieMaxGeneration', 'nvmlDeviceGetMaxPcieLinkGeneration'),
    one('slow', 'pcieReplays', 'nvmlDeviceGetPcieReplayCounter'),
    ask('slow', { symbol: 'nvmlDeviceGetEncoderStats', outs: 3, reads: { encoderSessions: at(0) } }),
    ...errorQuestions(library),
    one('facts', 'isPersistent', 'nvmlDeviceGetPersistenceMode', FLAG),
    one('slow', 'performanceState', 'nvmlDeviceGetPerformanceState', (state) => (state <= 15 ? state : undefined)),
    fabricQuestion(library),
  ];
}

/** All questions to a MIG instance. */
export const instanceQuestions = (library: Library): readonly Question[] => [
  memoryQuestion(library),
  bar1Question(library),
  instanceErrors(library),
];

/** Reads the memory. Version 1 of the struct counts memory that driver and firmware reserve as used. */
const memoryQuestion = (library: Library): Question =>
  valueQuestion(
    library,
    'read',
    {
      symbol: 'nvmlDeviceGetMemoryInfo_v2',
      version: MEMORY_V2.version,
      reads: {
        memoryTotalBytes: longAt(MEMORY_V2.total),
        memoryUsedBytes: longAt(MEMORY_V2.used),
        memoryReservedBytes: longAt(MEMORY_V2.reserved),
      },
    },
    { symbol: 'nvmlDeviceGetMemoryInfo', reads: { memoryTotalBytes: longAt(MEMORY.total), memoryUsedBytes: longAt(MEMORY.used) } },
  );

const bar1Question = (library: Library): Question =>
  valueQuestion(library, 'slow', {
    symbol: 'nvmlDeviceGetBAR1MemoryInfo',
    reads: { bar1TotalBytes: longAt(MEMORY.total), bar1UsedBytes: longAt(MEMORY.used) },
  });

/** Limits as margins. Later boards report them instead of limits in degrees. */
const MARGIN_FIELDS: readonly Field[] = [
  field(193, 'shutdownMarginCelsius'),
  field(194, 'slowdownMarginCelsius'),
  field(196, 'maximumMarginCelsius'),
  field(195, 'memoryMaximumMarginCelsius'),
];
const MARGINS = ['shutdownMarginCelsius', 'slowdownMarginCelsius', 'maximumMarginCelsius', 'memoryMaximumMarginCelsius'] as const;

/** Bits of the clock event reasons. A 0 has no meaning if the driver does not know the bit. */
const REASONS: readonly (readonly [bit: number, key: ValueKey])[] = [
  [0x1, 'isIdle'],
  [0x2, 'isThrottledBySettings'],
  [0x4, 'isThrottledByPowerCap'],
  [0x8, 'isThrottledByHardware'],
  [0x40, 'isThrottledByHeat'],
  [0x80, 'isThrottledByPowerBrake'],
  [0x10, 'isThrottledBySync'],
  [0x20, 'isThrottledBySoftwareForHeat'],
  [0x100, 'isThrottledByDisplay'],
];
const FIRST_WITH_LATE_REASONS = 615;
const LATE_REASONS: typeof REASONS = [
  [0x200, 'isThrottledByBoardLimit'],
  [0x400, 'isThrottledForReliability'],
];

function reasonsQuestion(library: Library, { branch }: DriverVersion): Question {
  const reasons = branch >= FIRST_WITH_LATE_REASONS ? [...REASONS, ...LATE_REASONS] : REASONS;
  const reads = Object.fromEntries(reasons.map(([bit, key]) => [key, at(0, (mask) => (mask & bit) !== 0)]));
  return valueQuestion(
    library,
    'read',
    { symbol: 'nvmlDeviceGetCurrentClocksEventReasons', reads },
    { symbol: 'nvmlDeviceGetCurrentClocksThrottleReasons', reads },
  );
}

const [MODULE_SCOPE, MEMORY_SCOPE] = [1, 2];
const RECOVERY = { value: 'recovery', name: 'gpu_recovery_action' } as const;
const READ_FIELDS: readonly Field[] = [
  field(82, 'memoryTemperatureCelsius'),
  field(186, 'powerWatts', MILLI),
  field(185, 'averagePowerWatts', MILLI),
  field(186, 'memoryPowerWatts', MILLI, { scope: MEMORY_SCOPE }),
  field(185, 'averageMemoryPowerWatts', MILLI, { scope: MEMORY_SCOPE }),
  field(186, 'modulePowerWatts', MILLI, { scope: MODULE_SCOPE }),
  field(185, 'averageModulePowerWatts', MILLI, { scope: MODULE_SCOPE }),
  field(83, 'energyJoules', MILLI),
  field(74, 'powerCapSeconds', NANO),
  field(76, 'syncSeconds', NANO),
  field(77, 'boardLimitSeconds', NANO),
  field(78, 'lowUtilizationSeconds', NANO),
  field(79, 'reliabilitySeconds', NANO),
  field(95, 'pcieReplayRollovers'),
  field(197, 'pcieTransmittedBytes', SAME, { isWide: true }),
  field(198, 'pcieReceivedBytes', SAME, { isWide: true }),
  { id: 230, places: [RECOVERY], parse: recovery },
];

/** Parses the recovery action. An unknown number is reported as unknown, so that it does not look like "none". */
function recovery(number: number): GpuSample {
  const action = RECOVERY_ACTIONS[number];
  if (action !== undefined) return { recovery: { word: action.word, action } };
  const text = `Unknown (${number})`;
  return { recovery: { word: text }, unread: [{ ...RECOVERY, text, kind: 'unknown' }] };
}

/** Before branch 575, only the policy counter of heat exists. */
const hasPolicyCounterOnly = ({ branch }: DriverVersion): boolean => branch < 575;

/**
 * Fields for the time with clocks lowered by heat or by the power supply. Within branch 580 their ids changed, and 251 to 253 became
 * settings of power smoothing. Source: the Python bindings of 575.51, 580.65
 * and 580.82.
 */
function throttleFields({ branch, build }: DriverVersion): readonly Field[] {
  const isRenumbered = branch > 580 || (branch === 580 && build >= 82);
  const first = isRenumbered ? 269 : 251;
  return [field(first, 'softwareHeatSeconds', NANO), field(first + 1, 'heatSeconds', NANO), field(first + 2, 'powerBrakeSeconds', NANO)];
}

/** Question about state and health of the GPU's registration with its NVLink fabric. */
function fabricQuestion(library: Library): Question {
  const symbol = 'nvmlDeviceGetGpuFabricInfoV';
  return question(
    library,
    'slow',
    ['fabric/state', 'fabric/health/summary'].map((name) => ({ value: 'fabric', name })),
    [
      { symbol, version: FABRIC_V3.version, parse: (out) => fabric(out, FABRIC_V3) },
      { symbol, version: FABRIC_V2.version, parse: (out) => fabric(out, FABRIC_V2) },
      { symbol: 'nvmlDeviceGetGpuFabricInfo', parse: (out) => fabric(out, FABRIC_V1) },
    ],
  );
}

interface FabricLayout {
  readonly cluster: number;
  readonly clique: number;
  readonly status: number;
  readonly state: number;
  readonly healthMask?: number;
  readonly healthSummary?: number;
}

/** A state or health of 0 means that the GPU has no fabric. */
function fabric(out: Memory, layout: FabricLayout): GpuSample {
  const { healthMask, healthSummary } = layout;
  const state = FABRIC_STATES[out.u8(layout.state) - 1];
  // The status is valid only after the registration has ended.
  const code = state === 'completed' ? out.u32(layout.status) : undefined;
  const isIn = code === CODE.success;
  return {
    fabric: {
      state,
      status: code === undefined ? 'N/A' : textOf(code),
      hasFailed: code !== undefined && code !== CODE.success,
      health: healthSummary === undefined ? undefined : FABRIC_HEALTHS[out.u8(healthSummary) - 1],
      faults: healthMask === undefined ? undefined : faultsOf(out.u32(healthMask)),
      clique: isIn ? String(out.u32(layout.clique)) : undefined,
      cluster: isIn ? out.uuid(layout.cluster) : undefined,
    },
    values: healthMask === undefined ? {} : fabricFaults(out.u32(healthMask)),
  };
}

/** Faults of the four fields of two bits, and of the field of four bits by its number. */
const BIT_FAULTS = ['degraded_bandwidth', 'route_recovery', 'route_unhealthy', 'access_timeout_recovery'];
const CONFIGURATION_FAULTS = [
  'system_guid',
  'chassis_serial',
  'no_partition',
  'too_few_nvlinks',
  'gpu_firmware',
  'gpu_location',
  'gpu_state',
];
const FIRST_WRONG = 2;

/** A number that this table does not have is a wrong configuration of an unknown kind. Undefined when the mask says nothing of any field. */
function faultsOf(mask: number): readonly FabricFault[] | undefined {
  if ((mask & 0xfff) === 0) return undefined;
  const configuration = (mask >>> 8) & 15;
  const wrong = configuration < FIRST_WRONG ? [] : [CONFIGURATION_FAULTS[configuration - FIRST_WRONG] ?? 'configuration'];
  const names = new Set([...BIT_FAULTS.filter((_, at) => ((mask >>> (2 * at)) & 3) === 1), ...wrong]);
  return FABRIC_FAULTS.filter(({ fault }) => names.has(fault));
}

/** Parses four fields of two bits (1 is a fault, 2 is healthy) and then one of four bits (0 is unknown, 1 is healthy). */
function fabricFaults(mask: number): Values {
  const part = (shift: number): boolean | undefined => [undefined, true, false][(mask >>> shift) & 3];
  const configuration = (mask >>> 8) & 15;
  return {
    hasFabricDegradedBandwidth: part(0),
    hasFabricRouteRecovery: part(2),
    hasFabricRouteUnhealthy: part(4),
    hasFabricAccessTimeout: part(6),
    hasFabricMisconfiguration: configuration === 0 ? undefined : configuration !== 1,
  };
}
