import { hours, minutes, seconds } from '../../model/duration.ts';
import type { ConditionSpec, Finding, Severity, StatusFinding } from '../../model/health.ts';
import { declaredFinding, growthCondition, type ReasonOf, raiseGrowth } from '../kit/finding.ts';
import { type MonitorSample, readingOf } from '../kit/hwmon.ts';
import { pcieConditions } from '../kit/pcie/health.ts';
import { COMPOSITE, metrics } from './metrics.ts';
import { hasWarning, type SmartLog, WARNING_BITS } from './smart-log.ts';
import type { SmartResult } from './smart-reader.ts';

const STATE = '/sys/class/nvme/<controller>/state';
const SMART = 'NVM Express Base Specification, SMART log';

/** A condition that one bit of the critical warning reports. */
const warned = <T extends string>(type: T, severity: Severity, bit: number, meaning: string) =>
  ({
    type,
    class: 'latched',
    severity,
    reasons: ['Warning', 'NoWarning', 'Unreadable'],
    meaning,
    remedy: 'replace',
    source: `${SMART}: critical warning, bit ${bit}`,
  }) as const;

export const conditions = {
  ControllerDead: {
    type: 'ControllerDead',
    class: 'latched',
    severity: 'fatal',
    reasons: ['Dead', 'NotDead', 'Unreadable'],
    meaning: 'The kernel gave the controller up. A namespace has the condition when all its controllers have it.',
    remedy: 'reset',
    source: `${STATE}: dead`,
  },
  ControllerNotLive: {
    type: 'ControllerNotLive',
    class: 'in-progress',
    severity: 'fatal',
    reasons: ['Resetting', 'Connecting', 'Deleting', 'New', 'Live', 'Dead', 'Unreadable'],
    meaning: 'A controller resets, connects or goes for longer than that takes. A namespace has the condition when no controller is live.',
    remedy: 'reset',
    source: `${STATE}: resetting, connecting, new, deleting`,
    forMs: seconds(60),
  },
  PathsInaccessible: {
    type: 'PathsInaccessible',
    class: 'in-progress',
    severity: 'fatal',
    reasons: ['NoPath', 'PathUsable'],
    meaning: 'Controllers are live, but none of them gives access to the namespace.',
    remedy: 'inspect',
    source: '/sys/class/nvme/<controller>/nvme<N>c<N>n<N>/ana_state',
    forMs: seconds(60),
  },
  PathsLost: {
    type: 'PathsLost',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['FewerPaths', 'PathUsable'],
    meaning: 'Fewer paths lead to the namespace than since the machine booted.',
    remedy: 'check-cable',
    source: `${STATE} and ana_state of each path`,
    forMs: seconds(60),
    recoveryMs: seconds(60),
  },
  NamespaceReadOnly: {
    type: 'NamespaceReadOnly',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['ReadOnly', 'Writable', 'Unreadable'],
    meaning: 'The kernel refuses writes to the namespace: by an order of an administrator, or because the drive does.',
    remedy: 'inspect',
    source: '/sys/block/<namespace>/ro',
  },
  OverTemperature: {
    type: 'OverTemperature',
    class: 'self-clearing',
    severity: 'degraded',
    reasons: ['Warning', 'AtCritical', 'BelowLimit', 'Unreadable'],
    meaning: 'The drive warns of its temperature, or its composite temperature is at the critical limit.',
    remedy: 'check-cooling',
    source: `hwmon temp1_alarm, temp1_input and temp1_crit; ${SMART}: critical warning, bit 1`,
    recoveryMs: minutes(2),
  },
  SpareLow: {
    type: 'SpareLow',
    class: 'latched',
    severity: 'degraded',
    reasons: ['BelowThreshold', 'Enough', 'Unreadable'],
    meaning: 'The spare capacity of the drive is below the threshold that its maker set.',
    remedy: 'replace',
    source: `${SMART}: critical warning, bit 0; available spare against its threshold`,
  },
  ReliabilityDegraded: warned(
    'ReliabilityDegraded',
    'fatal',
    2,
    'The drive says that it is no longer reliable, because of media errors or an internal error. Degraded while the log shows that it is only worn.',
  ),
  MediaReadOnly: warned('MediaReadOnly', 'fatal', 3, 'The drive put its media into read-only mode.'),
  BackupFailed: warned('BackupFailed', 'degraded', 4, 'The part that saves the volatile memory of the drive at a power loss failed.'),
  PersistentMemoryUnreliable: warned(
    'PersistentMemoryUnreliable',
    'degraded',
    5,
    'The persistent memory region of the drive became read-only or unreliable.',
  ),
  WornOut: {
    type: 'WornOut',
    class: 'latched',
    severity: 'degraded',
    reasons: ['LifeUsed', 'LifeLeft', 'Unreadable'],
    meaning: 'The drive used all of the life that its maker expects. It may still work.',
    remedy: 'replace',
    source: `${SMART}: percentage used, 100 or more`,
  },
  MediaErrors: growthCondition({
    type: 'MediaErrors',
    severity: 'degraded',
    meaning: 'The drive could not recover data from its media.',
    remedy: 'replace',
    source: `${SMART}: media and data integrity errors`,
    growth: 0,
    windowMs: hours(24),
  }),
} as const satisfies Readonly<Record<string, ConditionSpec>>;

