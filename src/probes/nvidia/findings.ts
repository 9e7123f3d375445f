import type { ConditionSpec, Finding, Severity } from '../../model/health.ts';
import { declaredFinding, type ReasonOf, raiseGrowth } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { conditions } from './conditions.ts';
import { fabricFindings } from './fabric-findings.ts';
import { type GpuSample, type MigSample, totalOf, type Unread } from './sample.ts';
import { VALUES, type ValueKey, type Values } from './values.ts';

/** Returns the health findings of one GPU sample. `all`: the GPUs of the node in the same read. */
export function gpuFindings(gpu: GpuSample, all: readonly GpuSample[] = [gpu]): readonly Finding[] {
  const { values = {}, times } = gpu;
  const judged = [
    ...lost(gpu),
    ...recovery(gpu),
    ...memoryFindings(gpu),
    ...flagged(values, 'isThrottledByHeat', conditions.ThermalSlowdown, 'HardwareThermalSlowdown', 'NotThrottled', ACTIVE),
    ...flagged(values, 'isThrottledByPowerBrake', conditions.PowerBrake, 'HardwarePowerBrake', 'NotThrottled', ACTIVE),
    ...slowdown(values),
    ...temperature(values),
    ...fabricFindings(gpu, all),
    ...licence(values),
    ...asOf(linkWidth(values), times?.get('pcieLanes')),
  ];
  return [...judged, ...unjudged(gpu, judged)];
}

/** Values of one call, each of which may be absent. */
const PAGES = ['singleBitPages', 'doubleBitPages', 'arePagesPending'] as const;

/** The values that each condition needs, by key or by name. A lost GPU has a condition of its own. */
const NEEDS: readonly (readonly [condition: ConditionSpec, values: readonly string[], instance?: string])[] = [
  [conditions.RecoveryAction, ['recovery']],
  [conditions.UncorrectableEcc, ['ecc']],
  [conditions.SramThresholdExceeded, ['isSramThresholdExceeded']],
  [conditions.RowRemapPending, ['isRemapPending']],
  [conditions.RowRemapFailure, ['isRemapFailed']],
  [conditions.SpareRowsLow, ['banksWithMaxSpareRows']],
  [conditions.RetiredPages, PAGES],
  [conditions.MemoryRepairPending, ['isChannelRepairPending'], 'channel'],
  [conditions.MemoryRepairPending, ['isTpcRepairPending'], 'tpc'],
  [conditions.MemoryUnrepairable, ['isMemoryUnrepairable']],
  [conditions.InforomCorrupted, ['inforom']],
  [conditions.ThermalSlowdown, ['isThrottledByHeat']],
  [conditions.PowerBrake, ['isThrottledByPowerBrake']],
  [conditions.HardwareSlowdown, ['isThrottledByHardware']],
  [conditions.FabricNotReady, ['fabric/state']],
  [conditions.FabricUnhealthy, ['fabric/health/summary']],
];

/** Conditions that are unknown because a value could not be read. `judged`: findings that need no such value. */
function unjudged({ unread = [] }: GpuSample | MigSample, judged: readonly Finding[]): readonly Finding[] {
  const failed = unread.filter(({ kind }) => kind !== 'lost');
  return NEEDS.flatMap(([{ type, reasons }, values, instance]) => {
    const found = failed.find(({ value, name }) => values.includes(value) || values.includes(name));
    if (found === undefined || judged.some((finding) => finding.type === type && finding.instance === instance)) return [];
    const reason = reasons[0] as string;
    return [{ type, reason, status: 'unknown', message: `${found.name}: ${found.text}`, ...(instance !== undefined && { instance }) }];
  });
}

/** Conditions of a whole GPU that also affect its instances. A fault of one memory or counter may not affect them. */
const CONCERNS_INSTANCES: ReadonlySet<string> = new Set([
  'GpuLost',
  'NotInitialized',
  'RecoveryAction',
  'FabricNotReady',
  'PciFunctionGone',
  'AerFatal',
]);
export const concerningInstances = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ type }) => CONCERNS_INSTANCES.has(type));

