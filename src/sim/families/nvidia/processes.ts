import { createHash } from 'node:crypto';
import type { SimulatedHolder } from '../../family-simulation.ts';
import { type SimulatedGpu, type SimulatedPids, STRANGER } from './document.ts';

const FIRST_PID = 20_000;
/** PIDs that are reserved for the pods of one GPU: one for the GPU, one for each instance. */
const PER_GPU = 8;

/** A pod has one process on all its GPUs. The PID comes from its first GPU, so that the files of ended processes do not pile up. */
export function pidsOf(gpus: readonly SimulatedGpu[]): SimulatedPids {
  const pids = new Map<string, number>();
  for (const { holder, pid } of gpus.flatMap(holdersOf)) if (!pids.has(holder.podUid)) pids.set(holder.podUid, pid);
  return pids;
}

/** Returns the files of the processes below `proc/`. */
export function processFiles(gpus: readonly SimulatedGpu[], pids: SimulatedPids): Readonly<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const { holder } of gpus.flatMap(holdersOf)) {
    const pid = pids.get(holder.podUid) ?? 0;
    const id = createHash('sha256').update(holder.podUid).digest('hex');
    const pod = holder.podUid.replaceAll('-', '_');
    const cgroup = `/kubepods.slice/kubepods-pod${pod}.slice/cri-containerd-${id}.scope`;
    Object.assign(files, filesOf(pid, holder.program, Number.parseInt(id.slice(0, 8), 16), cgroup));
  }
  for (const { index } of gpus.filter(({ hasStranger }) => hasStranger)) {
    Object.assign(files, filesOf(STRANGER.firstPid + index, STRANGER.program, 4_711, '/user.slice/user-1000.slice/session-3.scope'));
  }
  return files;
}

/** `start`: the start time, field 22, distinguishes the process from an earlier one with the same PID. */
function filesOf(pid: number, program: string, start: number, cgroup: string): Readonly<Record<string, string>> {
  const fields = Array.from({ length: 18 }, () => '0').join(' ');
  return {
    [`proc/${pid}/comm`]: `${program}\n`,
    [`proc/${pid}/stat`]: `${pid} (${program}) S ${fields} ${start} 0 0\n`,
    [`proc/${pid}/cgroup`]: `0::${cgroup}\n`,
  };
}

function holdersOf({ index, holder, instances }: SimulatedGpu): readonly { readonly holder: SimulatedHolder; readonly pid: number }[] {
  const first = FIRST_PID + PER_GPU * index;
  const all = [{ holder, pid: first }, ...instances.map((instance, n) => ({ holder: instance.holder, pid: first + 1 + n }))];
  return all.flatMap((each) => (each.holder === undefined ? [] : [{ holder: each.holder, pid: each.pid }]));
}
