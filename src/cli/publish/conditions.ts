import { conditionKey } from '../../health/engine/memory.ts';
import { NODE_CONDITIONS } from '../../health/journal/node-problem.ts';
import { deviceKey } from '../../model/device.ts';
import { areTooFew } from '../../model/expected.ts';
import { shortened } from '../../model/one-line.ts';
import type { AgentView, FeedDevice } from './view.ts';

export type ConditionType = (typeof NODE_CONDITIONS)[number];

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
  return [unhealthy(view), unknown(view), missing(view)];
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

function unhealthy(view: AgentView): ConditionContent {
  const found = view.feed.filter(({ state }) => state === 'UNHEALTHY');
  const type = 'DevicesUnhealthy';
  if (found.length > 0) return { type, status: 'True', reason: 'FatalCondition', message: listed('unhealthy', found, view) };
  if (view.feed.some(({ state }) => state === 'UNKNOWN'))
    return { type, status: 'Unknown', reason: 'DevicesNotRead', message: 'no device is known to be unhealthy, and some were not read' };
  return { type, status: 'False', reason: 'NoFatalCondition', message: 'no device has a fatal condition' };
}

function unknown(view: AgentView): ConditionContent {
  const found = view.feed.filter(({ state }) => state === 'UNKNOWN');
  const type = 'DevicesUnknown';
  if (found.length > 0) return { type, status: 'True', reason: 'DevicesNotRead', message: listed('unknown', found, view) };
  return { type, status: 'False', reason: 'AllRead', message: 'the state of each device is known' };
}

function missing({ feed, devices, expected }: AgentView): ConditionContent {
  const type = 'DevicesMissing';
  const absent = devices.filter((device) => device.missingSince !== undefined).map(deviceKey);
  const short = expected.filter(areTooFew).map((one) => `${one.present} of ${one.expected} expected ${one.family} devices`);
  const parts = [...absent, ...short];
  if (parts.length > 0)
    return { type, status: 'True', reason: 'DevicesAbsent', message: shortened(`missing: ${parts.join(', ')}`, MESSAGE_BYTES) };
  const uncounted = expected.filter(({ present }) => present === undefined).map(({ family }) => family);
  if (uncounted.length > 0)
    return { type, status: 'Unknown', reason: 'DevicesNotCounted', message: `not counted yet: ${uncounted.join(', ')}` };
  // A device that is unknown to a feed without fault was listed; one that the agent cannot judge at all may be gone.
  if (feed.length > 0 && feed.every(({ state }) => state === 'UNKNOWN'))
    return { type, status: 'Unknown', reason: 'DevicesNotRead', message: 'no device could be read' };
  return { type, status: 'False', reason: 'AllPresent', message: 'no known or expected device is missing' };
}

/** Devices with their worst condition and its remedy. The text of a condition is left out: it can name processes of tenants. */
function listed(what: string, found: readonly FeedDevice[], { feed, devices }: AgentView): string {
  const byKey = new Map(devices.map((device) => [deviceKey(device), device]));
  const texts = found.map((device) => {
    const key = deviceKey(device);
    const worst = byKey.get(key)?.health.conditions[0];
    return worst === undefined ? key : `${key} ${conditionKey(worst)} (${worst.remedy})`;
  });
  return shortened(
    `${found.length} of ${feed.length} devices ${found.length === 1 ? 'is' : 'are'} ${what}: ${texts.join(', ')}`,
    MESSAGE_BYTES,
  );
}

/** Returns the conditions of this program in the status of a node. */
export function ownConditionsIn(node: unknown): readonly NodeCondition[] {
  const conditions = (node as { readonly status?: { readonly conditions?: unknown } } | undefined | null)?.status?.conditions;
  if (!Array.isArray(conditions)) return [];
  return conditions.filter((one: Partial<NodeCondition> | null) => NODE_CONDITIONS.some((type) => type === one?.type));
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
