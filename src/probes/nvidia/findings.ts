import type { ConditionSpec, Finding } from '../../model/health.ts';
import { type ReasonOf, raise, raiseGrowth } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { conditions } from './conditions.ts';
import { memoryFindings } from './memory-findings.ts';
import {
  type FabricSample,
  type GpuSample,
  INTENSE_PER_SECOND,
  type LinkState,
  type LinkStates,
  SWITCH_END,
  type Unread,
} from './sample.ts';
import type { FabricState } from './states.ts';
import type { Values } from './values.ts';

/** Returns the health findings of one GPU sample. `all`: the GPUs of the node in the same read. */
export function gpuFindings(gpu: GpuSample, all: readonly GpuSample[] = [gpu]): readonly Finding[] {
  const { values = {}, fabric: registration = {}, times } = gpu;
  return [
    ...lost(gpu),
    ...recovery(gpu),
    ...memoryFindings(gpu),
    ...throttle(conditions.ThermalSlowdown, values.isThrottledByHeat, 'HardwareThermalSlowdown', 'NotThrottled', 'hw_thermal_slowdown'),
    ...throttle(conditions.PowerBrake, values.isThrottledByPowerBrake, 'HardwarePowerBrake', 'NotThrottled', 'hw_power_brake_slowdown'),
    ...slowdown(values),
    ...temperature(values),
    ...asOf(fabric(registration), times?.get('fabric')),
    ...asOf(links(gpu, all), times?.get('links')),
    ...asOf(peers(gpu), times?.get('peers')),
    ...asOf(linkWidth(values), times?.get('pcieLanes')),
  ];
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

function lost(gpu: GpuSample): readonly Finding[] {
  const message = failureOf(gpu, 'lost');
  if (message !== undefined) return [raise(conditions.GpuLost, 'GpuIsLost', { status: true, message })];
  if (answers(gpu))
    return [conditions.GpuLost, conditions.NotInitialized].map((condition) =>
      raise(condition, 'Answers', { status: false, message: 'the GPU answers' }),
    );
  const failed = failureOf(gpu, 'error', 'reset-required');
  return failed === undefined ? [] : [raise(conditions.GpuLost, 'ValuesUnreadable', { status: 'unknown', message: failed })];
}

function recovery(gpu: GpuSample): readonly Finding[] {
  if (gpu.recovery === undefined) return needsReset(gpu);
  const { word, action } = gpu.recovery;
  if (action === undefined) return [];
  if (!('need' in action)) return [raise(conditions.RecoveryAction, 'None', { status: false, message: 'the driver asks for nothing' })];
  const { reason, severity, remedy } = action.need;
  return [raise(conditions.RecoveryAction, reason, { status: true, message: `the driver asks for: ${word}`, severity, remedy })];
}

/** Drivers without a recovery action print the need for a reset in place of values. Readable values end only this instance. */
function needsReset(gpu: GpuSample): readonly Finding[] {
  if (gpu.unread?.some(({ value }) => value === 'recovery') === true) return [];
  const instance = 'values';
  const message = failureOf(gpu, 'reset-required');
  if (message !== undefined) return [raise(conditions.RecoveryAction, 'GpuReset', { instance, status: true, message })];
  if (!answers(gpu)) return [];
  return [raise(conditions.RecoveryAction, 'None', { instance, status: false, message: 'values are reported, and no reset is requested' })];
}

function throttle<C extends ConditionSpec>(
  condition: C,
  status: boolean | undefined,
  yes: ReasonOf<C>,
  no: ReasonOf<C>,
  name: string,
): readonly Finding[] {
  return status === undefined
    ? []
    : [raise(condition, status ? yes : no, { status, message: `${name}: ${status ? 'active' : 'not active'}` })];
}

/** The clocks are halved, or worse. Heat and the power brake have conditions of their own. The driver names no other cause. */
function slowdown(values: Values): readonly Finding[] {
  const { isThrottledByHardware, isThrottledByHeat, isThrottledByPowerBrake, powerWatts, enforcedLimitWatts } = values;
  if (isThrottledByHardware === undefined) return [];
  const isTold = isThrottledByHeat === true || isThrottledByPowerBrake === true;
  if (!isThrottledByHardware || isTold) {
    const message = `hw_slowdown: ${isTold ? 'has its own condition' : 'not active'}`;
    return [raise(conditions.HardwareSlowdown, 'NotThrottled', { status: false, message })];
  }
  const isAlone = isThrottledByHeat === false && isThrottledByPowerBrake === false;
  const message = `hw_slowdown: active${isAlone ? ', without heat and power brake' : ''}`;
  if (powerWatts !== undefined && enforcedLimitWatts !== undefined && powerWatts > enforcedLimitWatts)
    return [
      raise(conditions.HardwareSlowdown, 'AbovePowerLimit', {
        status: true,
        message: `${message}, above its power limit`,
        remedy: 'check-power',
      }),
    ];
  const [hot] = temperature(values);
  if (hot !== undefined && 'status' in hot && hot.status === true)
    return [
      raise(conditions.HardwareSlowdown, 'AtSlowdownTemperature', {
        status: true,
        message: `${message}, ${hot.message}`,
        remedy: 'check-cooling',
      }),
    ];
  return [raise(conditions.HardwareSlowdown, 'UnknownCause', { status: true, message })];
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
  return raise(conditions.OverTemperature, status ? 'AtSlowdownTemperature' : 'BelowLimit', { status, message: status ? at : below });
}

function fabric({ state, status = '', hasFailed, health, faults }: FabricSample): readonly Finding[] {
  const findings: Finding[] = [];
  if (state !== undefined) findings.push(fabricState(state, status, hasFailed === true));
  return [...findings, ...fabricHealth(health, faults)];
}

const OF_HEALTH = {
  healthy: { reason: 'Healthy', severity: 'fatal' },
  unhealthy: { reason: 'Unhealthy', severity: 'fatal' },
  limited_capacity: { reason: 'LimitedCapacity', severity: 'degraded' },
} as const;

/** The summary decides; without one, as from driver 550, the mask does. The mask names the cause, and what helps. */
function fabricHealth(health: FabricSample['health'], faults: FabricSample['faults']): readonly Finding[] {
  const [worst] = faults ?? [];
  if (health === undefined && faults === undefined) return [];
  const status = health === undefined ? worst !== undefined : health !== 'healthy';
  const told = status && worst !== undefined ? faults : undefined;
  const shown = `fabric health: ${health ?? (status ? 'faulty' : 'healthy')}`;
  const message = told === undefined ? shown : `${shown}, ${told.map(({ meaning }) => meaning).join(', ')}`;
  const { reason, severity } = OF_HEALTH[health ?? 'healthy'];
  if (told === undefined || worst === undefined) return [raise(conditions.FabricUnhealthy, reason, { status, message, severity })];
  const more = { severity: health === undefined ? worst.severity : severity, remedy: worst.remedy };
  return [raise(conditions.FabricUnhealthy, worst.reason, { status, message, ...more })];
}

function fabricState(state: FabricState, status: string, hasFailed: boolean): Finding {
  const reasons = { not_started: 'NotStarted', in_progress: 'InProgress', completed: hasFailed ? 'RegistrationFailed' : 'Ready' } as const;
  const reason = reasons[state];
  const message = `fabric state: ${state}, status: ${status || 'none'}`;
  return raise(conditions.FabricNotReady, reason, { status: reason !== 'Ready', message });
}

/** While MIG is on, the driver takes the links down. */
const maySplit = ({ values = {}, unread = [] }: GpuSample): boolean =>
  values.isMigOn === true || unread.some(({ value }) => value === 'isMigOn');

/**
 * Each link is compared with its own earlier state: GPUs of small virtual machines and boards without a bridge have links that are never up.
 * When no link is left, one finding for all links replaces those of the links. A GPU that never had one is compared with the others.
 */
function links(gpu: GpuSample, all: readonly GpuSample[]): readonly Finding[] {
  const { links: read, isComplete } = gpu.linkStates ?? NO_LINK_STATES;
  if (maySplit(gpu) || read.length === 0) return [];
  const up = read.filter(({ isUp }) => isUp).length;
  const isUnlikeOthers = up === 0 && mustReachSwitch(gpu, all);
  const message = `${up} of ${read.length} NVLinks are up${isUnlikeOthers ? ', and most other GPUs of this model reach a switch' : ''}`;
  const judgement = { instance: 'all', message, level: up > 0, ...(isUnlikeOthers && { atLeast: true }), severity: 'fatal' } as const;
  const reason = isUnlikeOthers ? 'DownUnlikeOthers' : 'DownAfterUp';
  const whole = isComplete || up > 0 ? [raise(conditions.NvLinkDown, reason, judgement)] : [];
  return up === 0 ? whole : [...whole, ...errorRate(read), ...read.flatMap(link), ...(isComplete ? withoutErrors(read) : [])];
}

/** One finding for all links: when they fail, they mostly fail together. A link that is up and was not read may be one of them. */
function errorRate(read: readonly LinkState[]): readonly Finding[] {
  const up = read.filter(({ isUp }) => isUp);
  const intense = up.filter(({ errors }) => (errors?.perSecond ?? 0) >= INTENSE_PER_SECOND);
  if (intense.length === 0 && up.some(({ errors }) => errors?.perSecond === undefined)) return [];
  const names = intense.map(({ number }) => number).join(', ');
  const message =
    intense.length === 0
      ? 'no NVLink has many errors a second'
      : `${intense.length} of ${read.length} NVLinks have ${INTENSE_PER_SECOND} or more errors a second: ${names}`;
  return [raise(conditions.NvLinkErrorRate, intense.length === 0 ? 'FewErrors' : 'ManyErrors', { status: intense.length > 0, message })];
}

/** Boards with switches connect all their GPUs to them, so GPUs of one model are alike. A split GPU proves nothing: its links are down. */
function mustReachSwitch({ identity }: GpuSample, all: readonly GpuSample[]): boolean {
  const alike = all.filter((other) => other.identity?.name === identity?.name && other.linkStates !== undefined && !maySplit(other));
  const reaching = alike.filter(({ linkStates }) => linkStates?.links.some(({ isUp, end }) => isUp && end === SWITCH_END));
  // The GPU itself is one of those alike, and does not count.
  return identity?.name !== undefined && reaching.length * 2 > alike.length - 1;
}

/**
 * Most links have no errors at all, and get no finding on them. One finding for all of them ends the condition of a link whose counters were
 * set to 0 with the driver. A link whose errors were not read ends nothing.
 */
function withoutErrors(read: readonly LinkState[]): readonly Finding[] {
  if (read.some(({ errors }) => errors === undefined)) return [];
  const judgement = { status: false, message: 'the other NVLinks have no errors since the driver was loaded' };
  return [raise(conditions.NvLinkErrors, 'CounterGrows', judgement), raise(conditions.NvLinkRecoveries, 'CounterGrows', judgement)];
}

const NO_LINK_STATES: LinkStates = { links: [], isComplete: false };

function link({ number, isUp, end, errors }: LinkState): readonly Finding[] {
  const instance = `nvlink${number}`;
  const name = `${instance}${end === undefined ? '' : ` to ${end}`}`;
  const down = raise(conditions.NvLinkDown, 'DownAfterUp', { instance, message: `${name} is ${isUp ? 'up' : 'down'}`, level: isUp });
  if (errors === undefined) return [down];
  const kinds = errors.kinds.length === 0 ? '' : `, last of kind ${errors.kinds.join(', ')}`;
  return [
    down,
    ...raiseGrowth(conditions.NvLinkErrors, errors.minutes, `${name}: minutes with new errors${kinds}`, instance),
    ...raiseGrowth(conditions.NvLinkRecoveries, errors.recoveryMinutes, `${name}: minutes with a new recovery`, instance),
  ];
}

/** A peer is compared with its own earlier state, because boards without NVLink between them never had access. */
function peers(gpu: GpuSample): readonly Finding[] {
  return (gpu.peers ?? []).flatMap(({ pciAddress, hasAccess }) => {
    if (pciAddress === undefined || hasAccess === undefined || maySplit(gpu)) return [];
    const message = `the driver says that GPU ${pciAddress} is ${hasAccess ? '' : 'not '}reached over NVLink`;
    return [raise(conditions.NvLinkPeerLost, 'NoAccessAfterAccess', { instance: pciAddress, message, level: hasAccess })];
  });
}

/** A link is compared with its own highest width, because healthy boards in clouds run below their maximum. */
function linkWidth({ pcieLanes }: Values): readonly Finding[] {
  const lanes = Number(pcieLanes ?? 0);
  if (lanes === 0) return [];
  return [raise(conditions.PcieLinkDegraded, 'NarrowerThanBefore', { message: `PCIe link x${lanes}`, level: lanes, tellsHighest: true })];
}