type Type = keyof typeof conditions;
type Status = StatusFinding['status'];

const FATAL: ReadonlySet<string> = new Set(
  ([...Object.values(conditions), ...pcieConditions] as readonly ConditionSpec[])
    .filter(({ type, severity }) => severity === 'fatal' && !type.startsWith('Controller'))
    .map(({ type }) => type),
);
const OF_FUNCTION: ReadonlySet<string> = new Set(pcieConditions.map(({ type }) => type));

/**
 * Findings of controllers that also hold for a namespace: those that take a drive out of service. Several controllers belong to one drive,
 * so the worst log counts, and a PCI function that is lost costs only a path.
 */
export function inheritedFindings(controllers: readonly { readonly findings: readonly Finding[] }[]): readonly Finding[] {
  const all = controllers.flatMap(({ findings }) => findings).filter(({ type }) => FATAL.has(type));
  if (controllers.length === 1) return all;
  const worst = new Map<string, Finding>();
  for (const each of all) if (!OF_FUNCTION.has(each.type) && rank(each) > rank(worst.get(each.type))) worst.set(each.type, each);
  return [...worst.values()];
}

const rank = (finding: Finding | undefined): number =>
  finding === undefined ? 0 : finding.status === true ? 3 : finding.status === 'unknown' ? 2 : 1;

const finding = <T extends Type>(type: T, status: Status, reason: ReasonOf<(typeof conditions)[T]>, message: string): Finding =>
  declaredFinding(conditions[type], reason, { status, message });

/** Linux drivers/nvme/host/sysfs.c, `state`. */
export const STATES = ['new', 'live', 'resetting', 'connecting', 'deleting', 'deleting (no IO)', 'dead'] as const;
/** `unknown` when it could not be read. */
export type ControllerState = (typeof STATES)[number] | 'unknown';

const REASONS: Readonly<Partial<Record<ControllerState, ReasonOf<typeof conditions.ControllerNotLive>>>> = {
  resetting: 'Resetting',
  connecting: 'Connecting',
  deleting: 'Deleting',
  'deleting (no IO)': 'Deleting',
};

/** Of several controllers the best one counts, because the kernel uses it. */
export function stateFindings(states: readonly ControllerState[]): Finding[] {
  const told = states.length === 1 ? `the state is ${states[0]}` : `the states are ${states.join(', ')}`;
  if (states.includes('live'))
    return [finding('ControllerDead', false, 'NotDead', told), finding('ControllerNotLive', false, 'Live', told)];
  if (states.includes('unknown')) {
    const message = 'the state of the controller cannot be read';
    return [finding('ControllerDead', 'unknown', 'Unreadable', message), finding('ControllerNotLive', 'unknown', 'Unreadable', message)];
  }
  const waiting = states.find((state) => state !== 'dead');
  if (waiting === undefined) return [finding('ControllerDead', true, 'Dead', told), finding('ControllerNotLive', false, 'Dead', told)];
  return [finding('ControllerDead', false, 'NotDead', told), finding('ControllerNotLive', true, REASONS[waiting] ?? 'New', told)];
}

/** Number of paths to a namespace, and of those that can be used; absent when the state of one of them is unknown. */
export interface PathCounts {
  readonly all: number;
  readonly usable?: number;
}

/** While no controller is live, its own condition reports it. */
export function pathFindings(states: readonly ControllerState[], { all, usable }: PathCounts): Finding[] {
  if (usable === undefined) return [];
  const message = `${usable} of ${all} paths can be used`;
  const isShut = usable === 0 && states.includes('live');
  return [
    finding('PathsInaccessible', isShut, isShut ? 'NoPath' : 'PathUsable', message),
    declaredFinding(conditions.PathsLost, 'FewerPaths', { message, level: usable, tellsHighest: true }),
  ];
}

export function readOnly(isReadOnly: boolean | undefined): Finding {
  if (isReadOnly === undefined) return finding('NamespaceReadOnly', 'unknown', 'Unreadable', 'the file ro cannot be read');
  const message = isReadOnly ? 'the kernel refuses writes' : 'the kernel takes writes';
  return finding('NamespaceReadOnly', isReadOnly, isReadOnly ? 'ReadOnly' : 'Writable', message);
}

