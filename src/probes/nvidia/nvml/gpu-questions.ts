import type { GpuSample } from '../sample.ts';
import { fabricHealthOf, fabricStateOf, recoveryActionOf } from '../states.ts';
import type { ValueKey, Values } from '../values.ts';
import { wordOf } from './codes.ts';
import type { DriverVersion } from './driver-version.ts';
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
  longAt,
  MEGA,
  MILLI,
  NANO,
  type Pace,
  PERCENT,
  type Question,
  question,
  SAME,
  signedAt,
  type ValueWay,
  valueQuestion,
} from './question.ts';

/** Everything that is asked of a GPU, in the order in which it is asked and told. */
export function gpuQuestions(library: Library, driver: DriverVersion): readonly Question[] {
  const ask = (pace: Pace, first: ValueWay, ...older: readonly ValueWay[]): Question => valueQuestion(library, pace, first, ...older);
  /** `before`: between the handle and the answer. */
  const one = (pace: Pace, key: ValueKey, symbol: string, convert = SAME, ...before: readonly number[]): Question =>
    ask(pace, { symbol, before, reads: { [key]: at(0, convert) } });
  const engine = (key: ValueKey, name: string): Question =>
    ask('slow', { symbol: `nvmlDeviceGet${name}Utilization`, outs: 2, reads: { [key]: at(0, PERCENT) } });
  const threshold = (key: ValueKey, type: number): Question => ({
    ...one('facts', key, 'nvmlDeviceGetTemperatureThreshold', SAME, type),
    // The same limit in degrees and as degrees left would be told twice.
    unless: ({ values = {} }) => MARGINS.some((margin) => values[margin] !== undefined),
  });
  return [
    ...identityQuestions(library),
    // First of all: whether the GPU is there.
    ask(
      'read',
      { symbol: 'nvmlDeviceGetTemperatureV', version: TEMPERATURE.version, reads: { temperatureCelsius: signedAt(TEMPERATURE.value) } },
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
    ask('read', { symbol: 'nvmlDeviceGetMarginTemperature', version: MARGIN.version, reads: { marginCelsius: signedAt(MARGIN.value) } }),
    one('facts', 'enforcedLimitWatts', 'nvmlDeviceGetEnforcedPowerLimit', MILLI),
    one('facts', 'requestedLimitWatts', 'nvmlDeviceGetPowerManagementLimit', MILLI),
    one('facts', 'defaultLimitWatts', 'nvmlDeviceGetPowerManagementDefaultLimit', MILLI),
    ask('facts', {
      symbol: 'nvmlDeviceGetPowerManagementLimitConstraints',
      outs: 2,
      reads: { minimumLimitWatts: at(0, MILLI), maximumLimitWatts: at(8, MILLI) },
    }),
    one('slow', 'graphicsHertz', 'nvmlDeviceGetClockInfo', MEGA, 0),
    // On boards for computing it is that of graphics too, and the others hardly move.
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
    fieldQuestion(library, 'read', [...READ_FIELDS, ...throttleFields(driver)]),
    // The field of the present power is newer.
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

/** Everything that is asked of a MIG instance. */
export const instanceQuestions = (library: Library): readonly Question[] => [
  memoryQuestion(library),
  bar1Question(library),
  instanceErrors(library),
];

/** The first version counts what driver and firmware keep as used. */
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

/** Limits as degrees left, which later boards give in the place of degrees. */
const MARGIN_FIELDS: readonly Field[] = [
  field(193, 'shutdownMarginCelsius'),
  field(194, 'slowdownMarginCelsius'),
  field(196, 'maximumMarginCelsius'),
  field(195, 'memoryMaximumMarginCelsius'),
];
const MARGINS = ['shutdownMarginCelsius', 'slowdownMarginCelsius', 'maximumMarginCelsius', 'memoryMaximumMarginCelsius'] as const;

/** Bits of the clock event reasons. Of a driver that does not know a bit, nothing is told by its being 0. */
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
const READ_FIELDS: readonly Field[] = [
  field(82, 'memoryTemperatureCelsius'),
  field(186, 'powerWatts', MILLI),
  field(185, 'averagePowerWatts', MILLI),
  field(186, 'memoryPowerWatts', MILLI, { scope: MEMORY_SCOPE }),
  field(186, 'modulePowerWatts', MILLI, { scope: MODULE_SCOPE }),
  field(83, 'energyJoules', MILLI),
  field(74, 'powerCapSeconds', NANO),
  field(76, 'syncSeconds', NANO),
  field(77, 'boardLimitSeconds', NANO),
  field(78, 'lowUtilizationSeconds', NANO),
  field(79, 'reliabilitySeconds', NANO),
  field(95, 'pcieReplayRollovers'),
  field(197, 'pcieTransmittedBytes', SAME, { isWide: true }),
  field(198, 'pcieReceivedBytes', SAME, { isWide: true }),
  { id: 230, name: 'gpu_recovery_action', tell: recovery },
];

const ACTIONS = ['None', 'GPU Reset', 'Node Reboot', 'Drain P2P', 'Drain and Reset', 'Recover IMEX Domain', 'Bus Reset', 'System Reboot'];

/** A number that stands for no action is told as unknown, so that it does not pass for nothing. */
function recovery(number: number): GpuSample {
  const word = ACTIONS[number];
  if (word !== undefined) return { recovery: { word, action: recoveryActionOf(word) } };
  const said = `Unknown (${number})`;
  return { recovery: { word: said }, unread: [{ name: 'gpu_recovery_action', said, kind: 'unknown' }] };
}

/**
 * Time with clocks lowered for heat and by the power supply. Their ids were given anew within the branch 580, where 251 to 253 became
 * settings of power smoothing; before them, the policy counter of heat stood for the first. Source: the bindings for Python, which
 * come with 575.51, 580.65 and 580.82.
 */
function throttleFields({ branch, build }: DriverVersion): readonly Field[] {
  const isRenumbered = branch > 580 || (branch === 580 && build >= 82);
  const first = isRenumbered ? 269 : branch >= 575 ? 251 : undefined;
  if (first === undefined) return [field(75, 'softwareHeatSeconds', NANO)];
  return [field(first, 'softwareHeatSeconds', NANO), field(first + 1, 'heatSeconds', NANO), field(first + 2, 'powerBrakeSeconds', NANO)];
}

/** State and health of the GPU's registration with its NVLink fabric. */
function fabricQuestion(library: Library): Question {
  const symbol = 'nvmlDeviceGetGpuFabricInfoV';
  return question(
    library,
    'slow',
    ['fabric/state', 'fabric/health/summary'],
    [
      { symbol, version: FABRIC_V3.version, tell: (out) => fabric(out, FABRIC_V3) },
      { symbol, version: FABRIC_V2.version, tell: (out) => fabric(out, FABRIC_V2) },
      { symbol: 'nvmlDeviceGetGpuFabricInfo', tell: (out) => fabric(out, FABRIC_V1) },
    ],
  );
}

interface FabricLayout {
  readonly status: number;
  readonly state: number;
  readonly healthMask?: number;
  readonly healthSummary?: number;
}

/** Of a GPU that has no fabric nothing is told. */
const STATES = ['', 'Not Started', 'In Progress', 'Completed'];
const HEALTHS = ['', 'Healthy', 'Unhealthy', 'Limited Capacity'];

function fabric(out: Memory, { status, state, healthMask, healthSummary }: FabricLayout): GpuSample {
  const word = STATES[out.u8(state)] ?? '';
  return {
    fabric: {
      state: fabricStateOf(word),
      // The status means something once the registration has ended.
      status: word === 'Completed' ? wordOf(out.u32(status)) : 'N/A',
      health: healthSummary === undefined ? undefined : fabricHealthOf(HEALTHS[out.u8(healthSummary)] ?? ''),
    },
    values: healthMask === undefined ? {} : fabricFaults(out.u32(healthMask)),
  };
}

/** Parts of two bits each, 1 for bad and 2 for good; last one of four bits, 0 for not told and 1 for good. */
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