/** Live values. On a lost GPU the driver prints an error text in their place; its identity stays readable. */
const LIVE = ['temperatureCelsius', 'memoryTemperatureCelsius', 'busyRatio', 'memoryUsedBytes', 'smHertz', 'fanRatio'] as const;
/** A value that was kept from an earlier read proves nothing. */
const answers = ({ values = {}, times }: GpuSample): boolean => LIVE.some((key) => values[key] !== undefined && times?.has(key) !== true);
/** Returns a message about a live value that cannot be read for this reason. */
function failureOf({ unread = [] }: GpuSample, ...reasons: readonly Unread['kind'][]): string | undefined {
  const live = [...LIVE, 'uncorrectableRows' as const].flatMap((key) => unread.filter(({ value }) => value === key));
  const found = live.find(({ kind }) => reasons.includes(kind));
  return found && `${found.name}: ${found.text}`;
}

function licence({ isLicensed }: Values): readonly Finding[] {
  if (isLicensed === undefined) return [];
  const [reason, message] = isLicensed
    ? (['Licensed', 'the vGPU has a licence'] as const)
    : (['Unlicensed', 'the vGPU has no licence'] as const);
  return [declaredFinding(conditions.VgpuUnlicensed, reason, { status: !isLicensed, message })];
}

function lost(gpu: GpuSample): readonly Finding[] {
  const message = failureOf(gpu, 'lost');
  if (message !== undefined) return [declaredFinding(conditions.GpuLost, 'GpuIsLost', { status: true, message })];
  if (answers(gpu))
    return [conditions.GpuLost, conditions.NotInitialized].map((condition) =>
      declaredFinding(condition, 'Answers', { status: false, message: 'the GPU answers' }),
    );
  const failed = failureOf(gpu, 'error', 'reset-required');
  return failed === undefined ? [] : [declaredFinding(conditions.GpuLost, 'ValuesUnreadable', { status: 'unknown', message: failed })];
}

function recovery(gpu: GpuSample): readonly Finding[] {
  if (gpu.recovery === undefined) return needsReset(gpu);
  const { word, action } = gpu.recovery;
  if (action === undefined) return [];
  if (!('need' in action))
    return [declaredFinding(conditions.RecoveryAction, 'None', { status: false, message: 'the driver asks for nothing' })];
  const { reason, severity, remedy } = action.need;
  return [declaredFinding(conditions.RecoveryAction, reason, { status: true, message: `the driver asks for: ${word}`, severity, remedy })];
}

const isRecoveryUnread = ({ unread = [] }: GpuSample): boolean => unread.some(({ value }) => value === 'recovery');

/** Drivers without a recovery action print the need for a reset in place of values. Readable values end only this instance. */
function needsReset(gpu: GpuSample): readonly Finding[] {
  if (isRecoveryUnread(gpu)) return [];
  const instance = 'values';
  const message = failureOf(gpu, 'reset-required');
  if (message !== undefined) return [declaredFinding(conditions.RecoveryAction, 'GpuReset', { instance, status: true, message })];
  if (!answers(gpu)) return [];
  return [
    declaredFinding(conditions.RecoveryAction, 'None', {
      instance,
      status: false,
      message: 'values are reported, and no reset is requested',
    }),
  ];
}

