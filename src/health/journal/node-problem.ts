import { conditionLine, nameWithPhase, type PhasedCondition } from '../../model/condition-text.ts';
import { seconds } from '../../model/duration.ts';
import type { HealthState, Severity } from '../../model/health.ts';
import { pendingTrouble } from '../../model/health.ts';
import { type DeviceAnswer, type NodeConditionType, type NodeView, nodeAnswer, nodeDoubt } from '../../model/known-well.ts';
import { DEVICE_MISSING, DEVICE_NOT_READ } from '../policy/own-conditions.ts';

/** node-problem-detector cuts longer lines by default. */
export const LINE_BYTES = 80;

/** Result of a node-problem-detector plugin. Exit codes: 0 no problem, 1 problem, 2 unknown. `message`: one line. */
export interface NodeProblem {
  readonly exitCode: 0 | 1 | 2;
  readonly message: string;
}

interface JudgedCondition extends PhasedCondition {
  readonly severity: Severity;
}

export interface JudgedState extends DeviceAnswer {
  readonly health: {
    readonly state: HealthState;
    /** Time since which it has the state. */
    readonly since?: string;
    readonly conditions: readonly JudgedCondition[];
    readonly pending?: readonly JudgedCondition[];
  };
}

/**
 * Summarizes the devices for node-problem-detector. Only an unhealthy device is a problem, and a known problem outranks an unknown
 * state. The worst comes first, because the detector truncates the line. A family with fewer devices than expected is a problem too.
 */
export function nodeProblem(view: NodeView<JudgedState>): NodeProblem {
  const { devices } = view;
  const inState = (state: HealthState): readonly JudgedState[] => devices.filter((device) => device.health.state === state);
  const [unhealthy, unknown, doubt] = [inState('unhealthy'), inState('unknown'), nodeDoubt(view)];
  if (unhealthy.length > 0) return { exitCode: 1, message: summary(unhealthy, 'unhealthy') };
  if (doubt?.status === 'True') return { exitCode: 1, message: doubt.text };
  if (unknown.length > 0) return { exitCode: 2, message: summary(unknown, 'unknown') };
  if (doubt !== undefined) return { exitCode: 2, message: doubt.text };
  const degraded = inState('degraded');
  if (degraded.length > 0) return { exitCode: 0, message: summary(degraded, 'degraded') };
  return { exitCode: 0, message: `${devices.length} of ${devices.length} devices healthy${waiting(devices)}` };
}

/** Reason of the event, as the shipped configuration of node-problem-detector names it. */
export const NODE_EVENT = 'DeviceNotHealthy';
export type NodeQuestion = NodeConditionType | typeof NODE_EVENT;

/** A change of a device is an event for this time: the detector asks in an interval of half of it, and so misses none. */
const EVENT_MS = seconds(120);

const EXIT_CODES = { True: 1, False: 0, Unknown: 2 } as const;

/**
 * Says whether one condition of the node holds. What was not read denies no condition. The event is there for two minutes after a device became
 * degraded, unhealthy or unknown, and its status is never 2, because the detector would make an event of that too.
 */
export function nodeCondition(question: NodeQuestion, view: NodeView<JudgedState>, takenAtMs: number): NodeProblem {
  if (question === NODE_EVENT) {
    const changed = (['unhealthy', 'unknown', 'degraded'] as const)
      .map((state) => {
        const isChanged = ({ health }: JudgedState): boolean =>
          health.state === state && takenAtMs - Date.parse(health.since ?? '') < EVENT_MS;
        return [state, view.devices.filter(isChanged)] as const;
      })
      .find(([, found]) => found.length > 0);
    return changed === undefined
      ? { exitCode: 0, message: 'no device changed' }
      : { exitCode: 1, message: summary(changed[1], changed[0]) };
  }
  const { status, text, found } = nodeAnswer(question, view);
  return { exitCode: EXIT_CODES[status], message: found === undefined ? text : summary(found.devices, found.of) };
}

function summary(devices: readonly JudgedState[], state: HealthState): string {
  const [first] = devices as readonly [JudgedState];
  const { conditions } = first.health;
  // A degraded condition does not explain an unknown state.
  const why = conditions.find(({ type, severity }) => severity === 'fatal' || type === DEVICE_MISSING || type === DEVICE_NOT_READ);
  const condition = state === 'unknown' ? why : conditions[0];
  const what = condition === undefined ? state : `${state}, ${conditionLine(condition)}`;
  // The count comes first, because readers cut the end of the line.
  return `${devices.length > 1 ? `${devices.length} ${state}, first: ` : ''}${first.key} ${what}`;
}

/** Text for pending conditions, so that a device with one is not reported as plainly healthy. */
function waiting(devices: readonly JudgedState[]): string {
  const [first, ...more] = devices.flatMap(({ key, health }) => pendingTrouble(health).map((one) => `${key} ${nameWithPhase(one)}`));
  return first === undefined ? '' : `, ${first}${more.length > 0 ? ` (and ${more.length} more)` : ''}`;
}
