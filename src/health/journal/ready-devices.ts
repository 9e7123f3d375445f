import { conditionHead } from '../../model/condition-text.ts';
import { deviceKey } from '../../model/device.ts';
import { areTooFew, type ExpectedDevices, expectedText } from '../../model/expected.ts';
import { familyReading, unreadText } from '../../model/family-reading.ts';
import type { Verdict } from '../../model/health.ts';
import { remedyNow } from '../../model/health.ts';
import { unreadFamilies, unreturnedDevices } from '../../model/known-well.ts';
import { shortened } from '../../model/one-line.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';

export interface ReadyQuestion {
  /** Only devices of this family. */
  readonly family?: string;
  /** Only devices of this Kubernetes resource. */
  readonly resource?: string;
  /** How many devices may be not ready. Default: none. */
  readonly most?: { readonly count: number } | { readonly percent: number };
}

/** The devices of one Kubernetes resource. */
export interface ResourceDevices {
  /** Keys of devices. */
  readonly devices: ReadonlySet<string>;
  /** Keys of devices that may be of the resource: the kubelet lists no device that its plugin withholds. They count when they are not ready. */
  readonly possible: ReadonlySet<string>;
  /** Ids of the resource that no known device has. */
  readonly unresolved: number;
}

export interface ReadyRules {
  /** Whether a device with this verdict can be used. An unknown one cannot. */
  readonly isUsable: (verdict: Verdict) => boolean;
  /** Returns undefined while the kubelet has not told what it can allocate. */
  readonly devicesOf: (resource: string) => ResourceDevices | undefined;
}

export interface ReadyAnswer {
  readonly isReady: boolean;
  /** The reasons why it is not; of a ready answer the count, and the reasons that are allowed. One line of text each. */
  readonly lines: readonly string[];
}

/** A reason why a number of devices is not ready. Without `devices` their number is not known, so no limit allows it. */
interface Reason {
  readonly line: string;
  readonly devices?: number;
}

const MOST_LINES = 20;
const LINE_BYTES = 200;

/**
 * Says whether the devices are there, were read and can be used. What is not known is a no, and so is a question without any device, unless
 * none is expected. A device and its parts count as one. Lines have no value that changes while the state stays the same, so that a client
 * that stores them has nothing to write.
 */
export function readyDevices(snapshot: Snapshot, question: ReadyQuestion, rules: ReadyRules): ReadyAnswer {
  const { family, resource, most = { count: 0 } } = question;
  const ofResource = resource === undefined ? undefined : rules.devicesOf(resource);
  if (resource !== undefined && ofResource === undefined)
    return no([{ line: `${resource}: the kubelet has not told which devices it has` }]);
  const isWhole = family === undefined && resource === undefined;
  const chosen = snapshot.devices.filter(
    (state) =>
      (family === undefined || state.device.family === family) &&
      (ofResource === undefined ||
        ofResource.devices.has(state.key) ||
        (ofResource.possible.has(state.key) && whyNot(state, rules) !== undefined)),
  );
  const isAsked = (name: string): boolean =>
    resource === undefined ? isWhole || name === family : chosen.some(({ device }) => device.family === name);
  const expected = (snapshot.expected ?? []).filter((one) => isAsked(one.family));
  const families = resource === undefined ? snapshot.families.filter((one) => isAsked(one.family)).map(familyReading) : [];
  const byKey = new Map(chosen.map((state) => [state.key, state]));
  const roots = new Map(chosen.map((state) => [state.key, rootOf(state, byKey)]));
  const troubled = chosen.flatMap((state) => {
    const why = whyNot(state, rules);
    return why === undefined ? [] : [{ state, line: `${state.key}: ${why}` }];
  });
  const sick = new Set(troubled.map(({ state }) => roots.get(state.key)));
  const { unresolved = 0 } = ofResource ?? {};
  const reasons: Reason[] = [
    ...expected.flatMap((one) => expectation(one, chosen)),
    ...unreadFamilies(families).map((one): Reason => ({ line: unreadText([one]) })),
    ...unreturnedDevices(families).map(
      (key): Reason => ({ line: `${key}: out of service when last seen, and not seen since`, devices: 1 }),
    ),
    ...(unresolved === 0 ? [] : [{ line: `${resource}: no known device has ${unresolved} of its ids`, devices: unresolved }]),
  ];
  const devices = new Set(roots.values()).size;
  const known = reasons.map((reason) => reason.devices ?? 0).reduce((sum, count) => sum + count, 0);
  const [all, bad] = [devices + known, sick.size + known];
  const lines = [...reasons, ...troubled.sort((a, b) => rank(a.state) - rank(b.state))];
  if (all === 0 && reasons.length === 0) {
    const isNoneExpected = isWhole && expected.length > 0 && expected.every((one) => one.expected === 0);
    if (isNoneExpected) return { isReady: true, lines: ['No device is expected, and none was found.'] };
    const what = resource ?? family;
    return no([{ line: what === undefined ? 'no device was found' : `${what}: no device was found` }]);
  }
  const allowed = 'count' in most ? most.count : Math.floor((all * most.percent) / 100);
  if (bad > allowed || reasons.some((reason) => reason.devices === undefined)) return no(lines);
  if (bad === all) return no([{ line: 'no device is ready' }, ...lines]);
  return { isReady: true, lines: limited([`${all - bad} of ${all} devices are ready.`, ...lines.map(({ line }) => line)]) };
}

