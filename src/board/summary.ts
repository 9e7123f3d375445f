import { conditionName } from '../model/condition-text.ts';
import { durationText } from '../model/duration.ts';
import { faultSince, type Remedy } from '../model/health.ts';
import { agentFaultText, nodeDoubt } from '../model/known-well.ts';
import { type Board, type BoardFamily, isStarting } from './board.ts';
import { nameWithInstance } from './condition-text.ts';
import {
  type Appearance,
  appearanceOf,
  appearedAt,
  type ConditionView,
  type DeviceView,
  hasOnlyFaultsOfWhole,
  leadOf,
  parentKey,
  remedyOf,
} from './device-view.ts';
import { APPEARANCES, byAttention, byPlace } from './order.ts';
import { PHRASES, REMEDY_TEXTS } from './words.ts';

/** Devices that have one fault in common, who is hit, and what to do. */
export interface Finding {
  readonly appearance: Appearance;
  /** At least one. */
  readonly devices: readonly DeviceView[];
  /** The condition that leads; absent for a device that is only missing or not read. */
  readonly lead: ConditionView | undefined;
  /** `is lost`, in the number of the devices. */
  readonly phrase: string;
  /** `namespace/pod` of those that hold one of the devices, or a part of it that is not well either. */
  readonly pods: readonly string[];
  /** `namespace/pod` of the pods that it hit and that no longer hold any of the devices. */
  readonly ended: readonly string[];
  /** `drain and reboot the node`: the rest of a sentence. */
  readonly advice: string | undefined;
  /** A command that is safe and complete. */
  readonly command: string | undefined;
  /** True where the command ends other pods, too. */
  readonly drains: boolean;
}

/**
 * The faults of a node: the worst first, and among equal ones those that hit a pod. A part that only has the fault of its whole is no finding
 * of its own. `devices`: those to look at; their parts are looked for in the whole board. Pure.
 */
export function findingsOf(board: Pick<Board, 'devices' | 'node'>, devices = board.devices): readonly Finding[] {
  const groups = new Map<string, DeviceView[]>();
  for (const device of devices.toSorted(byAttention)) {
    const appearance = appearanceOf(device);
    if (appearance === 'healthy' || hasOnlyFaultsOfWhole(device)) continue;
    const key = [appearance, leadOf(device)?.type, remedyOf(device), device.stale].join(' ');
    groups.set(key, [...(groups.get(key) ?? []), device]);
  }
  const unwell = board.devices.filter((device) => appearanceOf(device) !== 'healthy');
  return [...groups.values()].map((group) =>
    findingOf(group.sort(byPlace) as [DeviceView, ...DeviceView[]], podsHit(group, unwell), board.node),
  );
}

/**
 * The fault of a device hits who holds the device, and who holds a part that is not well either. A part can be well, because it is read by itself:
 * a virtual function. The limit of the depth ends a circle that no hardware should report.
 */
function podsHit(group: readonly DeviceView[], unwell: readonly DeviceView[]): readonly string[] {
  const keys = new Set(group.map(({ key }) => key));
  const byKey = new Map(unwell.map((device) => [device.key, device]));
  const isWithin = (device: DeviceView | undefined, depth = 0): boolean =>
    device !== undefined && depth <= 5 && (keys.has(device.key) || isWithin(byKey.get(parentKey(device) ?? ''), depth + 1));
  const holders = unwell.filter((device) => isWithin(device)).flatMap((device) => device.holders.filter(({ part }) => part === undefined));
  return [...new Set(holders.map(({ namespace, pod }) => `${namespace}/${pod}`))];
}

function findingOf(devices: readonly [DeviceView, ...DeviceView[]], pods: readonly string[], node: string | undefined): Finding {
  const [first] = devices;
  const appearance = appearanceOf(first);
  const lead = leadOf(first);
  const remedy = remedyOf(first);
  const ended = [...new Set(devices.flatMap(({ incident }) => incident?.hit ?? []))].filter((pod) => !pods.includes(pod));
  const phrase = phraseOf(first, appearance, lead);
  const advice = remedy && REMEDY_TEXTS[remedy]?.replace(/\.$/, '').replace(/^\w/, (letter) => letter.toLowerCase());
  const drains = remedy !== undefined && DRAINS.includes(remedy);
  return {
    ...{ appearance, devices, lead, pods, ended, advice, drains },
    phrase:
      devices.length === 1
        ? phrase
        : phrase
            .replace(/^is /, 'are ')
            .replace(/^has /, 'have ')
            .replace(/^recovers/, 'recover'),
    command: remedy === undefined || appearance === 'pending' ? undefined : commandOf(remedy, node, pods),
  };
}

