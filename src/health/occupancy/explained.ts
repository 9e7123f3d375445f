import type { DeviceUse, OwnedProcess, UseLimits } from '../../model/device-use.ts';

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
