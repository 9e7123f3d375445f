import { defined } from '../../../model/defined.ts';
import {
  type EccCount,
  type EccSeverity,
  FABRIC_FAULTS,
  FABRIC_HEALTHS,
  FABRIC_STATES,
  type FabricSample,
  type GpuSample,
  RECOVERY_ACTIONS,
  type Unread,
} from '../sample.ts';
import { CODE, FABRIC_V1, FABRIC_V2, FABRIC_V3, failureOf, REMAP_HISTOGRAM, REPAIR, SRAM_STATUS, textOf, unreadFor } from './header.ts';
import type { Memory } from './library.ts';
import {
  type Answer,
  type Answers,
  at,
  type Device,
  endsRound,
  type Field,
  FLAG,
  field,
  fieldQuestion,
  type Interval,
  longAt,
  type Question,
  question,
  valueQuestion,
} from './question.ts';

/** Questions about the memory errors of a GPU, about repairs, and about its fabric. */
export function faultQuestions(): readonly Question[] {
  return [
    valueQuestion('read', {
      symbol: 'nvmlDeviceGetRemappedRows',
      outs: 4,
      reads: { correctableRows: at(0), uncorrectableRows: at(8), isRemapPending: at(16, FLAG), isRemapFailed: at(24, FLAG) },
    }),
    valueQuestion('read', {
      symbol: 'nvmlDeviceGetRowRemapperHistogram',
      reads: {
        banksWithMaxSpareRows: at(REMAP_HISTOGRAM.max),
        banksWithManySpareRows: at(REMAP_HISTOGRAM.high),
        banksWithSomeSpareRows: at(REMAP_HISTOGRAM.partial),
        banksWithFewSpareRows: at(REMAP_HISTOGRAM.low),
        banksWithoutSpareRows: at(REMAP_HISTOGRAM.none),
      },
    }),
    valueQuestion('read', {
      symbol: 'nvmlDeviceGetSramEccErrorStatus',
      version: SRAM_STATUS.version,
      reads: {
        l2LifetimeErrors: longAt(SRAM_STATUS.l2),
        smLifetimeErrors: longAt(SRAM_STATUS.sm),
        pcieLifetimeErrors: longAt(SRAM_STATUS.pcie),
        microcontrollerLifetimeErrors: longAt(SRAM_STATUS.microcontroller),
        otherLifetimeErrors: longAt(SRAM_STATUS.other),
        isSramThresholdExceeded: at(SRAM_STATUS.thresholdExceeded, FLAG),
      },
    }),
    valueQuestion('facts', { symbol: 'nvmlDeviceGetEccMode', outs: 2, reads: { isEccOn: at(0, FLAG), isEccPending: at(8, FLAG) } }),
    valueQuestion('read', {
      symbol: 'nvmlDeviceGetRepairStatus',
      version: REPAIR.version,
      reads: { isChannelRepairPending: at(REPAIR.channel, FLAG), isTpcRepairPending: at(REPAIR.tpc, FLAG) },
    }),
    valueQuestion('read', { symbol: 'nvmlDeviceGetUnrepairableMemoryFlag_v1', reads: { isMemoryUnrepairable: at(0, FLAG) } }),
    // Only boards up to Turing retire pages.
    fieldQuestion('slow', [
      field(29, 'singleBitPages'),
      field(30, 'doubleBitPages'),
      field(31, 'arePagesPending', (pending) => [false, true][pending]),
    ]),
    // Boards up to Volta count single and double bit errors; later boards count errors of SRAM and DRAM.
    counters('read', VOLATILE, UNIFIED, countsBits),
    counters('read', VOLATILE, BY_BITS, (gpu) => !countsBits(gpu)),
    counters('facts', LIFETIME, UNIFIED, countsBits),
    counters('facts', LIFETIME, BY_BITS, (gpu) => !countsBits(gpu)),
    fabricQuestion(),
  ];
}

/** The driver reports no other errors of an instance. */
export const instanceErrors = (): Question =>
  question('read', [{ value: 'ecc', name: 'ecc_error_count/volatile_count/sram_uncorrectable' }], {
    symbol: COUNTER,
    before: [TYPES.uncorrectable, VOLATILE.kind, SRAM],
    parse: (out) => ({ ecc: { volatile: [{ severity: 'uncorrectable', location: 'sram', count: BigInt(out.u64(0)) }] } }),
  });

const COUNTER = 'nvmlDeviceGetMemoryErrorCounter';
/** Error types, kinds of counters and locations of {@link COUNTER}. */
const TYPES: Readonly<Record<EccSeverity, number>> = { correctable: 0, uncorrectable: 1 };
const [DRAM, SRAM] = [2, 7];

interface Period {
  readonly kind: number;
  readonly element: string;
  readonly key: 'volatile' | 'lifetime';
}
const VOLATILE: Period = { kind: 0, element: 'volatile', key: 'volatile' };
const LIFETIME: Period = { kind: 1, element: 'aggregate', key: 'lifetime' };

