import type { DeviceProcess } from '../../model/collection.ts';
import type { ProcessFacts } from '../kit/process-facts.ts';
import type { MigSample, ProcessSample } from './sample.ts';

/** Instance of a GPU in which a process runs. */
type Instance = Pick<MigSample, 'gpuInstance' | 'computeInstance'>;

/** Returns the processes inside an instance, or all of them without `instance`. */
export function processesIn(list: readonly ProcessSample[], instance?: Instance): readonly ProcessSample[] {
  if (instance === undefined) return list;
  return list.filter(
    ({ gpuInstance, computeInstance }) => gpuInstance === instance.gpuInstance && computeInstance === instance.computeInstance,
  );
}

/**
 * Returns the processes of a device with their names and owners, each process once. The driver lists a process with compute and graphics
 * twice with about the same memory, so the larger value counts, not the sum.
 */
export function processesOf(list: readonly ProcessSample[], factsOf: (pid: number) => ProcessFacts): readonly DeviceProcess[] {
  const byPid = new Map<number, ProcessSample>();
  for (const listed of list) {
    const memoryBytes = Math.max(listed.memoryBytes ?? -1, byPid.get(listed.pid)?.memoryBytes ?? -1);
    byPid.set(listed.pid, { ...listed, memoryBytes: memoryBytes < 0 ? undefined : memoryBytes });
  }
  return [...byPid.values()].map(({ pid, memoryBytes, utilizationRatio }) => {
    const { owner, own } = factsOf(pid);
    return {
      pid,
      ...(own === undefined || own.name === '' ? {} : { name: own.name }),
      ...(own?.isStuck === true ? { isStuck: true as const } : {}),
      ...(memoryBytes === undefined ? {} : { memoryUsedBytes: memoryBytes }),
      ...(utilizationRatio === undefined ? {} : { utilization: utilizationRatio }),
      ...owner,
    };
  });
}
