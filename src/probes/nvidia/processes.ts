import type { Tree } from '../../host/fs/tree.ts';
import { parseCgroup } from '../../host/process/cgroup.ts';
import type { DeviceProcess } from '../../model/collection.ts';
import type { MigSample, ProcessSample } from './sample.ts';

/**
 * Returns the processes of a GPU with their owners, each process once. The driver lists a process with compute and graphics twice with
 * the same memory, so the larger value counts, not the sum. With `instance`, only processes in that MIG instance are returned.
 */
export function processesOf(
  list: readonly ProcessSample[],
  proc: Tree,
  instance?: Pick<MigSample, 'gpuInstance' | 'computeInstance'>,
): readonly DeviceProcess[] {
  const isInside = ({ gpuInstance, computeInstance }: ProcessSample): boolean =>
    instance === undefined || (gpuInstance === instance.gpuInstance && computeInstance === instance.computeInstance);
  const byPid = new Map<number, ProcessSample>();
  for (const listed of list.filter(isInside)) {
    const memoryBytes = Math.max(listed.memoryBytes ?? -1, byPid.get(listed.pid)?.memoryBytes ?? -1);
    byPid.set(listed.pid, { ...listed, memoryBytes: memoryBytes < 0 ? undefined : memoryBytes });
  }
  return [...byPid.values()].map(({ pid, memoryBytes, utilizationRatio }) => ({
    pid,
    ...(memoryBytes === undefined ? {} : { memoryUsedBytes: memoryBytes }),
    ...(utilizationRatio === undefined ? {} : { utilization: utilizationRatio }),
    ...parseCgroup(proc.text(`${pid}/cgroup`) ?? ''),
  }));
}
