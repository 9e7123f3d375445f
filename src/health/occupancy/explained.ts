import type { DeviceUse, OwnedProcess, UseLimits } from '../../model/device-use.ts';
import { oneLine } from '../../model/one-line.ts';

/** The kernel keeps 15 characters of a name. */
const NAME_LENGTH = 15;

export function useLimits(settings: { readonly 'allowed-processes': readonly string[]; readonly 'dirty-mib': number }): UseLimits {
  return {
    allowed: new Set(settings['allowed-processes'].map((name) => name.slice(0, NAME_LENGTH))),
    dirtyBytes: settings['dirty-mib'] * 1_048_576,
  };
}

/** Whether the process may use a device that it does not hold. A process without a name is not allowed. */
export function isAllowed({ name }: Pick<OwnedProcess, 'name'>, { allowed }: UseLimits): boolean {
  return name !== undefined && allowed.has(name.slice(0, NAME_LENGTH));
}

/**
 * Memory above the limit that these processes do not explain, in bytes; 0 when it is at or below the limit. Unknown when the memory of
 * the device, or of one of the processes that could explain it, was not read.
 */
export function unexplainedMemory(
  { memoryUsedBytes }: DeviceUse,
  by: readonly OwnedProcess[],
  { dirtyBytes }: UseLimits,
): number | 'unknown' {
  if (memoryUsedBytes === undefined) return 'unknown';
  const known = by.reduce((sum, process) => sum + (process.memoryUsedBytes ?? 0), 0);
  const left = memoryUsedBytes - known;
  if (left <= dirtyBytes) return 0;
  return by.some((process) => process.memoryUsedBytes === undefined) ? 'unknown' : left;
}

/** Engines whose work these processes do not explain, with that share of time. Unknown when a share of one of them was not read. */
export function unexplainedEngines(use: DeviceUse, by: readonly OwnedProcess[]): ReadonlyMap<string, number> | 'unknown' {
  const { activity, idleShare = 0 } = use;
  const busy = Object.entries(activity?.engines ?? {});
  if (busy.length === 0) return activity?.isIdle === 'unknown' ? 'unknown' : new Map();
  const left = busy.map(([engine, share]): [string, number] => [
    engine,
    share - by.reduce((sum, { utilization }) => sum + (utilization?.[engine] ?? 0), 0),
  ]);
  const above = left.filter(([, share]) => share > idleShare);
  const isUnread = above.some(([engine]) => by.some(({ utilization }) => utilization?.[engine] === undefined));
  return isUnread ? 'unknown' : new Map(above);
}

/**
 * Returns why a container must not start on the device; undefined when the device is clean. What cannot be read is not clean. `use` is
 * absent when the device was not read. A process of a pod that holds the device is no dirt: the device is shared.
 */
export function whyDirty(use: DeviceUse | undefined, limits: UseLimits): string | undefined {
  if (use === undefined) return 'it could not be read, so its cleanliness cannot be verified';
  if (!use.isForHoldersOnly) return 'the processes of its family are not known, so its cleanliness cannot be verified';
  if (!use.hasAllProcesses) return 'its processes could not be read, so its cleanliness cannot be verified';
  const others = use.processes.filter((process) => !isAllowed(process, limits));
  const strangers = others.filter(({ owner }) => owner !== 'holder' && owner !== 'unknown');
  if (strangers.length > 0) return `it is used by ${listed(strangers.map(processText))}`;
  if (others.length > 0 && !use.areHoldersKnown) return 'the kubelet does not report whose processes use it';
  const unknown = others.filter(({ owner }) => owner === 'unknown');
  if (unknown.length > 0) return `it is used by ${listed(unknown.map(processText))}`;
  const memory = unexplainedMemory(use, use.processes, limits);
  if (memory === 'unknown') return 'its memory in use could not be read, so its cleanliness cannot be verified';
  return memory > 0 ? `no process explains ${memoryText(memory)} of its memory` : undefined;
}

const MOST = 3;

/** Lists the first three, and counts the others. */
export function listed(texts: readonly string[]): string {
  const others = texts.length - MOST;
  return others > 0 ? `${texts.slice(0, MOST).join(', ')} and ${others} more` : texts.join(', ');
}

/** `process 4242 (python3) of pod ml/train-0, 1024 MiB, gpu 97 %`. */
export function processText({
  pid,
  name,
  isStuck,
  owner,
  podName,
  containerId,
  memoryUsedBytes,
  utilization = {},
  isMpsClient,
}: OwnedProcess): string {
  const called = name === undefined ? '' : ` (${oneLine(name)})`;
  const engines = Object.entries(utilization).filter(([, share]) => share > 0);
  return [
    `process ${pid}${called} ${placeText(owner, podName, containerId)}`,
    ...(memoryUsedBytes === undefined ? [] : [memoryText(memoryUsedBytes)]),
    ...engines.map(([engine, share]) => shareText(engine, share)),
    ...(isMpsClient === true ? ['a client of an MPS server'] : []),
    ...(isStuck === true ? ['waits in the kernel'] : []),
  ].join(', ');
}

function placeText(owner: OwnedProcess['owner'], podName: string | undefined, containerId: string | undefined): string {
  if (podName !== undefined) return `of pod ${podName}`;
  if (owner === 'unknown') return 'of an unknown owner';
  return containerId === undefined ? 'outside of pods' : `of container ${containerId.slice(0, 12)} outside of pods`;
}

export const memoryText = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;

export const shareText = (engine: string, share: number): string => `${engine} ${Math.round(share * 100)} %`;
