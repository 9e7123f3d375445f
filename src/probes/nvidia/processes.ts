import type { DeviceProcess } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import { raise } from '../kit/finding.ts';
import type { OwnFacts, ProcessFacts } from '../kit/process-facts.ts';
import { conditions } from './conditions.ts';
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
    byPid.set(listed.pid, { ...byPid.get(listed.pid), ...listed, memoryBytes: memoryBytes < 0 ? undefined : memoryBytes });
  }
  return [...byPid.values()].map(({ pid, memoryBytes, utilizationRatio, isMpsClient }) => {
    const { owner, own } = factsOf(pid);
    return {
      pid,
      ...(own === undefined || own.name === '' ? {} : { name: own.name }),
      ...(own?.isStuck === true ? { isStuck: true as const } : {}),
      ...(isMpsClient === true ? { isMpsClient } : {}),
      ...(memoryBytes === undefined ? {} : { memoryUsedBytes: memoryBytes }),
      ...(utilizationRatio === undefined ? {} : { utilization: utilizationRatio }),
      ...owner,
    };
  });
}

/** Memory of one device between two reads. */
interface Waiting {
  /** Keys of the processes in state D. */
  readonly keys: ReadonlySet<string>;
  /** Process that the condition is about. It was in state D at each read since it was chosen. */
  readonly suspect?: string;
}

/** Processes of a device in one read. */
export interface UsersOfDevice {
  readonly pids: readonly number[];
  /** False when the driver may not list all of them. */
  readonly isComplete: boolean;
}

/**
 * Finds processes that are in state D at every read. A sound process is in that state for moments, so one read proves nothing, and two
 * processes that take turns prove nothing either.
 */
export class StuckProcesses {
  #before: ReadonlyMap<string, Waiting> = new Map();
  #now = new Map<string, Waiting>();

  /** Begins a new collection, in which the driver answered. */
  renew(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }

  /** Returns no finding while it is unknown whether a process is stuck. */
  findings(device: string, { pids, isComplete }: UsersOfDevice, factsOf: (pid: number) => ProcessFacts): readonly Finding[] {
    const users = [...new Set(pids)].map((pid) => factsOf(pid).own);
    const stuck = users.filter((own): own is OwnFacts => own?.isStuck === true);
    const before = this.#before.get(device);
    const suspect = suspectOf(before, stuck);
    this.#now.set(device, { keys: new Set(stuck.map(({ key }) => key)), ...(suspect === undefined ? {} : { suspect: suspect.key }) });
    if (suspect !== undefined) return [stuckFinding(suspect)];
    const isFirstSight = before === undefined && stuck.length > 0;
    if (!isComplete || isFirstSight || users.includes(undefined)) return [];
    return [
      raise(conditions.StuckProcess, 'NoneStuck', { status: false, message: 'no process of the device waits in the kernel at every read' }),
    ];
  }
}

/** When the suspect ends, one read finds no suspect. The time of the next one then begins anew. */
function suspectOf(before: Waiting | undefined, stuck: readonly OwnFacts[]): OwnFacts | undefined {
  if (before === undefined) return undefined;
  return stuck.find(({ key }) => (before.suspect === undefined ? before.keys.has(key) : before.suspect === key));
}

/** Names that NVIDIA's own programs have. When one of them waits, it waits for the driver. */
const DRIVER_PROGRAM = /^nvidia/;

function stuckFinding({ pid, name }: OwnFacts): Finding {
  const message = `process ${pid} (${name}) waits in the kernel (state D) at every read`;
  return raise(conditions.StuckProcess, 'WaitsInKernel', { status: true, message, ...(DRIVER_PROGRAM.test(name) && { remedy: 'reboot' }) });
}
