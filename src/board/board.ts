import type { Problem, ProblemSpec } from '../model/collection.ts';
import type { ContainerLocality } from '../model/container-locality.ts';
import { defined } from '../model/defined.ts';
import type { ExpectedDevices } from '../model/expected.ts';
import { type FamilyReading, familyReading } from '../model/family-reading.ts';
import { unreadFamilies } from '../model/known-well.ts';
import { farthestPairs } from '../model/locality.ts';
import type { PageReadings } from '../model/shared-metrics.ts';
import type { DeviceState, FamilyState, Snapshot, UnresolvedReason } from '../model/snapshot.ts';
import { StepCache, sameListWhenEqual } from '../model/step-cache.ts';
import type { RateOf } from './chosen-reading.ts';
import {
  type ConditionView,
  conditionsOf,
  type DeviceView,
  type DisplayState,
  type HolderView,
  healthView,
  isPending,
  parentKey,
  stateOf,
} from './device-view.ts';
import { Holders } from './holders.ts';
import { FaultRecords, type IncidentSummary, podNames } from './incident.ts';
import { alsoOf, nameOf } from './name.ts';
import { byAttention, inTrees, STATE_ORDER } from './order.ts';
import { chooseReadings, type PageReadingsOf } from './readings.ts';
import { timeText } from './units.ts';
import { KUBELET_REMEDIES, UNRESOLVED_TEXTS } from './words.ts';

/** What keeps the agent from seeing everything. */
export interface BoardProblem extends Problem {
  /** Absent for the kubelet. */
  readonly family?: string;
  readonly remedy?: string;
}

/** `kubelet`, a family, or a family and a device. */
export const problemPlace = ({ family = 'kubelet', device }: BoardProblem): string =>
  device === undefined ? family : `${family} ${device}`;

export interface BoardFamily extends FamilyReading {
  /** Name of its devices for people, where it differs from the name of the family. */
  readonly title?: string;
  readonly devices: number;
  readonly state: 'works' | 'fails' | 'hangs' | 'starts';
  readonly lastSuccessAt?: string;
}

/** Whether the first read of a family runs. */
export const isStarting = ({ families }: Pick<Board, 'families'>): boolean => families.some(({ state }) => state === 'starts');

/** The families that were not read completely. Whether they have more devices is not known yet. */
export const unreadIn = ({ families }: Pick<Board, 'families'>): readonly string[] => unreadFamilies(families).map(({ family }) => family);

/** A sentence with their names; empty when each family was read. */
export function unreadText(board: Pick<Board, 'families'>): string {
  const unread = unreadIn(board);
  return unread.length === 0 ? '' : `Not read yet: ${unread.join(', ')}.`;
}

export interface BoardKubelet {
  /** `answers`, `starts` before the first answer, otherwise why it does not answer. */
  readonly state: string;
  readonly answeredAt?: string;
  /** Allocations that are kept from an earlier answer. */
  readonly kept: number;
}

/** Says that a pod which is not listed may hold devices; undefined when the kubelet told all. */
export function podDoubt({ kubelet, fault }: Pick<Board, 'kubelet' | 'fault'>): string | undefined {
  if (fault === undefined && kubelet.state === 'answers') return undefined;
  const why = fault === undefined ? `the kubelet gives no full answer (${kubelet.state})` : 'the agent does not work';
  return `It is not known whether such a pod holds a device: ${why}.`;
}

export interface BoardCounts {
  readonly devices: number;
  /** Devices that a container holds. */
  readonly held: number;
  readonly heldByParts: number;
  readonly states: Readonly<Record<DisplayState, number>>;
  /** Healthy devices with a condition that will change their state if it continues. */
  readonly pending: number;
}

/** An allocation of the kubelet that no device answers to. */
export interface BoardUnresolved extends Omit<HolderView, 'part' | 'claim'> {
  readonly why: string;
}

/** All devices of a node at one time, in the order in which people see them. Plain data. */
export interface Board {
  readonly node?: string;
  /** Time of this answer, so that clients with another clock compute ages. */
  readonly now: string;
  readonly takenAt: string;
  readonly sequence: number;
  readonly counts: BoardCounts;
  readonly kubelet: BoardKubelet;
  readonly families: readonly BoardFamily[];
  /** Absent when the configuration expects no number of devices. */
  readonly expected?: readonly ExpectedDevices[];
  /** Why the agent does not do its work, so that this board is old. Absent while it works. */
  readonly fault?: string;
  readonly problems: readonly BoardProblem[];
  readonly unresolved: readonly BoardUnresolved[];
  /** Faulty devices first; parts follow their parent. */
  readonly devices: readonly DeviceView[];
}

