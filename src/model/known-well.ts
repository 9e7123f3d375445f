import { areTooFew, type ExpectedDevices, expectedText } from './expected.ts';
import { type FamilyReading, unreadText } from './family-reading.ts';
import type { HealthState } from './health.ts';

/**
 * The one rule: nothing is called well, and nothing that says ill is removed, unless the family was read completely since the boot and
 * the device is listed as healthy. All that speaks for a whole node asks here: pages, `top`, `publish`, `health`, node-problem-detector and
 * readiness.
 */
export interface NodeView<D extends DeviceAnswer> {
  readonly devices: readonly D[];
  /** Undefined when the agent does not tell it; nothing is then known to be well. */
  readonly families: readonly FamilyReading[] | undefined;
  /** Absent when the configuration expects no number of devices. */
  readonly expected?: readonly ExpectedDevices[];
  /** Why the agent does not do its work: what it lists is old, and nothing is known to be well. Absent while it works. */
  readonly fault?: string;
}

/** A device that the agent lists, in the form of its answers. */
export interface DeviceAnswer {
  /** `family/id`. */
  readonly key: string;
  readonly health: { readonly state: HealthState };
  /** Since when complete readings of its family no longer list it. */
  readonly missingSince?: string;
  /** It was not read for longer than the stale age. */
  readonly stale?: boolean;
}

/** Conditions of the node, as the shipped configuration of node-problem-detector names them. */
export const NODE_CONDITIONS = ['DevicesUnhealthy', 'DevicesUnknown', 'DevicesMissing'] as const;
export type NodeConditionType = (typeof NODE_CONDITIONS)[number];

/** What is true of one condition of the node. */
export interface NodeAnswer<D extends DeviceAnswer> {
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  /** Names devices and families only, and has no text of a condition: such a text can name a process of a tenant. */
  readonly text: string;
  /** The devices that the answer is about, all in the state `of`; absent when it is about no listed device. */
  readonly found?: { readonly devices: readonly D[]; readonly of: 'unhealthy' | 'unknown' };
}

/** Families that may have devices that nobody has seen since the boot. */
export function unreadFamilies(families: readonly FamilyReading[] | undefined): readonly FamilyReading[] {
  return families?.filter(({ complete }) => !complete) ?? [{ family: 'all families', complete: false, problem: 'not-told' }];
}

/** Keys of the devices that were out of service when they were last listed, and that were not listed since. */
export function unreturnedDevices(families: readonly FamilyReading[] | undefined): readonly string[] {
  return (families ?? []).flatMap(({ family, unreturned = [] }) => unreturned.map((id) => `${family}/${id}`));
}

/** Whether a device may be called well, so that what says that it is ill can be removed. */
export function isKnownWell(
  { key, health: { state }, missingSince }: DeviceAnswer,
  families: readonly FamilyReading[] | undefined,
): boolean {
  const family = families?.find((one) => key.startsWith(`${one.family}/`));
  return family?.complete === true && missingSince === undefined && (state === 'healthy' || state === 'degraded');
}

/**
 * Why a node cannot be called well, whatever the state of the devices that are listed; undefined when it can. What is known to be wrong comes
 * before what is not known.
 */
export function nodeDoubt(view: NodeView<DeviceAnswer>): NodeAnswer<never> | undefined {
  const { families, expected = [] } = view;
  const tooFew = expected.find(areTooFew);
  if (tooFew !== undefined) return { status: 'True', reason: 'DevicesAbsent', text: expectedText(tooFew) };
  const [lost, ...others] = unreturnedDevices(families);
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  if (lost !== undefined)
    return { status: 'True', reason: 'NotReturned', text: `${lost}${more} was out of service when last seen, and was not seen since` };
  if (view.fault !== undefined) return { status: 'Unknown', reason: 'AgentFault', text: agentFaultText(view.fault) };
  const unread = unreadFamilies(families);
  if (unread.length > 0) return { status: 'Unknown', reason: 'FamiliesNotRead', text: unreadText(unread) };
  const uncounted = expected.find(({ present }) => present === undefined);
  if (uncounted !== undefined) return { status: 'Unknown', reason: 'DevicesNotCounted', text: expectedText(uncounted) };
  return nothingKnown(view);
}

