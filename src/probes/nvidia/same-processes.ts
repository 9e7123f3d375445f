import type { DeviceProcess } from '../../model/collection.ts';

/** Whether two lists tell the same of the same processes, in the same order. */
export function areEqual(a: readonly DeviceProcess[], b: readonly DeviceProcess[]): boolean {
  return a.length === b.length && a.every((process, at) => isEqual(process, b[at] as DeviceProcess));
}

function isEqual(a: DeviceProcess, b: DeviceProcess): boolean {
  const [used, before] = [Object.entries(a.utilization ?? {}), b.utilization ?? {}];
  return (
    a.pid === b.pid &&
    a.memoryUsedBytes === b.memoryUsedBytes &&
    a.podUid === b.podUid &&
    a.containerId === b.containerId &&
    used.length === Object.keys(before).length &&
    used.every(([engine, share]) => share === before[engine])
  );
}
