import type { ConditionSpec, Finding, StatusFinding } from '../../model/health.ts';
import { type ReasonOf, raise, raiseGrowth } from '../kit/finding.ts';
import { readingOf } from '../kit/hwmon.ts';
import { asOf } from '../kit/pace.ts';
import { pcieConditions, pcieFindings } from '../kit/pcie/health.ts';
import { conditions } from './conditions.ts';
import type { ControllerSample, ControllerState } from './controller.ts';
import { metrics } from './metrics.ts';
import type { NamespaceSample } from './namespace.ts';
import type { PathCounts } from './readings.ts';
import { hasWarning, type SmartLog, WARNING_BITS } from './smart-log.ts';
import type { SmartResult } from './smart-reader.ts';
import { COMPOSITE } from './temperatures.ts';

type Type = keyof typeof conditions;
type Status = StatusFinding['status'];

/** Findings of one sample of a controller. */
export function controllerFindings(sample: ControllerSample): readonly Finding[] {
  return [
    ...stateFindings([sample.state ?? 'unknown']),
    ...asOf(overTemperature(sample), sample.temperatures === undefined ? sample.smartMs : sample.temperaturesMs),
    ...(sample.smart === undefined ? [] : asOf(smartFindings(sample.smart), sample.smartMs)),
    ...(sample.pcie === undefined ? [] : pcieFindings(sample.pcie)),
  ];
}

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
export function inheritedFindings(controllers: readonly ControllerSample[]): readonly Finding[] {
  const all = controllers.flatMap(controllerFindings).filter(({ type }) => FATAL.has(type));
  if (controllers.length === 1) return all;
  const worst = new Map<string, Finding>();
  for (const each of all) if (!OF_FUNCTION.has(each.type) && rank(each) > rank(worst.get(each.type))) worst.set(each.type, each);
  return [...worst.values()];
}

const rank = (finding: Finding | undefined): number =>
  finding === undefined ? 0 : finding.status === true ? 3 : finding.status === 'unknown' ? 2 : 1;

/** Findings of one sample of a namespace. `states`: of the controllers of its paths. `counts` is absent without multipath. */
export function namespaceFindings(
  sample: NamespaceSample,
  states: readonly (ControllerState | 'unknown')[],
  counts?: PathCounts,
): readonly Finding[] {
  return [...stateFindings(states), ...(counts === undefined ? [] : pathFindings(states, counts)), ...readOnly(sample)];
}

const finding = <T extends Type>(type: T, status: Status, reason: ReasonOf<(typeof conditions)[T]>, message: string): Finding =>
  raise(conditions[type], reason, { status, message });

const REASONS: Readonly<Partial<Record<ControllerState, ReasonOf<typeof conditions.ControllerNotLive>>>> = {
  resetting: 'Resetting',
  connecting: 'Connecting',
  deleting: 'Deleting',
  'deleting (no IO)': 'Deleting',
};

/** Of several controllers the best one counts, because the kernel uses it. */
function stateFindings(states: readonly (ControllerState | 'unknown')[]): Finding[] {
  const told = states.length === 1 ? `the state is ${states[0]}` : `the states are ${states.join(', ')}`;
  if (states.includes('live'))
    return [finding('ControllerDead', false, 'NotDead', told), finding('ControllerNotLive', false, 'Live', told)];
  if (states.includes('unknown')) {
    const message = 'the state of the controller cannot be read';
    return [finding('ControllerDead', 'unknown', 'Unreadable', message), finding('ControllerNotLive', 'unknown', 'Unreadable', message)];
  }
  const waiting = states.find((state) => state !== 'dead') as ControllerState | undefined;
  if (waiting === undefined) return [finding('ControllerDead', true, 'Dead', told), finding('ControllerNotLive', false, 'Dead', told)];
  return [finding('ControllerDead', false, 'NotDead', told), finding('ControllerNotLive', true, REASONS[waiting] ?? 'New', told)];
}

/** While no controller is live, its own condition tells it. */
function pathFindings(states: readonly (ControllerState | 'unknown')[], { paths, usable }: PathCounts): Finding[] {
  if (usable === undefined) return [];
  const message = `${usable} of ${paths} paths can be used`;
  const isShut = usable === 0 && states.includes('live');
  return [
    finding('PathsInaccessible', isShut, isShut ? 'NoPath' : 'PathUsable', message),
    raise(conditions.PathsLost, 'FewerPaths', { message, level: usable, tellsHighest: true }),
  ];
}

function readOnly({ isReadOnly }: NamespaceSample): Finding[] {
  if (isReadOnly === undefined) return [finding('NamespaceReadOnly', 'unknown', 'Unreadable', 'the file ro cannot be read')];
  const message = isReadOnly ? 'the kernel refuses writes' : 'the kernel takes writes';
  return [finding('NamespaceReadOnly', isReadOnly, isReadOnly ? 'ReadOnly' : 'Writable', message)];
}

/** The kernel's monitor is read more often than the log, so it decides where it tells the warning. */
function overTemperature({ temperatures, areTemperaturesUnknown, smart }: ControllerSample): Finding[] {
  const warnings = smart?.log?.critical_warning;
  const bySmart = warnings === undefined ? undefined : hasWarning(warnings, WARNING_BITS.temperature);
  const hasWarned = temperatures?.hasAlarm ?? bySmart;
  const celsius = readingOf(temperatures, metrics.temperature, COMPOSITE);
  const critical = temperatures?.temperatures.find(({ sensor }) => sensor === COMPOSITE)?.critical;
  const isAtLimit = celsius === undefined || critical === undefined ? undefined : celsius >= critical;
  const text = celsius === undefined ? '' : ` at ${celsius} °C`;
  if (isAtLimit === true) return [finding('OverTemperature', true, 'AtCritical', `the drive is${text}, critical at ${critical} °C`)];
  if (hasWarned === true) return [finding('OverTemperature', true, 'Warning', `the drive warns of its temperature${text}`)];
  if (hasWarned === false) return [finding('OverTemperature', false, 'BelowLimit', `the drive does not warn of its temperature${text}`)];
  return areTemperaturesUnknown ? [finding('OverTemperature', 'unknown', 'Unreadable', 'the temperatures cannot be read')] : [];
}

/** Conditions that one bit of the critical warning tells. */
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
      return finding(type, isGiven, isGiven ? 'Warning' : 'NoWarning', `critical warning: 0x${warnings.toString(16).padStart(2, '0')}`);
    }),
    ...raiseGrowth(conditions.MediaErrors, errors, `media errors: ${errors}`),
  ];
}

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