/** Temperatures of one drive by the kernel's monitor. */
export interface TemperatureSample extends MonitorSample {
  /** Bit of the drive's own critical warning; absent when it was not read. */
  readonly hasAlarm?: boolean;
}

/**
 * The kernel's monitor is read more often than the log, so it decides where it tells the warning. `isExpected`: the monitor exists, and
 * the drive is awake.
 */
export function overTemperature(sample: TemperatureSample | undefined, log: SmartLog | undefined, isExpected: boolean): Finding[] {
  const over = (status: Status, reason: ReasonOf<typeof conditions.OverTemperature>, message: string) => [
    finding('OverTemperature', status, reason, message),
  ];
  const warnings = log?.critical_warning;
  const bySmart = warnings === undefined ? undefined : hasWarning(warnings, WARNING_BITS.temperature);
  const hasWarned = sample?.hasAlarm ?? bySmart;
  const celsius = readingOf(sample, metrics.temperature, COMPOSITE);
  const critical = sample?.temperatures.find(({ sensor }) => sensor === COMPOSITE)?.critical;
  const text = celsius === undefined ? '' : ` at ${celsius} °C`;
  if (celsius !== undefined && critical !== undefined && celsius >= critical)
    return over(true, 'AtCritical', `the drive is${text}, critical at ${critical} °C`);
  if (hasWarned === true) return over(true, 'Warning', `the drive warns of its temperature${text}`);
  if (hasWarned === false) return over(false, 'BelowLimit', `the drive does not warn of its temperature${text}`);
  return isExpected ? over('unknown', 'Unreadable', 'the temperatures cannot be read') : [];
}

/** Conditions that one bit of the critical warning reports. */
const BY_BIT = [
  ['ReliabilityDegraded', 'reliability'],
  ['MediaReadOnly', 'read-only'],
  ['BackupFailed', 'volatile-backup'],
  ['PersistentMemoryUnreliable', 'persistent-memory'],
] as const;

export function smartFindings({ log, problem }: SmartResult): Finding[] {
  if (log === undefined) {
    return (['SpareLow', 'WornOut', ...BY_BIT.map(([type]) => type)] as const).map((type) =>
      finding(type, 'unknown', 'Unreadable', problem.message),
    );
  }
  const { critical_warning: warnings, media_errors: errors } = log;
  return [
    ...spare(log),
    ...wear(log),
    ...BY_BIT.map(([type, warning]) => {
      if (warnings === undefined) return finding(type, 'unknown', 'Unreadable', 'the log has no warnings');
      const isGiven = hasWarning(warnings, WARNING_BITS[warning]);
      const told = finding(
        type,
        isGiven,
        isGiven ? 'Warning' : 'NoWarning',
        `critical warning: 0x${warnings.toString(16).padStart(2, '0')}`,
      );
      const { message } = told;
      return type === 'ReliabilityDegraded' && isGiven && isOnlyWorn(log)
        ? { ...told, severity: 'degraded' as const, message: `${message}; the drive is worn, and has its spare and no media error` }
        : told;
    }),
    ...raiseGrowth(conditions.MediaErrors, errors, `media errors: ${errors}`),
  ];
}

/** Then the warning only repeats that the life that the maker warrants is over. */
const isOnlyWorn = ({ percent_used: used, avail_spare: left, spare_thresh: threshold, media_errors: errors }: SmartLog): boolean =>
  used !== undefined && used >= 100n && left !== undefined && threshold !== undefined && left > threshold && errors === 0n;

function spare({ critical_warning: warnings, avail_spare: left, spare_thresh: threshold }: SmartLog): Finding[] {
  const isWarned = warnings === undefined ? undefined : hasWarning(warnings, WARNING_BITS.spare);
  const isBelow = left === undefined || threshold === undefined ? undefined : left < threshold;
  const message =
    left === undefined ? 'the spare capacity is unknown' : `spare capacity: ${left} %, threshold: ${threshold ?? 'unknown'} %`;
  if (isWarned === true || isBelow === true) return [finding('SpareLow', true, 'BelowThreshold', message)];
  if (isWarned === undefined) return [finding('SpareLow', 'unknown', 'Unreadable', message)];
  return [finding('SpareLow', false, 'Enough', message)];
}

function wear({ percent_used: used }: SmartLog): Finding[] {
  if (used === undefined) return [finding('WornOut', 'unknown', 'Unreadable', 'the used life is unknown')];
  const isWorn = used >= 100n;
  return [finding('WornOut', isWorn, isWorn ? 'LifeUsed' : 'LifeLeft', `used life: ${used} %`)];
}