export interface BoardOptions {
  readonly nowMs: number;
  readonly node?: string | undefined;
  /** Without it, no rate is known. */
  readonly rateOf?: RateOf | undefined;
  /** Without it, the readings of each device are chosen from the shared metrics. */
  readonly shownOf?: PageReadingsOf;
  /** The newest first. They name the pods that a fault hit and that no longer hold the device. */
  readonly incidents?: readonly IncidentSummary[] | undefined;
  /** Declared remedy of a problem of a family. */
  readonly remedyOf?: RemedyOf;
  readonly titleOf?: (family: string) => string | undefined;
  /** The rows of the boards before. A device whose state and parts are the same objects keeps its row. */
  readonly kept?: StepCache<DeviceView>;
}

/** Returns the declared remedy of a problem code; undefined for an undeclared code. */
export type RemedyOf = (family: string, code: string) => string | undefined;

/** What the families declare for the board. */
export function declaredBy(
  families: readonly {
    readonly name: string;
    readonly title?: string;
    readonly problems: readonly ProblemSpec[];
    readonly shows?: PageReadings;
  }[],
): Required<Pick<BoardOptions, 'shownOf' | 'remedyOf' | 'titleOf'>> {
  const byName = new Map(families.map((family) => [family.name, family]));
  return {
    titleOf: (family) => byName.get(family)?.title,
    shownOf: (family, kind) => byName.get(family)?.shows?.[kind],
    remedyOf: (family, code) => byName.get(family)?.problems.find((problem) => problem.code === code)?.remedy,
  };
}

const MOST_UNRESOLVED = 100;

/** Turns a snapshot into what people see of it. Pure. */
export function boardOf(snapshot: Snapshot, options: BoardOptions): Board {
  const { nowMs, node, remedyOf, rateOf, shownOf, incidents = [], kept = new StepCache<DeviceView>() } = options;
  const holders = new Holders(snapshot);
  const records = new FaultRecords(incidents, snapshot);
  const names = new Map(snapshot.devices.map(({ key, device }) => [key, nameOf(device)]));
  const farthest = farthestTexts(snapshot.localities ?? [], (key) => names.get(key) ?? key);
  const made = snapshot.devices.map((state) => {
    const [farthestText, parts] = [farthest.get(state.key), holders.partsOf(state)];
    const ofFault = records.of(state, parts);
    const inputs = [state, farthestText, holders.isAnswered, holders.mayBeHeld(state), rateOf, shownOf, ...parts, ...ofFault];
    return kept.of(state.key, inputs, () => deviceViewOf(state, holders, { farthestText, ofFault }, options));
  });
  kept.end();
  const devices = inTrees(withWholes(made), byAttention).map(({ row }) => row);
  const families = snapshot.families.map((family) => ({
    ...familyOf(family, snapshot),
    ...defined({ title: options.titleOf?.(family.family) }),
  }));
  return defined({
    node,
    now: timeText(nowMs),
    takenAt: timeText(snapshot.takenAtMs),
    sequence: snapshot.sequence,
    counts: countsOf(devices),
    kubelet: kubeletOf(snapshot),
    families,
    expected: snapshot.expected,
    problems: problemsOf(snapshot, remedyOf),
    unresolved: unresolvedOf(snapshot, { families }).slice(0, MOST_UNRESOLVED),
    devices,
  });
}

interface DeviceContext {
  readonly farthestText: string | undefined;
  readonly ofFault: readonly IncidentSummary[];
}

function deviceViewOf(state: DeviceState, all: Holders, { farthestText, ofFault }: DeviceContext, options: BoardOptions): DeviceView {
  const { key, device, verdict, missingSinceMs, readAtMs, stale } = state;
  const { family, id, kind, parent, numaNode, pciAddress, pciPath, model, product, vendor, driver, firmware } = device;
  return defined({
    key,
    ...{
      family,
      id,
      name: nameOf(device),
      kind,
      also: alsoOf(device),
      parent,
      numaNode,
      pciAddress,
      pciPath,
      model,
      product,
      vendor,
      driver,
      firmware,
    },
    missingSince: timeText(missingSinceMs),
    readAt: timeText(readAtMs),
    stale,
    health: healthView(verdict),
    incident: ofFault[0] && {
      id: ofFault[0].id,
      ...(ofFault[0].began !== undefined && { countedAt: ofFault[0].time }),
      hit: podNames(ofFault.flatMap(({ holders }) => holders)),
    },
    ...all.of(state),
    farthest: farthestText,
    shown: chooseReadings(state, options).map(({ series: _series, isRate: _isRate, ...shown }) => shown),
  });
}

