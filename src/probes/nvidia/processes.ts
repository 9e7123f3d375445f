import type { Tree } from '../../host/fs/tree.ts';
import { parseCgroup } from '../../host/process/cgroup.ts';
import type { DeviceProcess } from '../../model/collection.ts';
import { numberValue } from './cell.ts';
import { cellAt, childrenOf, type Element } from './document.ts';
import { shareAt } from './nvml/process-shares.ts';

interface Listed {
  readonly pid: number;
  readonly memoryUsedBytes?: number;
  readonly utilization?: Readonly<Record<string, number>>;
  /** Present for a process inside a MIG instance. */
  readonly instance?: string;
}

/**
 * Processes of a GPU, each once: a process that computes and draws is listed twice with the same memory, so the larger
 * figure counts, not the sum. With `instance` (`<gpu instance>/<compute instance>`) only those inside that MIG instance.
 */
export function processesOf(gpu: Element, proc: Tree, instance?: string): readonly DeviceProcess[] {
  const byPid = new Map<number, Listed>();
  for (const listed of childrenOf(gpu, 'processes/process_info').flatMap(readProcess)) {
    if (instance !== undefined && listed.instance !== instance) continue;
    const known = byPid.get(listed.pid);
    const memory = Math.max(listed.memoryUsedBytes ?? -1, known?.memoryUsedBytes ?? -1);
    const { pid, utilization } = listed;
    byPid.set(pid, { pid, ...(memory < 0 ? {} : { memoryUsedBytes: memory }), ...(utilization === undefined ? {} : { utilization }) });
  }
  return [...byPid.values()].map((listed) => ({
    ...listed,
    ...parseCgroup(proc.text(`${listed.pid}/cgroup`) ?? ''),
  }));
}

function readProcess(element: Element): readonly Listed[] {
  const pid = cellAt(element, 'pid');
  if (pid.kind !== 'number' || pid.quantity !== 'count' || !Number.isSafeInteger(pid.value) || pid.value <= 0) return [];
  const memory = numberValue(cellAt(element, 'used_memory'), 'bytes');
  const utilization = readUtilization(element);
  const gpuInstance = cellAt(element, 'gpu_instance_id');
  const computeInstance = cellAt(element, 'compute_instance_id');
  return [
    {
      pid: pid.value,
      ...(memory === undefined ? {} : { memoryUsedBytes: Number(memory) }),
      ...(utilization.length === 0 ? {} : { utilization: Object.fromEntries(utilization) }),
      ...(gpuInstance.kind === 'number' && computeInstance.kind === 'number'
        ? { instance: `${gpuInstance.value}/${computeInstance.value}` }
        : {}),
    },
  ];
}

const ENGINES = ['gpu', 'memory', 'encoder', 'decoder', 'jpeg', 'ofa'];

/** Told by the library alone. */
function readUtilization(element: Element): readonly (readonly [string, number])[] {
  return ENGINES.flatMap((engine) => {
    const share = numberValue(cellAt(element, shareAt(engine)), 'ratio');
    return share === undefined ? [] : [[engine, Number(share)] as const];
  });
}
