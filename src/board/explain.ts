import type { ContainerLocality } from '../model/container-locality.ts';
import type { Device } from '../model/device.ts';
import { durationText } from '../model/duration.ts';
import { comparePaths, pathBetween } from '../model/locality.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { boardOf, unresolvedOf } from './board.ts';
import { conditionText } from './condition-text.ts';
import { appearanceOf, conditionsOf, type DeviceView } from './device-view.ts';
import { type DirectReason, directAnswer, directReasons } from './direct.ts';
import { nameOf } from './name.ts';
import { waitingText } from './waiting-text.ts';
import { wayText } from './ways.ts';

/** GPUs with the same reasons are one group. */
const MOST_GROUPS = 2;

/**
 * Says to the team that owns a pod how near its devices are, whether its work moves on, and what is wrong with them, line by line; undefined
 * when the node knows no such pod.
 */
export function explainPod(namespace: string, pod: string, snapshot: Snapshot): readonly string[] | undefined {
  const near = explainNearness(namespace, pod, snapshot);
  if (near === undefined) return undefined;
  const isOfPod = ofPod(namespace, pod);
  const held = new Set(snapshot.allocations.filter(({ allocation }) => isOfPod(allocation)).flatMap(({ devices }) => devices));
  const waiting = (snapshot.waiting ?? [])
    .filter(isOfPod)
    .map((one) => `Container ${one.container} ${waitingText(one, snapshot.takenAtMs)}.`);
  const board = boardOf(snapshot, { nowMs: snapshot.takenAtMs });
  return [
    ...near,
    ...waiting,
    ...unresolvedOf(snapshot, board)
      .filter(isOfPod)
      .map(({ container, resource, deviceId, why }) => `Container ${container} holds ${resource} ${deviceId}: ${why}`),
    ...board.devices.filter(({ key }) => held.has(key)).flatMap((device) => faultLines(device, snapshot.takenAtMs)),
  ];
}

/** How near the devices of a pod are to each other and to its CPUs. */
export function explainNearness(namespace: string, pod: string, snapshot: Snapshot): readonly string[] | undefined {
  const isOfPod = ofPod(namespace, pod);
  const held = snapshot.allocations.filter(({ allocation }) => isOfPod(allocation));
  if (held.length === 0) return undefined;
  const own = (snapshot.localities ?? []).filter(isOfPod);
  if (own.length > 0) {
    const devices = new Map(snapshot.devices.map(({ key, device }) => [key, device]));
    return own.flatMap((one) => containerLines(one, devices, snapshot));
  }
  const count = new Set(held.flatMap((state) => state.devices)).size;
  const unfound = unfoundOf(isOfPod, snapshot);
  if (unfound > 0) return [`${namespace}/${pod}: ${unfoundText(unfound, count)}, so how near its devices are is not known.`];
  return [
    `${namespace}/${pod} holds ${count} ${count === 1 ? 'device' : 'devices'}, and no container of it holds a GPU and another device: there is no way to compare.`,
  ];
}

/** How many ids of a pod lead to no device that is known. */
export const unfoundOf = (isOfPod: OfPod, { allocations }: Pick<Snapshot, 'allocations'>): number =>
  allocations.filter(({ allocation, devices, unresolved }) => unresolved !== undefined && devices.length === 0 && isOfPod(allocation))
    .length;

/** `1 of 2 devices was not found`. `found`: how many others the pod holds. */
export const unfoundText = (unfound: number, found: number): string =>
  `${unfound} of ${counted(unfound + found, 'device')} ${unfound === 1 ? 'was' : 'were'} not found`;

type OfPod = (one: { readonly namespace: string; readonly pod: string }) => boolean;
const ofPod =
  (namespace: string, pod: string): OfPod =>
  (one) =>
    one.namespace === namespace && one.pod === pod;

/** What is wrong with a device of the pod, as its page says it. */
function faultLines(device: DeviceView, nowMs: number): readonly string[] {
  const lines = conditionsOf(device)
    .filter(({ severity }) => severity !== 'info')
    .map((condition) => {
      const { name, note, sentences, advice } = conditionText(device, condition, nowMs);
      return [`${device.name} has ${name}: ${note} · ${sentences.join(' ')}`, advice].filter((text) => text !== undefined).join(' · ');
    });
  const state = appearanceOf(device);
  if (state === 'healthy' || (lines.length > 0 && state !== 'missing' && state !== 'unknown')) return lines;
  const unread = device.stale ? `, not read for ${durationText(nowMs - Date.parse(device.readAt))}` : '';
  return [`${device.name} is ${state}${unread}.`, ...lines];
}