interface Counter {
  readonly severity: EccSeverity;
  readonly location: string;
  /** Number of the memory location in NVML. */
  readonly place: number;
  readonly element: string;
}
const UNIFIED: readonly Counter[] = [
  { severity: 'correctable', location: 'sram', place: SRAM, element: 'sram_correctable' },
  { severity: 'uncorrectable', location: 'sram', place: SRAM, element: 'sram_uncorrectable' },
  { severity: 'correctable', location: 'dram', place: DRAM, element: 'dram_correctable' },
  { severity: 'uncorrectable', location: 'dram', place: DRAM, element: 'dram_uncorrectable' },
];
const PLACES = { device_memory: 2, register_file: 3, l1_cache: 0, l2_cache: 1, texture_memory: 4, texture_shm: 5, cbu: 6 };
const BY_BITS: readonly Counter[] = Object.entries(PLACES).flatMap(([location, place]): Counter[] => [
  { severity: 'correctable', location, place, element: `single_bit/${location}` },
  { severity: 'uncorrectable', location, place, element: `double_bit/${location}` },
]);

const OLD_BOARDS: ReadonlySet<string | undefined> = new Set(['Kepler', 'Maxwell', 'Pascal', 'Volta']);
const countsBits = (answers: Answers): boolean => OLD_BOARDS.has(answers.told('identity', 'architecture'));

/** Question that reads several counters, each with its own call. */
function counters(interval: Interval, period: Period, all: readonly Counter[], unless: Question['unless']): Question {
  const ask = ({ library, handle }: Device): Answer => {
    const counts: EccCount[] = [];
    const unread: Unread[] = [];
    let worst: number = CODE.success;
    for (const { severity, location, place, element } of all) {
      const code = library.call(COUNTER, 'hiiip', handle, TYPES[severity], period.kind, place, library.scratch.address);
      if (endsRound(code)) return { code, sample: {} };
      const failure = unreadFor(code, [{ value: 'ecc', name: `ecc_errors/${period.element}/${element}` }]);
      if (code === CODE.success) counts.push({ severity, location, count: BigInt(library.scratch.u64(0)) });
      else if (failure.length > 0) counts.push({ severity, location });
      unread.push(...failure);
      if (worst === CODE.success && failureOf(code) !== undefined) worst = code;
    }
    return { code: worst, sample: { ecc: { [period.key]: counts }, unread } };
  };
  return { symbol: COUNTER, interval, unless, ask };
}

const RECOVERY = { value: 'recovery', name: 'gpu_recovery_action' } as const;
/** The recovery action that the driver asks for. */
export const RECOVERY_FIELD: Field = { id: 230, places: [RECOVERY], parse: recovery };

/** Parses the recovery action. An unknown number is reported as unknown, so that it does not look like "none". */
function recovery(number: number): GpuSample {
  const action = RECOVERY_ACTIONS[number];
  if (action !== undefined) return { recovery: { word: action.word, action } };
  const text = `Unknown (${number})`;
  return { recovery: { word: text }, unread: [{ ...RECOVERY, text, kind: 'unknown' }] };
}

/** Question about state and health of the GPU's registration with its NVLink fabric. */
function fabricQuestion(): Question {
  const symbol = 'nvmlDeviceGetGpuFabricInfoV';
  return question(
    'slow',
    ['fabric/state', 'fabric/health/summary'].map((name) => ({ value: 'fabric', name })),
    { symbol, version: FABRIC_V3.version, parse: (out) => fabric(out, FABRIC_V3) },
    { symbol, version: FABRIC_V2.version, parse: (out) => fabric(out, FABRIC_V2) },
    { symbol: 'nvmlDeviceGetGpuFabricInfo', parse: (out) => fabric(out, FABRIC_V1) },
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
      ...(healthMask !== undefined && toldBy(out.u32(healthMask))),
      clique: isIn ? String(out.u32(layout.clique)) : undefined,
      cluster: isIn ? out.uuid(layout.cluster) : undefined,
    },
  };
}

/** Faults of the four fields of two bits (1 is a fault, 2 is none), in their order. */
const BIT_FAULTS = ['degraded_bandwidth', 'route_recovery', 'route_unhealthy', 'access_timeout_recovery'];
/** Wrong configurations by the number of the last field, of four bits: 0 is unknown, 1 is right. */
const CONFIGURATION_FAULTS = ' | |system_guid|chassis_serial|no_partition|too_few_nvlinks|gpu_firmware|gpu_location|gpu_state'.split('|');

/** Meaning of a mask. A number that the table does not have is a wrong configuration of an unknown kind. Empty when it says nothing of any field. */
function toldBy(mask: number): Pick<FabricSample, 'faults' | 'told'> {
  if ((mask & 0xfff) === 0) return {};
  const configuration = (mask >>> 8) & 15;
  const bits = BIT_FAULTS.map((fault, at) => [fault, [undefined, true, false][(mask >>> (2 * at)) & 3]] as const);
  const told = defined({ ...Object.fromEntries(bits), configuration: configuration === 0 ? undefined : configuration > 1 });
  const nameOf = (fault: string): string => (fault === 'configuration' ? (CONFIGURATION_FAULTS[configuration] ?? fault) : fault);
  const names = Object.entries(told).flatMap(([fault, isWrong]) => (isWrong === true ? [nameOf(fault)] : []));
  return { told, faults: FABRIC_FAULTS.filter(({ fault }) => names.includes(fault)) };
}
