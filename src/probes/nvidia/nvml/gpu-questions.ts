import type { GpuIdentity } from '../sample.ts';
import type { ValueKey } from '../values.ts';
import { faultQuestions, instanceErrors, RECOVERY_FIELD } from './fault-questions.ts';
import { CODE, MARGIN, MEMORY, MEMORY_V2, PLATFORM, TEMPERATURE, UTILIZATION, VGPU_MODE } from './header.ts';
import { LICENCE_QUESTION } from './licence-question.ts';
import {
  at,
  type CallVariant,
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
  valueQuestion,
} from './question.ts';

/** Texts that `nvidia-smi` prints for enumerations of nvml.h. */
const BRANDS = words(
  '-|Quadro|Tesla|NVS|GRID|GeForce|Titan|NVIDIA Virtual Applications|NVIDIA Virtual PC|NVIDIA Virtual Compute Server|NVIDIA RTX Virtual Workstation',
  'NVIDIA Cloud Gaming|Quadro RTX|NVIDIA RTX|NVIDIA|GeForce RTX|Titan RTX',
);
const ARCHITECTURES = words('-|-|Kepler|Maxwell|Pascal|Volta|Turing|Ampere|Ada Lovelace|Hopper|Blackwell|-|-|Rubin');
const COMPUTE_MODES = words('Default|Exclusive_Thread|Prohibited|Exclusive_Process');

/** Words by their number, which is their position. A dash has no word. */
function words(...lists: readonly string[]): (number: number) => string | undefined {
  const all = lists.flatMap((list) => list.split('|'));
  return (number) => (all[number] === '-' ? undefined : all[number]);
}

/** Questions about the identity of the board, which is constant for a handle. A failed call reports no unread value. */
function identityQuestions(): readonly Question[] {
  const text = (symbol: string, key: keyof GpuIdentity, length: number): CallVariant => ({
    symbol,
    after: [length],
    parse: (out) => ({ identity: { [key]: out.text(0, length) } }),
  });
  const number = (symbol: string, key: keyof GpuIdentity, wordOf: (value: number) => string | undefined): CallVariant => ({
    symbol,
    parse: (out) => ({ identity: { [key]: wordOf(out.u32(0)) } }),
  });
  const once: readonly CallVariant[] = [
    text('nvmlDeviceGetName', 'name', 96),
    text('nvmlDeviceGetSerial', 'serial', 30),
    text('nvmlDeviceGetBoardPartNumber', 'boardPart', 80),
    text('nvmlDeviceGetVbiosVersion', 'vbios', 32),
    { ...text('nvmlDeviceGetGspFirmwareVersion', 'gspFirmware', 80), after: [] },
    number('nvmlDeviceGetMinorNumber', 'minor', String),
    number('nvmlDeviceGetModuleId', 'moduleId', String),
    number('nvmlDeviceGetBrand', 'brand', BRANDS),
    number('nvmlDeviceGetArchitecture', 'architecture', ARCHITECTURES),
  ];
  return [
    ...once.map((variant) => question('once', [], variant)),
    PLATFORM_QUESTION,
    INFOROM_QUESTION,
    question('facts', [], number('nvmlDeviceGetComputeMode', 'computeMode', COMPUTE_MODES)),
    question(
      'once',
      [],
      number('nvmlDeviceGetVirtualizationMode', 'virtualization', (mode) => (mode === VGPU_MODE ? 'VGPU' : undefined)),
    ),
  ];
}

/** Place of the board in its chassis. Blackwell and later tell it, where the platform knows it. */
const PLATFORM_QUESTION: Question = question('once', [], {
  symbol: 'nvmlDeviceGetPlatformInfo',
  version: PLATFORM.version,
  parse: (out) => {
    const chassis = out.text(PLATFORM.chassis, PLATFORM.chassisLength);
    const [slot, tray, host] = [PLATFORM.slot, PLATFORM.tray, PLATFORM.host].map((offset) => String(out.u8(offset)));
    return { identity: { ...(chassis !== '' && { chassis }), slot, tray, host } };
  },
});

const CHECKED: Question = question('once', [{ value: 'inforom', name: 'inforom' }], {
  symbol: 'nvmlDeviceValidateInforom',
  outs: 0,
  parse: () => ({ isInforomSound: true }),
});