/** The clocks are halved, or worse. Heat and the power brake have conditions of their own. The driver names no other cause. */
function slowdown(values: Values): readonly Finding[] {
  const { isThrottledByHardware, isThrottledByHeat, isThrottledByPowerBrake, powerWatts, enforcedLimitWatts } = values;
  if (isThrottledByHardware === undefined) return [];
  const isTold = isThrottledByHeat === true || isThrottledByPowerBrake === true;
  if (!isThrottledByHardware || isTold) {
    const message = `hw_slowdown: ${isTold ? 'has its own condition' : 'not active'}`;
    return [declaredFinding(conditions.HardwareSlowdown, 'NotThrottled', { status: false, message })];
  }
  const isAlone = isThrottledByHeat === false && isThrottledByPowerBrake === false;
  const message = `hw_slowdown: active${isAlone ? ', without heat and power brake' : ''}`;
  if (powerWatts !== undefined && enforcedLimitWatts !== undefined && powerWatts > enforcedLimitWatts)
    return [
      declaredFinding(conditions.HardwareSlowdown, 'AbovePowerLimit', {
        status: true,
        message: `${message}, above its power limit`,
        remedy: 'check-power',
      }),
    ];
  const [hot] = temperature(values);
  if (hot !== undefined && 'status' in hot && hot.status === true)
    return [
      declaredFinding(conditions.HardwareSlowdown, 'AtSlowdownTemperature', {
        status: true,
        message: `${message}, ${hot.message}`,
        remedy: 'check-cooling',
      }),
    ];
  return [declaredFinding(conditions.HardwareSlowdown, 'UnknownCause', { status: true, message })];
}

/** Judges the temperature. Boards up to Ampere report degrees; later boards report the degrees that are left. */
function temperature(values: Values): readonly Finding[] {
  const { temperatureCelsius: degrees, slowdownCelsius: slow, marginCelsius: margin, slowdownMarginCelsius: slowMargin } = values;
  if (degrees !== undefined && slow !== undefined)
    return [overTemperature(degrees >= slow, `${degrees} °C, slows down at ${slow} °C`, `slows down at ${slow} °C`)];
  if (margin === undefined || slowMargin === undefined) return [];
  const below = `slows down at ${slowMargin} °C left`;
  return [overTemperature(margin <= slowMargin, `${margin} °C left, slows down at ${slowMargin} °C`, below)];
}

/** Below the limit the message is constant, so that a change of one degree is not a new finding. */
function overTemperature(status: boolean, at: string, below: string): Finding {
  return declaredFinding(conditions.OverTemperature, status ? 'AtSlowdownTemperature' : 'BelowLimit', {
    status,
    message: status ? at : below,
  });
}

/** A link is compared with its own highest width, because healthy boards in clouds run below their maximum. */
function linkWidth({ pcieLanes }: Values): readonly Finding[] {
  const lanes = Number(pcieLanes ?? 0);
  if (lanes === 0) return [];
  return [
    declaredFinding(conditions.PcieLinkDegraded, 'NarrowerThanBefore', {
      message: `PCIe link x${lanes}`,
      level: lanes,
      tellsHighest: true,
    }),
  ];
}

/** Returns the memory findings of one GPU sample. */
function memoryFindings(gpu: GpuSample): readonly Finding[] {
  const { values = {}, times } = gpu;
  return [
    ...ecc(gpu),
    ...rows(values),
    ...asOf(
      pages(values),
      PAGES.map((key) => times?.get(key)).find((atMs) => atMs !== undefined),
    ),
    ...repairs(values),
  ];
}

/** Returns the findings of a MIG instance. MIG boards remap rows, so an error affects only the instance in which it occurred. */
export function instanceFindings(instance: MigSample): readonly Finding[] {
  const count = totalOf(instance.ecc?.volatile, 'uncorrectable');
  if (count === undefined) return unjudged(instance, []);
  const message = `${count} uncorrectable SRAM errors in this instance since the driver was loaded`;
  return [uncorrectable(count, message, 'degraded')];
}

function ecc(gpu: GpuSample): readonly Finding[] {
  const { ecc: { volatile } = {}, values = {}, recovery } = gpu;
  const errors = totalOf(volatile, 'uncorrectable');
  const correctable = totalOf(volatile, 'correctable');
  const findings: Finding[] = [];
  if (errors !== undefined) {
    // Boards that remap rows isolate such errors, and their driver reports when a reset is needed, also when MIG hides the
    // rows. On older boards the next program may get the same memory cell.
    const isContained = values.uncorrectableRows !== undefined || recovery !== undefined || isRecoveryUnread(gpu);
    const severity: Severity = isContained ? 'degraded' : 'fatal';
    const message = `${errors} uncorrectable memory errors since the driver was loaded`;
    findings.push(uncorrectable(errors, message, severity));
  }
  const corrected = `${correctable} corrected memory errors since the driver was loaded`;
  return [
    ...findings,
    ...raiseGrowth(conditions.CorrectableEccRate, correctable, corrected),
    ...flagged(values, 'isSramThresholdExceeded', conditions.SramThresholdExceeded, 'ThresholdExceeded', 'BelowThreshold'),
  ];
}

