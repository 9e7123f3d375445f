import { pendingTrouble } from '../../model/condition-phase.ts';
import { seconds } from '../../model/duration.ts';
import { areTooFew, type ExpectedDevices, expectedText } from '../../model/expected.ts';
import type { ActiveCondition, HealthState, Verdict } from '../../model/health.ts';
import { conditionKey } from '../engine/memory.ts';
import { DEVICE_MISSING, DEVICE_NOT_READ } from '../policy/own-conditions.ts';

/** node-problem-detector cuts longer lines by default. */
export const LINE_BYTES = 80;

/** Result of a node-problem-detector plugin. Exit codes: 0 no problem, 1 problem, 2 unknown. `message`: one line. */
export interface NodeProblem {
  readonly exitCode: 0 | 1 | 2;
  readonly message: string;
}

/** The part of a condition that the engine and the API have in common. */
export interface JudgedCondition extends Pick<ActiveCondition, 'type' | 'instance' | 'severity' | 'message' | 'remedy'> {
  /** Present when the condition ended but still counts. */
  readonly recovering?: object;
}

export interface JudgedState {
  readonly key: string;
  /** A complete reading of its family no longer listed it. */
  readonly isMissing?: boolean;
  /** It was not read for longer than the stale age. */
  readonly isStale?: boolean;
  /** Wall clock since which it has its state. */
  readonly sinceMs?: number;
  readonly verdict: Pick<Verdict, 'state'> & {
    readonly conditions: readonly JudgedCondition[];
    readonly pending?: readonly JudgedCondition[];
    /** Present while a device that was returned to service has not proven itself. */
    readonly probation?: object | undefined;
  };
}

/**
 * Summarizes the devices for node-problem-detector. Only an unhealthy device is a problem, and a known problem outranks an unknown
 * state. The worst comes first, because the detector truncates the line. A family with fewer devices than expected is a problem too.
 */
export function nodeProblem(devices: readonly JudgedState[], expected: readonly ExpectedDevices[] = []): NodeProblem {
  const tooFew = expected.find(areTooFew);
  if (devices.length === 0) return tooFew === undefined ? { exitCode: 2, message: 'no device is known' } : missing(tooFew);
  const inState = (state: HealthState): readonly JudgedState[] => devices.filter((device) => device.verdict.state === state);
  const unhealthy = inState('unhealthy');
  if (unhealthy.length > 0) return { exitCode: 1, message: summary(unhealthy, 'unhealthy') };
  if (tooFew !== undefined) return missing(tooFew);
  const unknown = inState('unknown');
  if (unknown.length > 0) return { exitCode: 2, message: summary(unknown, 'unknown') };
  const unread = expected.find(({ present }) => present === undefined);
  if (unread !== undefined) return { exitCode: 2, message: expectedText(unread) };
  const degraded = inState('degraded');
  if (degraded.length > 0) return { exitCode: 0, message: summary(degraded, 'degraded') };
  return { exitCode: 0, message: `${devices.length} of ${devices.length} devices healthy${waiting(devices)}` };
}

/** Conditions of the node, as the shipped configuration of node-problem-detector names them, and the reason of its event. */
export const NODE_CONDITIONS = ['DevicesUnhealthy', 'DevicesUnknown', 'DevicesMissing'] as const;
export const NODE_EVENT = 'DeviceNotHealthy';
export type NodeQuestion = (typeof NODE_CONDITIONS)[number] | typeof NODE_EVENT;

/** A change of a device is an event for this time: the detector asks in an interval of half of it, and so misses none. */
const EVENT_MS = seconds(120);

/**
 * Tells whether one condition of the node holds. What was not read denies no condition. The event is there for two minutes after a device became
 * degraded, unhealthy or unknown, and its status is never 2, because the detector would make an event of that too.
 */