function phraseOf({ stale }: DeviceView, appearance: Appearance, lead: ConditionView | undefined): string {
  if (appearance === 'missing') return 'is missing';
  if (appearance === 'recovering') return `recovers from ${lead === undefined ? 'a fault' : nameWithInstance(lead)}`;
  if (lead !== undefined) return phraseFor(lead);
  return stale ? 'is not read any more' : `is ${appearance}`;
}

/** What a sentence says of a device with this condition: `is …` or `has …`. */
export const phraseFor = (condition: Pick<ConditionView, 'type' | 'instance'>): string =>
  PHRASES[conditionName(condition)] ?? PHRASES[condition.type] ?? `has ${nameWithInstance(condition)}`;

/** What a sentence says of a device with these conditions, by names. */
export function faultPhrase(names: readonly string[]): string {
  const known = names.find((name) => PHRASES[name] !== undefined);
  return known === undefined ? `has ${names.join(', ')}` : (PHRASES[known] as string);
}

export const DRAINS: readonly Remedy[] = ['reset', 'reboot', 'power-cycle', 'replace', 'reload-driver', 'reseat'];
const CORDONS: readonly Remedy[] = ['check-cooling', 'check-power', 'inspect'];
/** Only names that a shell takes as they are become part of a command. */
const PLAIN = /^[\w][\w.-]*$/;

/** A command that is safe and complete for a remedy; undefined where there is none. */
export function commandOf(remedy: Remedy, node: string | undefined, pods: readonly string[]): string | undefined {
  const [namespace = '', pod = ''] = pods.length === 1 ? (pods[0] as string).split('/') : [];
  if (remedy === 'restart-workload')
    return PLAIN.test(namespace) && PLAIN.test(pod) ? `kubectl -n ${namespace} delete pod ${pod}` : undefined;
  if (node === undefined || !PLAIN.test(node)) return undefined;
  // A flag that deletes data is not for a page: kubectl refuses, and says which pods have data.
  if (DRAINS.includes(remedy)) return `kubectl drain ${node} --ignore-daemonsets`;
  return CORDONS.includes(remedy) ? `kubectl cordon ${node}` : undefined;
}

const KINDS: Readonly<Record<string, string>> = { gpu: 'GPUs', pf: 'adapters', vf: 'virtual functions' };

/** `GPU 0`, or `3 GPUs`. */
export function subjectOf({ devices }: Pick<Finding, 'devices'>): string {
  const [first] = devices;
  const kinds = new Set(devices.map(({ kind }) => kind));
  if (devices.length === 1) return first?.name ?? '';
  return `${devices.length} ${kinds.size === 1 ? (KINDS[first?.kind ?? ''] ?? 'devices') : 'devices'}`;
}

/** `training/llm-0-1 is hit`, or `was hit` when it holds the device no more. A fault that does not count yet has hit nobody. */
export function hitText({
  pods,
  ended,
  devices,
  appearance,
}: Pick<Finding, 'pods' | 'ended' | 'devices' | 'appearance'>): string | undefined {
  if (appearance === 'recovering') return undefined;
  const told = (names: readonly string[], [one, several]: readonly [string, string]): readonly string[] =>
    names.length === 0 ? [] : [names.length === 1 ? `${names[0]} ${one}` : `${names.length} pods ${several}`];
  if (appearance === 'pending') return told(pods, devices.length === 1 ? ['holds it', 'hold it'] : ['holds them', 'hold them'])[0];
  const texts = [...told(pods, ['is hit', 'are hit']), ...told(ended, ['was hit', 'were hit'])];
  return texts.length === 0 ? undefined : texts.join(', ');
}