/** It reads the flash. Its code says whether the infoROM is damaged, as the warning behind each output of `nvidia-smi`. */
const INFOROM_QUESTION: Question = {
  ...CHECKED,
  ask(device) {
    const answer = CHECKED.ask(device);
    return answer.code === CODE.corruptedInforom ? { ...answer, sample: {} } : answer;
  },
};

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
export function gpuQuestions(driver: DriverVersion): readonly Question[] {
  /** `before` holds the arguments between the handle and the answer. */
  const one = (interval: Interval, key: ValueKey, symbol: string, convert = SAME, ...before: readonly number[]): Question =>
    valueQuestion(interval, { symbol, before, reads: { [key]: at(0, convert) } });
  const engine = (key: ValueKey, name: string): Question =>
    valueQuestion('slow', { symbol: `nvmlDeviceGet${name}Utilization`, outs: 2, reads: { [key]: at(0, PERCENT) } });
  const threshold = (key: ValueKey, type: number): Question => ({
    ...one('facts', key, 'nvmlDeviceGetTemperatureThreshold', SAME, type),
    // Otherwise the same limit would be reported twice: in degrees and as a margin.
    unless: (answers) => MARGINS.some((margin) => answers.value(margin) !== undefined),
  });
  return [
    ...identityQuestions(),
    // This is the first call of each read, so it shows whether the GPU is lost.
    valueQuestion(
      'read',
      { symbol: 'nvmlDeviceGetTemperatureV', version: TEMPERATURE.version, reads: { temperatureCelsius: int32At(TEMPERATURE.value) } },
      { symbol: 'nvmlDeviceGetTemperature', before: [0], reads: { temperatureCelsius: at(0) } },
    ),
    valueQuestion('read', { symbol: 'nvmlDeviceGetMigMode', outs: 2, reads: { isMigOn: at(0, FLAG), isMigPending: at(8, FLAG) } }),
    MEMORY_QUESTION,
    BAR1_QUESTION,
    valueQuestion('slow', {
      symbol: 'nvmlDeviceGetConfComputeProtectedMemoryUsage',
      reads: { protectedTotalBytes: longAt(MEMORY.total), protectedUsedBytes: longAt(MEMORY.used) },
    }),
    valueQuestion('read', {
      symbol: 'nvmlDeviceGetUtilizationRates',
      reads: { busyRatio: at(UTILIZATION.gpu, PERCENT), memoryBusyRatio: at(UTILIZATION.memory, PERCENT) },
    }),
    engine('encoderBusyRatio', 'Encoder'),
    engine('decoderBusyRatio', 'Decoder'),
    engine('jpegBusyRatio', 'Jpg'),
    engine('ofaBusyRatio', 'Ofa'),
    fieldQuestion('facts', MARGIN_FIELDS),
    threshold('shutdownCelsius', 0),
    threshold('slowdownCelsius', 1),
    threshold('maximumCelsius', 3),
    threshold('memoryMaximumCelsius', 2),
    // It takes 0.9 ms of CPU on an H100. From Ada on, only this field has the limit of the temperature.
    valueQuestion('read', {
      symbol: 'nvmlDeviceGetMarginTemperature',
      version: MARGIN.version,
      reads: { marginCelsius: int32At(MARGIN.value) },
    }),
    one('facts', 'enforcedLimitWatts', 'nvmlDeviceGetEnforcedPowerLimit', MILLI),
    one('facts', 'requestedLimitWatts', 'nvmlDeviceGetPowerManagementLimit', MILLI),
    one('facts', 'defaultLimitWatts', 'nvmlDeviceGetPowerManagementDefaultLimit', MILLI),
    valueQuestion('facts', {
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
    valueQuestion(
      'slow',
      { symbol: 'nvmlDeviceGetFanSpeed_v2', before: [0], reads: { fanRatio: at(0, PERCENT) } },
      { symbol: 'nvmlDeviceGetFanSpeed', reads: { fanRatio: at(0, PERCENT) } },
    ),
    reasonsQuestion(driver),
    fieldQuestion('read', [...READ_FIELDS, ...(hasPolicyCounterOnly(driver) ? [] : throttleFields(driver))]),
    fieldQuestion('costly', [field(83, 'energyJoules', MILLI)]),
    // This field alone takes 0.7 ms of CPU on an H100.
    ...(hasPolicyCounterOnly(driver) ? [fieldQuestion('slow', [field(75, 'softwareHeatSeconds', NANO)])] : []),
    // Older drivers lack the field of the current power.
    { ...one('read', 'powerWatts', 'nvmlDeviceGetPowerUsage', MILLI), unless: (answers) => answers.value('powerWatts') !== undefined },
    one('slow', 'pcieLanes', 'nvmlDeviceGetCurrPcieLinkWidth'),
    one('facts', 'pcieMaxLanes', 'nvmlDeviceGetMaxPcieLinkWidth'),
    one('slow', 'pcieGeneration', 'nvmlDeviceGetCurrPcieLinkGeneration'),
    one('facts', 'pcieMaxGeneration', 'nvmlDeviceGetMaxPcieLinkGeneration'),
    one('slow', 'pcieReplays', 'nvmlDeviceGetPcieReplayCounter'),
    valueQuestion('slow', { symbol: 'nvmlDeviceGetEncoderStats', outs: 3, reads: { encoderSessions: at(0) } }),
    ...faultQuestions(),
    LICENCE_QUESTION,
    one('facts', 'isPersistent', 'nvmlDeviceGetPersistenceMode', FLAG),
    one('slow', 'performanceState', 'nvmlDeviceGetPerformanceState', (state) => (state <= 15 ? state : undefined)),
  ];
}

/** All questions to a MIG instance. */
export const instanceQuestions = (): readonly Question[] => [MEMORY_QUESTION, BAR1_QUESTION, instanceErrors()];

/** Reads the memory. Version 1 of the struct counts memory that driver and firmware reserve as used. */
const MEMORY_QUESTION: Question = valueQuestion(
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

const BAR1_QUESTION: Question = valueQuestion('slow', {
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

function reasonsQuestion({ branch }: DriverVersion): Question {
  const reasons = branch >= FIRST_WITH_LATE_REASONS ? [...REASONS, ...LATE_REASONS] : REASONS;
  const reads = Object.fromEntries(reasons.map(([bit, key]) => [key, at(0, (mask) => (mask & bit) !== 0)]));
  return valueQuestion(
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
  field(185, 'averageMemoryPowerWatts', MILLI, { scope: MEMORY_SCOPE }),
  field(186, 'modulePowerWatts', MILLI, { scope: MODULE_SCOPE }),
  field(185, 'averageModulePowerWatts', MILLI, { scope: MODULE_SCOPE }),
  field(74, 'powerCapSeconds', NANO),
  field(76, 'syncSeconds', NANO),
  field(77, 'boardLimitSeconds', NANO),
  field(78, 'lowUtilizationSeconds', NANO),
  field(79, 'reliabilitySeconds', NANO),
  field(95, 'pcieReplayRollovers'),
  field(197, 'pcieTransmittedBytes', SAME, { isWide: true }),
  field(198, 'pcieReceivedBytes', SAME, { isWide: true }),
  RECOVERY_FIELD,
];

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