/** For each device, the farthest device that a container holds with it: `SYS to eth0`. `nameOf` names a device by its key. */
function farthestTexts(
  localities: readonly Pick<ContainerLocality, 'pairs'>[],
  nameOf: (key: string) => string,
): ReadonlyMap<string, string> {
  const farthest = farthestPairs(localities.flatMap(({ pairs }) => pairs));
  return new Map([...farthest].map(([key, { from, to, path = 'unknown' }]) => [key, `${path} to ${nameOf(key === from ? to : from)}`]));
}

/** A port that is down is down for each virtual function. The remedy is shown once, on the parent. */
function withWholes(devices: readonly DeviceView[]): readonly DeviceView[] {
  const byKey = new Map(devices.map((one) => [one.key, one]));
  return devices.map((one) => {
    const whole = byKey.get(parentKey(one) ?? '');
    if (whole === undefined || whole === one) return one;
    const { conditions, pending } = one.health;
    const isCause = conditionsOf(whole).some(({ severity }) => severity !== 'info');
    const marked = (list: readonly ConditionView[], ofWhole: readonly ConditionView[] = []): readonly ConditionView[] =>
      sameListWhenEqual(
        list,
        list.map((condition) =>
          (isCause && condition.causedBy === whole.id) ||
          ofWhole.some(({ type, instance }) => type === condition.type && instance === condition.instance)
            ? { ...condition, ofWhole: whole.name }
            : condition,
        ),
      );
    const shown = marked(conditions, whole.health.conditions);
    const waiting = pending && marked(pending, whole.health.pending);
    if (shown === conditions && waiting === pending) return one;
    return { ...one, health: { ...one.health, conditions: shown, ...defined({ pending: waiting }) } };
  });
}

function countsOf(devices: readonly DeviceView[]): BoardCounts {
  const states = Object.fromEntries(STATE_ORDER.map((state) => [state, devices.filter((one) => stateOf(one) === state).length]));
  return {
    devices: devices.length,
    held: devices.filter(({ use }) => use === 'held').length,
    heldByParts: devices.filter(({ use }) => use === 'held by parts').length,
    states: states as Record<DisplayState, number>,
    pending: devices.filter((one) => stateOf(one) === 'healthy' && isPending(one)).length,
  };
}

function kubeletOf({ podResources }: Snapshot): BoardKubelet {
  const { problem, answeredAtMs, held } = podResources;
  return defined({
    state: problem?.reason ?? (answeredAtMs === undefined ? 'starts' : 'answers'),
    answeredAt: timeText(answeredAtMs),
    kept: held.size,
  });
}

function familyOf(state: FamilyState, { devices }: Snapshot): BoardFamily {
  const { family, succeeded, hung, lastSuccessMs } = state;
  return defined({
    ...familyReading(state),
    devices: devices.filter(({ device }) => device.family === family).length,
    state: hung ? ('hangs' as const) : succeeded === undefined ? ('starts' as const) : succeeded ? ('works' as const) : ('fails' as const),
    lastSuccessAt: timeText(lastSuccessMs),
  });
}

function problemsOf({ families, podResources }: Snapshot, remedyOf: BoardOptions['remedyOf']): readonly BoardProblem[] {
  const { problem } = podResources;
  const kubelet = problem && { code: problem.reason, message: problem.message, remedy: KUBELET_REMEDIES[problem.reason] };
  return [
    ...(kubelet === undefined ? [] : [kubelet]),
    ...families.flatMap(({ family, hung, problems }) => [
      ...(hung ? [{ family, code: 'read-hangs', ...HANGS }] : []),
      ...problems.map((one) => defined({ family, ...one, remedy: remedyOf?.(family, one.code) })),
    ]),
  ];
}

const HANGS = { message: 'A read hangs; it was abandoned.', remedy: 'Search the kernel log for the device that does not answer.' };

/** All of them: a board has the first ones. */
export function unresolvedOf({ allocations }: Snapshot, board: Pick<Board, 'families'>): readonly BoardUnresolved[] {
  const unread = unreadText(board);
  const noDevice = isStarting(board) ? 'No probe found a device with this name so far.' : UNRESOLVED_TEXTS['no-device'];
  const whyOf = (reason: UnresolvedReason): string =>
    reason === 'no-device' && unread !== '' ? `${noDevice} ${unread}` : UNRESOLVED_TEXTS[reason];
  return allocations.flatMap(({ allocation: { namespace, pod, container, resource, deviceId }, unresolved, whole }) => {
    if (unresolved === undefined) return [];
    const why = whyOf(unresolved);
    return [{ namespace, pod, container, resource, deviceId, why: whole === undefined ? why : `${whole}: ${why}` }];
  });
}