/** The parts of the board that a sentence about the whole node uses. */
type SummaryInput = Pick<Board, 'devices' | 'node' | 'kubelet' | 'families' | 'expected' | 'fault'>;

/** The first sentence of page and terminal. */
export function sentenceOf(board: SummaryInput, [first]: readonly Finding[] = findingsOf(board)): string {
  if (first === undefined) return wellText(board);
  return `${doubtText(board, first)}${faultText(first)}${first.advice === undefined ? '' : `: ${first.advice}`}`;
}

/** A sentence about the node that stands before a less severe finding, with a space at its end. Empty when the node has no such problem. */
export function doubtText(board: SummaryInput, { appearance }: Finding): string {
  const doubt = nodeDoubt(board);
  if (board.fault !== undefined) return `${capital(agentFaultText(board.fault))}. `;
  return doubt === undefined || worse(DOUBTS[doubt.status], appearance) === appearance ? '' : `${capital(doubt.text)}. `;
}

const capital = (text: string): string => text.replace(/^./, (letter) => letter.toUpperCase());

const DOUBTS = { True: 'missing', Unknown: 'unknown', False: 'healthy' } as const;
const worse = (a: Appearance, b: Appearance): Appearance => (APPEARANCES.indexOf(a) < APPEARANCES.indexOf(b) ? a : b);

/** `GPU 0 is lost, training/llm-0-1 is hit`. */
export function faultText(finding: Finding): string {
  const hit = hitText(finding);
  return `${subjectOf(finding)} ${finding.phrase}${hit === undefined ? '' : `, ${hit}`}`;
}

/** The sentence when no device has a fault. It says what is not known of the node, because a fault can hide there. */
export function wellText(board: SummaryInput): string {
  const { devices, kubelet, families } = board;
  const { length } = devices;
  const doubt = nodeDoubt(board);
  if (board.fault !== undefined) return capital(agentFaultText(board.fault));
  if (isStarting(board) && doubt?.status !== 'True')
    return length === 0
      ? 'The first read runs'
      : `The first read runs; ${length} ${length === 1 ? 'device is' : 'devices are'} healthy so far`;
  const well = length === 0 ? 'No device was found' : length === 1 ? 'The device is healthy' : `All ${length} devices are healthy`;
  const fails = ({ state }: BoardFamily): boolean => state === 'fails' || state === 'hangs';
  const named = (found: readonly BoardFamily[], what: string): string | undefined =>
    found.length === 0
      ? undefined
      : `${found
          .slice(0, 3)
          .map(({ family }) => family)
          .join(', ')} ${what}`;
  const but = [
    doubt?.status === 'True' ? doubt.text : undefined,
    named(families.filter(fails), 'cannot be read'),
    named(
      families.filter((one) => !(fails(one) || one.complete)),
      'cannot be read completely',
    ),
    kubelet.state === 'answers' || kubelet.state === 'starts' ? undefined : 'the kubelet does not answer',
  ].filter((one) => one !== undefined);
  return but.length === 0 ? well : `${well}, but ${but.join(' and ')}`;
}

/** The worst that needs an action, or what is wrong or not known of the node itself. It gives the colour of the page and the icon of its tab. */
export const worstOf = (board: SummaryInput, [first]: readonly Finding[] = findingsOf(board)): Appearance =>
  worse(first?.appearance ?? 'healthy', DOUBTS[nodeDoubt(board)?.status ?? 'False']);

/** The begin of the fault, which can be older than the state. The begin of the state where the phrase names the state. */
export function findingSince({ devices, lead, appearance }: Finding): string | undefined {
  if (lead === undefined || appearance === 'missing' || appearance === 'recovering')
    return devices.map(appearedAt).find((since) => since !== undefined);
  return lead.countsAt === undefined ? faultSince(devices[0]?.health.conditions ?? []) : lead.since;
}

/** `counted after 30 s`: why the verdict is younger than the fault; undefined when it is not. */
export function countedText(since: string | undefined, countedAt: string | undefined): string | undefined {
  const waitedMs = Date.parse(countedAt ?? '') - Date.parse(since ?? '');
  return waitedMs >= 1_000 ? `counted after ${durationText(Math.round(waitedMs / 1_000) * 1_000)}` : undefined;
}