/** Answers one condition of the node. */
export function nodeAnswer<D extends DeviceAnswer>(type: NodeConditionType, view: NodeView<D>): NodeAnswer<D> {
  const answer = (type === 'DevicesMissing' ? missing(view) : judged(type, view)) ?? nothingKnown(view) ?? WELL[type];
  if (view.fault === undefined || answer.status !== 'False') return answer;
  return { status: type === 'DevicesUnknown' ? 'True' : 'Unknown', reason: 'AgentFault', text: agentFaultText(view.fault) };
}

export const agentFaultText = (fault: string): string => `the agent does not work: ${fault.replace(/\.$/, '')}`;

const WELL: Readonly<Record<NodeConditionType, NodeAnswer<never>>> = {
  DevicesUnhealthy: { status: 'False', reason: 'NoFatalCondition', text: 'no device has a fatal condition' },
  DevicesUnknown: { status: 'False', reason: 'AllRead', text: 'the state of each device is known' },
  DevicesMissing: { status: 'False', reason: 'AllPresent', text: 'no known or expected device is missing' },
};

/** The conditions on health, while one holds or cannot be denied. */
function judged<D extends DeviceAnswer>(type: NodeConditionType, view: NodeView<D>): NodeAnswer<D> | undefined {
  const isOfUnknown = type === 'DevicesUnknown';
  const inState = (state: HealthState): readonly D[] => view.devices.filter((device) => device.health.state === state);
  const [unhealthy, unknown] = [inState('unhealthy'), inState('unknown')];
  const unreturned = unreturnedDevices(view.families);
  if (!isOfUnknown && unhealthy.length > 0)
    return {
      status: 'True',
      reason: 'FatalCondition',
      text: listed('unhealthy', unhealthy),
      found: { devices: unhealthy, of: 'unhealthy' },
    };
  if (!isOfUnknown && unreturned.length > 0)
    return { status: 'True', reason: 'NotReturned', text: `out of service when last seen, and not seen since: ${unreturned.join(', ')}` };
  const status = isOfUnknown ? 'True' : 'Unknown';
  if (unknown.length > 0)
    return { status, reason: 'DevicesNotRead', text: listed('unknown', unknown), found: { devices: unknown, of: 'unknown' } };
  const uncounted = view.expected?.find(({ present }) => present === undefined);
  const unread = unreadFamilies(view.families);
  if (unread.length > 0) return { status, reason: 'FamiliesNotRead', text: unreadText(unread) };
  return uncounted === undefined ? undefined : { status, reason: 'DevicesNotCounted', text: expectedText(uncounted) };
}

function missing<D extends DeviceAnswer>({ devices, families, expected = [] }: NodeView<D>): NodeAnswer<D> | undefined {
  const isRead = (one: FamilyReading): boolean => one.complete;
  const gone = [
    ...devices.filter(({ missingSince }) => missingSince !== undefined).map(({ key }) => key),
    ...unreturnedDevices(families?.filter(isRead)),
  ];
  const parts = [...expected.filter(areTooFew).map(expectedText), ...(gone.length === 0 ? [] : [`missing: ${gone.join(', ')}`])];
  if (parts.length > 0) return { status: 'True', reason: 'DevicesAbsent', text: parts.join('; ') };
  const uncounted = expected.find(({ present }) => present === undefined);
  if (uncounted !== undefined) return { status: 'Unknown', reason: 'DevicesNotCounted', text: expectedText(uncounted) };
  const unread = unreadFamilies(families);
  if (unread.length > 0) return { status: 'Unknown', reason: 'FamiliesNotRead', text: unreadText(unread) };
  const stale = devices.filter(({ stale: isStale }) => isStale);
  if (stale.length === 0) return undefined;
  return { status: 'Unknown', reason: 'DevicesNotRead', text: listed('unknown', stale), found: { devices: stale, of: 'unknown' } };
}

/** A node without devices is well only where none is expected. */
function nothingKnown({ devices, expected = [] }: NodeView<DeviceAnswer>): NodeAnswer<never> | undefined {
  if (devices.length > 0) return undefined;
  if (expected.length > 0 && expected.every((one) => one.expected === 0)) return undefined;
  return { status: 'Unknown', reason: 'NoDeviceKnown', text: 'no device is known' };
}

const listed = (state: string, devices: readonly DeviceAnswer[]): string =>
  `${devices.length} ${state}: ${devices.map(({ key }) => key).join(', ')}`;
