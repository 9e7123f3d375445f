import type { Tree } from '../../host/fs/tree.ts';
import { parseCgroup } from '../../host/process/cgroup.ts';
import type { DeviceProcess } from '../../model/collection.ts';
import type { MigSample, ProcessSample } from './sample.ts';

/**
 * Processes of a GPU with their owners, each once: a process that computes and draws is listed twice with the same memory, so the larger
 * figure counts, not the sum. With `instance` only those inside that MIG instance.
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