const no = (reasons: readonly Pick<Reason, 'line'>[]): ReadyAnswer => ({ isReady: false, lines: limited(reasons.map(({ line }) => line)) });

function limited(lines: readonly string[]): readonly string[] {
  const shown = lines.slice(0, MOST_LINES).map((line) => shortened(line, LINE_BYTES));
  return lines.length > MOST_LINES ? [...shown, `and ${lines.length - MOST_LINES} more`] : shown;
}

/** Devices that are expected and not there. Those that are listed as missing have a line of their own. */
function expectation(one: ExpectedDevices, chosen: readonly DeviceState[]): readonly Reason[] {
  const { family, expected, present } = one;
  if (present === undefined) return expected === 0 ? [] : [{ line: expectedText(one) }];
  if (!areTooFew(one)) return [];
  const listed = chosen.filter(
    ({ device, missingSinceMs }) => device.family === family && device.parent === undefined && missingSinceMs !== undefined,
  ).length;
  return [{ line: expectedText(one), devices: Math.max(0, expected - present - listed) }];
}

/** Key of the largest chosen device that contains this one. */
function rootOf(state: DeviceState, byKey: ReadonlyMap<string, DeviceState>): string {
  const seen = new Set<string>();
  let at = state;
  while (at.device.parent !== undefined && !seen.has(at.key)) {
    seen.add(at.key);
    const parent = byKey.get(deviceKey({ family: at.device.family, id: at.device.parent }));
    if (parent === undefined) break;
    at = parent;
  }
  return at.key;
}

/** Why a device is not ready; undefined when it is. */
function whyNot({ verdict, missingSinceMs }: DeviceState, { isUsable }: ReadyRules): string | undefined {
  const { state, conditions, unchecked } = verdict;
  if (missingSinceMs === undefined && isUsable(verdict)) return undefined;
  if (missingSinceMs !== undefined) return 'missing';
  if (state === 'healthy' || state === 'degraded')
    return unchecked === undefined ? state : `${state}, not checked: ${unchecked.join(', ')}`;
  const worst = conditions.find(({ severity }) => state === 'unknown' || severity === 'fatal');
  if (worst === undefined) return state;
  const remedy = remedyNow(worst);
  return `${state}, ${conditionHead(worst)}${remedy === 'none' ? '' : `, remedy: ${remedy}`}`;
}

const RANKS = { unhealthy: 0, unknown: 1, degraded: 2, healthy: 3 } as const;
const rank = ({ verdict }: DeviceState): number => RANKS[verdict.state];
