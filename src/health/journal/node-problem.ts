import { pendingTrouble } from '../../model/condition-phase.ts';
import { areTooFew, type ExpectedDevices, expectedText } from '../../model/expected.ts';
import type { ActiveCondition, HealthState, Verdict } from '../../model/health.ts';
import { DEVICE_MISSING, DEVICE_NOT_READ } from '../policy/own-conditions.ts';

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
  readonly verdict: Pick<Verdict, 'state'> & {
    readonly conditions: readonly JudgedCondition[];
    readonly pending?: readonly JudgedCondition[];
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
  const found = devices.flatMap(({ key, verdict }) => pendingTrouble(verdict).map((condition) => `${key} ${nameOf(condition)}`));
  const [first] = found;
  return first === undefined ? '' : `, ${first} pending${found.length > 1 ? ` (and ${found.length - 1} more)` : ''}`;
}

/** A recovering condition has no remedy, and its message describes the past. */
function describe(condition: JudgedCondition): string {
  const { message, remedy, recovering } = condition;
  if (recovering !== undefined) return `${nameOf(condition)} recovering, it was '${message}'`;
  return `${nameOf(condition)}: ${message}${remedy === 'none' ? '' : `; ${remedy}`}`;
}

function nameOf({ type, instance }: JudgedCondition): string {
  return instance === undefined ? type : `${type}/${instance}`;
}