export function nodeCondition(
  question: NodeQuestion,
  devices: readonly JudgedState[],
  expected: readonly ExpectedDevices[],
  takenAtMs: number,
): NodeProblem {
  const tooFew = expected.find(areTooFew);
  const unread = expected.find(({ present }) => present === undefined);
  const inState = (state: HealthState): readonly JudgedState[] => devices.filter((device) => device.verdict.state === state);
  const [unhealthy, unknown] = [inState('unhealthy'), inState('unknown')];
  const holds = (isProblem: boolean, message: string): NodeProblem => ({ exitCode: isProblem ? 1 : 2, message });
  if (question === NODE_EVENT) {
    const changed = (['unhealthy', 'unknown', 'degraded'] as const)
      .map((state) => [state, inState(state).filter(({ sinceMs = 0 }) => takenAtMs - sinceMs < EVENT_MS)] as const)
      .find(([, found]) => found.length > 0);
    return changed === undefined ? { exitCode: 0, message: 'no device changed' } : holds(true, summary(changed[1], changed[0]));
  }
  const gone = devices.find(({ isMissing }) => isMissing);
  if (question === 'DevicesMissing' && tooFew !== undefined) return missing(tooFew);
  if (question === 'DevicesMissing' && gone !== undefined) return holds(true, `${gone.key} is missing`);
  if (devices.length === 0)
    return expected.length > 0 && expected.every((one) => one.expected === 0)
      ? { exitCode: 0, message: 'no device is expected' }
      : { exitCode: 2, message: 'no device is known' };
  if (question === 'DevicesUnhealthy' && unhealthy.length > 0) return holds(true, summary(unhealthy, 'unhealthy'));
  if (unread !== undefined) return holds(question === 'DevicesUnknown', expectedText(unread));
  const unseen = question === 'DevicesMissing' ? devices.filter(({ isStale }) => isStale) : unknown;
  if (unseen.length > 0) return holds(question === 'DevicesUnknown', summary(unseen, 'unknown'));
  return { exitCode: 0, message: `none of ${devices.length} devices` };
}

const missing = (tooFew: ExpectedDevices): NodeProblem => ({ exitCode: 1, message: expectedText(tooFew) });

function summary(devices: readonly JudgedState[], state: HealthState): string {
  const [first] = devices as readonly [JudgedState];
  const { conditions } = first.verdict;
  // A degraded condition does not explain an unknown state.
  const why = conditions.find(({ type, severity }) => severity === 'fatal' || type === DEVICE_MISSING || type === DEVICE_NOT_READ);
  const condition = state === 'unknown' ? why : conditions[0];
  const what = condition === undefined ? state : `${state}, ${describe(condition)}`;
  // The count comes first, because readers cut the end of the line.
  return `${devices.length > 1 ? `${devices.length} ${state}, first: ` : ''}${first.key} ${what}`;
}

/** Text for pending conditions, so that a device with one is not reported as plainly healthy. */
function waiting(devices: readonly JudgedState[]): string {
  const pending = devices.flatMap(({ key, verdict }) => pendingTrouble(verdict).map((condition) => `${key} ${conditionKey(condition)}`));
  const onProbation = devices.filter(({ verdict }) => verdict.probation !== undefined).map(({ key }) => key);
  // The name of a device can be so long that the line ends with it.
  return `${listed('', pending, ' pending')}${listed('on probation: ', onProbation)}`;
}

function listed(before: string, [first, ...more]: readonly string[], after = ''): string {
  return first === undefined ? '' : `, ${before}${first}${after}${more.length > 0 ? ` (and ${more.length} more)` : ''}`;
}

/** A recovering condition has no remedy, and its message describes the past. */
function describe(condition: JudgedCondition): string {
  const { message, remedy, recovering } = condition;
  if (recovering !== undefined) return `${conditionKey(condition)} recovering, it was '${message}'`;
  return `${conditionKey(condition)}: ${message}${remedy === 'none' ? '' : `; ${remedy}`}`;
}