function containerLines(one: ContainerLocality, devices: ReadonlyMap<string, Device>, snapshot: Snapshot): readonly string[] {
  const { namespace, pod, container, gpus, nics, pairs } = one;
  const nameAt = (key: string): string => named(devices.get(key)) ?? key;
  const others = new Set(pairs.flatMap(({ from, to }) => [from, to])).size - gpus.length - nics.length;
  const counts = [
    counted(gpus.length, 'GPU'),
    ...(nics.length === 0 ? [] : [counted(nics.length, 'network device')]),
    ...(others > 0 ? [counted(others, 'other device')] : []),
  ];
  return [
    `${namespace}/${pod}, container ${container}, holds ${counts.join(', ')}: ${[...gpus, ...nics.map(({ device }) => device)].map(nameAt).join(', ')}.`,
    ...gpuLine(one),
    ...nicLine(one),
    cpuLine(one, snapshot),
    ...directLines(one, devices, snapshot),
  ];
}

const named = (device: Device | undefined): string | undefined => device && nameOf(device);
const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`;

function gpuLine({ gpus, gpuPath }: ContainerLocality): readonly string[] {
  if (gpus.length < 2) return [];
  return [
    gpuPath === undefined
      ? 'How its GPUs reach each other is not known for each pair.'
      : `Its GPUs reach each other ${wayText(gpuPath)} at worst.`,
  ];
}

function nicLine({ nics, nicPath }: ContainerLocality): readonly string[] {
  if (nics.length === 0) return ['It holds no network device, so its GPUs leave the node only through the memory of the host.'];
  if (nicPath === undefined) return ['How near the network devices are to its GPUs is not known for each pair.'];
  return [`The GPU that is farthest from a network device reaches the nearest one ${wayText(nicPath)}.`];
}

function cpuLine({ namespace, pod, container, offNode }: ContainerLocality, { podResources }: Snapshot): string {
  const isOwn = (one: ContainerLocality | { namespace: string; pod: string; container: string }): boolean =>
    one.namespace === namespace && one.pod === pod && one.container === container;
  const cpus = podResources.exclusive.find(isOwn)?.cpus ?? [];
  if (cpus.length === 0) return 'It has no CPUs of its own, so its threads run on any NUMA node.';
  if (offNode === undefined) return `It has ${counted(cpus.length, 'CPU')} of its own; whether they are near to its devices is not known.`;
  return offNode === 0
    ? `Its ${counted(cpus.length, 'own CPU')} are on the NUMA nodes of all its devices.`
    : `${counted(offNode, 'device')} of it ${offNode === 1 ? 'is' : 'are'} on other NUMA nodes than its ${counted(cpus.length, 'own CPU')}.`;
}

/** The nearest network device of each GPU. GPUs with the same reasons share one line. */
function directLines({ gpus, nics }: ContainerLocality, devices: ReadonlyMap<string, Device>, { virtual }: Snapshot): readonly string[] {
  const found = gpus.flatMap((key) => {
    const gpu = devices.get(key);
    const nearest = nics
      .flatMap(({ device, hasVerbs }) => ({ nic: devices.get(device), hasVerbs }))
      .toSorted((a, b) => byDistance(gpu, a.nic, b.nic))[0];
    if (gpu === undefined || nearest?.nic === undefined) return [];
    return [{ gpu, nic: nearest.nic, reasons: directReasons({ gpu, nic: nearest.nic, hasVerbs: nearest.hasVerbs, virtual }) }];
  });
  const groups = new Map<string, (typeof found)[number][]>();
  for (const one of found) {
    const key = one.reasons.map(({ effect }) => effect).join(' ');
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()].slice(0, MOST_GROUPS).flatMap(([first, ...alike]) => {
    if (first === undefined) return [];
    const { gpu, nic, reasons } = first;
    const also = alike.length === 0 ? '' : `, and ${counted(alike.length, 'GPU')} alike`;
    return [
      `Direct transfers between ${nameOf(gpu)} and ${nameOf(nic)} (GPUDirect)${also}: ${directAnswer(reasons)}.`,
      ...reasons.map(reasonLine),
    ];
  });
}

const MARKS: Readonly<Record<DirectReason['effect'], string>> = { helps: 'good', slows: 'slow', stops: 'bad', unknown: 'not known' };
const reasonLine = ({ effect, text, from }: DirectReason): string => `  ${MARKS[effect]}: ${text} [${from}]`;

function byDistance(gpu: Device | undefined, a: Device | undefined, b: Device | undefined): number {
  const [one, other] = [a, b].map((nic) => (gpu === undefined || nic === undefined ? undefined : pathBetween(gpu, nic)));
  if (one === undefined || other === undefined) return Number(one === undefined) - Number(other === undefined);
  return comparePaths(one, other);
}
