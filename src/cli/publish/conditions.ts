import { areTooFew } from '../../model/expected.ts';
import { shortened } from '../../model/one-line.ts';
import { type AgentView, type FeedDevice, keyOf } from './view.ts';

export const CONDITION_TYPES = ['DevicesUnhealthy', 'DevicesUnknown', 'DevicesMissing'] as const;
export type ConditionType = (typeof CONDITION_TYPES)[number];

/** What a node condition says. Only a difference in these members is a change. */
export interface Said {
  readonly type: ConditionType;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** A condition in the status of a node. */
export interface NodeCondition extends Said {
  readonly lastTransitionTime?: string;
  readonly lastHeartbeatTime?: string;
}

/** A node has a few dozen conditions of 1 KiB at most in its status, which every client of nodes reads. */
const MESSAGE_BYTES = 512;

/** What the verdicts of the agent say about the node. It contains no reading and no time, so that it changes only with a verdict. */
export function conditionsOf(view: AgentView): readonly Said[] {
  return [unhealthy(view), unknown(view), missing(view)];
}

/** Nothing was heard from the agent for too long. */
export function agentAway(): readonly Said[] {
  const message = 'the agent of this node does not answer, so nothing is known of its devices';
  return CONDITION_TYPES.map((type) => ({ type, status: type === 'DevicesUnknown' ? 'True' : 'Unknown', reason: 'AgentAway', message }));
}

/** The publisher ends. A condition that it no longer maintains must not look like a verdict. */
export function stopped(types: readonly ConditionType[]): readonly Said[] {
  const message = 'the publisher of this node was stopped, so nothing is known of its devices';
  return types.map((type) => ({ type, status: 'Unknown', reason: 'PublisherStopped', message }));
}

function unhealthy(view: AgentView): Said {
  const found = view.feed.filter(({ state }) => state === 'UNHEALTHY');
  const type = 'DevicesUnhealthy';
  if (found.length > 0) return { type, status: 'True', reason: 'FatalCondition', message: listed('unhealthy', found, view) };
  if (view.feed.some(({ state }) => state === 'UNKNOWN'))
    return { type, status: 'Unknown', reason: 'DevicesNotRead', message: 'no device is known to be unhealthy, and some were not read' };
  return { type, status: 'False', reason: 'NoFatalCondition', message: 'no device has a fatal condition' };
}

function unknown(view: AgentView): Said {
  const found = view.feed.filter(({ state }) => state === 'UNKNOWN');
  const type = 'DevicesUnknown';
  if (found.length > 0) return { type, status: 'True', reason: 'DevicesNotRead', message: listed('unknown', found, view) };
  return { type, status: 'False', reason: 'AllRead', message: 'the state of each device is known' };
}

function missing({ feed, devices, expected }: AgentView): Said {
  const type = 'DevicesMissing';
  const absent = devices.filter((device) => device.missingSince !== undefined).map(keyOf);
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
  const byKey = new Map(devices.map((device) => [keyOf(device), device]));
  const texts = found.map((device) => {
    const key = keyOf(device);
    const worst = byKey.get(key)?.health.conditions[0];
    return worst === undefined ? key : `${key} ${conditionName(worst)} (${worst.remedy})`;
  });
  return shortened(
    `${found.length} of ${feed.length} devices ${found.length === 1 ? 'is' : 'are'} ${what}: ${texts.join(', ')}`,
    MESSAGE_BYTES,
  );
}

export const conditionName = ({ type, instance }: { readonly type: string; readonly instance?: string | undefined }): string =>
  instance === undefined ? type : `${type}/${instance}`;

/** Returns the conditions of this program in the status of a node. */
export function ownConditionsIn(node: unknown): readonly NodeCondition[] {
  const conditions = (node as { readonly status?: { readonly conditions?: unknown } } | undefined | null)?.status?.conditions;
  if (!Array.isArray(conditions)) return [];
  return conditions.filter((one: Partial<NodeCondition> | null) => CONDITION_TYPES.some((type) => type === one?.type));
}

const sameWords = (one: Said, other: Said): boolean =>
  one.status === other.status && one.reason === other.reason && one.message === other.message;

/** Whether the node has other conditions than wanted. Times are no difference. */
export function differ(present: readonly NodeCondition[], wanted: readonly Said[]): boolean {
  return (
    present.length !== wanted.length ||
    wanted.some((said) => {
      const found = present.find(({ type }) => type === said.type);
      return found === undefined || !sameWords(found, said);
    })
  );
}

/** Adds the times. The time of the transition changes only with the status. */
export function withTimes(wanted: readonly Said[], present: readonly NodeCondition[], nowMs: number): readonly NodeCondition[] {
  const now = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  return wanted.map((said) => {
    const before = present.find(({ type }) => type === said.type);
    const lastTransitionTime = before?.status === said.status ? (before.lastTransitionTime ?? now) : now;
    return { ...said, lastHeartbeatTime: now, lastTransitionTime };
  });
}
