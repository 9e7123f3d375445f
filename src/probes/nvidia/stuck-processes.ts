import type { Finding } from '../../model/health.ts';
import type { OwnFacts, ProcessFacts } from '../kit/process-facts.ts';
import { STUCK_PROCESS } from './conditions.ts';

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
      { type: STUCK_PROCESS, status: false, reason: 'NoneStuck', message: 'no process of the device waits in the kernel at every read' },
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
  return {
    type: STUCK_PROCESS,
    status: true,
    reason: 'WaitsInKernel',
    message: `process ${pid} (${name}) waits in the kernel (state D) at every read`,
    ...(DRIVER_PROGRAM.test(name) ? { remedy: 'reboot' } : {}),
  };
}