const uncorrectable = (count: bigint, message: string, severity: Severity): Finding =>
  declaredFinding(conditions.UncorrectableEcc, count > 0n ? 'UncorrectableErrors' : 'NoErrors', { status: count > 0n, message, severity });

function rows(values: Values): readonly Finding[] {
  const [none, low] = [Number(values.banksWithoutSpareRows ?? 0), Number(values.banksWithFewSpareRows ?? 0)];
  const spare = declaredFinding(
    conditions.SpareRowsLow,
    none > 0 ? 'BanksWithoutSpareRows' : low > 0 ? 'BanksWithFewSpareRows' : 'Enough',
    {
      status: none + low > 0,
      message: `${none} banks have no spare rows left, ${low} few`,
      severity: none > 0 ? 'degraded' : 'info',
    },
  );
  return [
    ...flagged(values, 'isRemapPending', conditions.RowRemapPending, 'RemapPending', 'NonePending'),
    ...flagged(values, 'isRemapFailed', conditions.RowRemapFailure, 'RemapFailed', 'NoneFailed'),
    ...(values.banksWithMaxSpareRows === undefined ? [] : [spare]),
  ];
}

/** With this number of retired pages, the board cannot retire more pages. */
const MAX_RETIRED_PAGES = 63;

/** A value that was not read hides no fault that the others show, and without it the pages cannot be called few. */
function pages(values: Values): readonly Finding[] {
  const { singleBitPages, doubleBitPages, arePagesPending } = values;
  const missing = PAGES.filter((key) => values[key] === undefined);
  if (missing.length === PAGES.length) return [];
  const total = Number(singleBitPages ?? 0) + Number(doubleBitPages ?? 0);
  const isFull = total >= MAX_RETIRED_PAGES;
  const isPending = arePagesPending === true;
  const counted = `${missing.some((key) => key !== 'arePagesPending') ? 'at least ' : ''}${total} pages retired`;
  return [
    declaredFinding(conditions.RetiredPages, isFull ? 'PagesUsedUp' : isPending ? 'RetirementPending' : 'Few', {
      status: isFull || isPending || (missing.length > 0 ? 'unknown' : false),
      message: `${counted}${isPending ? ', more wait for a reset' : ''}`,
      ...(isFull && { severity: 'fatal', remedy: 'replace' }),
    }),
  ];
}

const repairs = (values: Values): readonly Finding[] => [
  ...flagged(values, 'isChannelRepairPending', conditions.MemoryRepairPending, 'ChannelRepairPending', 'NonePending', {
    instance: 'channel',
  }),
  ...flagged(values, 'isTpcRepairPending', conditions.MemoryRepairPending, 'TpcRepairPending', 'NonePending', { instance: 'tpc' }),
  ...flagged(values, 'isMemoryUnrepairable', conditions.MemoryUnrepairable, 'Unrepairable', 'Repairable'),
];

/** Words of a reason why the clocks are low, which the driver calls active or not. */
const ACTIVE = { isTold: ['not active', 'active'] } as const;

function flagged<C extends ConditionSpec>(
  values: Values,
  key: ValueKey,
  condition: C,
  yes: ReasonOf<C>,
  no: ReasonOf<C>,
  { isTold = ['no', 'yes'], ...part }: { readonly instance?: string; readonly isTold?: readonly [no: string, yes: string] } = {},
): readonly Finding[] {
  const status = values[key];
  if (typeof status !== 'boolean') return [];
  const name = VALUES[key].paths[0]?.split('/').at(-1)?.replace('clocks_event_reason_', '');
  return [declaredFinding(condition, status ? yes : no, { status, message: `${name}: ${isTold[Number(status)]}`, ...part })];
}
