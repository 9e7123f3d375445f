import { conditionName } from '../../model/condition-text.ts';
import { type NodeConditionType as ConditionType, type DeviceAnswer, NODE_CONDITIONS, nodeAnswer } from '../../model/known-well.ts';
import { shortened } from '../../model/one-line.ts';
import { type AgentView, nodeViewOf } from './view.ts';

export type { ConditionType };

/** Content of a node condition. Only a difference in these members is a change. */
export interface ConditionContent {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** A condition in the status of a node. */
export interface NodeCondition extends ConditionContent {
  readonly lastTransitionTime?: string;
  readonly lastHeartbeatTime?: string;
}

/** A node has a few dozen conditions of 1 KiB at most in its status, which every client of nodes reads. */
const MESSAGE_BYTES = 512;

/** Returns the conditions that follow from the verdicts. They contain no reading and no time, so that they change only with a verdict. */
export function conditionsOf(view: AgentView): readonly ConditionContent[] {
  const seen = nodeViewOf(view);
  return NODE_CONDITIONS.map((type) => {
    const { status, reason, text, found } = nodeAnswer(type, seen);
    return { type, status, reason, message: shortened(found === undefined ? text : listed(found.of, found.devices, view), MESSAGE_BYTES) };
  });
}

/** Nothing was heard from the agent for too long. */
export function agentAway(): readonly ConditionContent[] {
  const message = 'the agent of this node does not answer, so nothing is known of its devices';
  return NODE_CONDITIONS.map((type) => ({ type, status: type === 'DevicesUnknown' ? 'True' : 'Unknown', reason: 'AgentAway', message }));
}

/** The publisher ends. A condition that it no longer maintains must not look like a verdict. */
export function stopped(types: readonly ConditionType[]): readonly ConditionContent[] {
  const message = 'the publisher of this node was stopped, so nothing is known of its devices';
  return types.map((type) => ({ type, status: 'Unknown', reason: 'PublisherStopped', message }));
}

/** Devices with their worst condition and its remedy. The text of a condition is left out: it can name processes of tenants. */
function listed(what: string, found: readonly DeviceAnswer[], { feed, board }: AgentView): string {
  const byKey = new Map(board.devices.map((device) => [device.key, device]));
  const texts = found.map(({ key }) => {
    const worst = byKey.get(key)?.health.conditions[0];
    return worst === undefined ? key : `${key} ${conditionName(worst)} (${worst.remedy})`;
  });
  return `${found.length} of ${feed.length} devices ${found.length === 1 ? 'is' : 'are'} ${what}: ${texts.join(', ')}`;
}

/**
 * Types of conditions by which others say that they work on a node: the lifecycle conditions of KEP-5683, with or without a domain before
 * them. What fails there meanwhile is expected.
 */
const WORK_IN_PROGRESS = /^(?:[a-z0-9.-]+\/)?(?:Maintenance|Drain)InProgress$/;

/** Whether somebody works on the node: a drain or a maintenance is in progress. */
export function isWorkedOn(node: unknown): boolean {
  return conditionsIn(node).some(({ type = '', status }) => WORK_IN_PROGRESS.test(type) && status === 'True');
}

/** Returns the conditions of this program in the status of a node. */
export function ownConditionsIn(node: unknown): readonly NodeCondition[] {
  return conditionsIn(node).filter((one): one is NodeCondition => NODE_CONDITIONS.some((type) => type === one.type));
}

type AnyCondition = Partial<Omit<NodeCondition, 'type'>> & { readonly type?: string };

function conditionsIn(node: unknown): readonly AnyCondition[] {
  const conditions = (node as { readonly status?: { readonly conditions?: unknown } } | undefined | null)?.status?.conditions;
  if (!Array.isArray(conditions)) return [];
  return conditions.filter((one: AnyCondition | null) => typeof one?.type === 'string');
}

const sameContent = (one: ConditionContent, other: ConditionContent): boolean =>
  one.status === other.status && one.reason === other.reason && one.message === other.message;

/** Whether the node has other conditions than wanted. Times are no difference. */
export function differ(present: readonly NodeCondition[], wanted: readonly ConditionContent[]): boolean {
  return (
    present.length !== wanted.length ||
    wanted.some((content) => {
      const found = present.find(({ type }) => type === content.type);
      return found === undefined || !sameContent(found, content);
    })
  );
}

/** Adds the times. The time of the transition changes only with the status. */
export function withTimes(wanted: readonly ConditionContent[], present: readonly NodeCondition[], nowMs: number): readonly NodeCondition[] {
  const now = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  return wanted.map((content) => {
    const before = present.find(({ type }) => type === content.type);
    const lastTransitionTime = before?.status === content.status ? (before.lastTransitionTime ?? now) : now;
    return { ...content, lastHeartbeatTime: now, lastTransitionTime };
  });
}
