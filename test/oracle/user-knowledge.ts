import { minutes, seconds } from '../../src/model/duration.ts';
import { Held, type Sure, type Told } from './held.ts';
import { INTERVAL_MS } from './node.ts';

/** A pod by which a GPU is held, or whose id does not tell the GPU. */
export interface TruePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly container: string;
  /** The GPU that the kubelet names for it. */
  readonly holds?: number;
  /** It holds for others. */
  readonly isReservation: boolean;
  /** Its scheduler chooses the GPU. */
  readonly isDelegated: boolean;
}

export interface TrueProcess {
  readonly pid: number;
  readonly gpu: number;
  /** Absent: it runs outside of pods. */
  readonly pod?: TruePod;
  readonly mib: number;
}

/** What a GPU does: `held`: its driver holds the utilization at 100 % while all else rests; `unseen`: it works for nobody who can be seen. */
export type Load = 'rest' | 'work' | 'held' | 'unseen';

/** What is so on one GPU now. */
export interface GpuTruth {
  readonly holders: readonly TruePod[];
  readonly processes: readonly TrueProcess[];
  readonly load: Load;
  /** Holders whose UID nobody tells: without names, a checkpoint with two pods for one id of one container tells none of them apart. */
  readonly unclear: readonly TruePod[];
}

/** Time of an account in one collection, by pod; and whether the GPU is free. */
export interface TrueUse {
  readonly users: readonly string[];
  readonly mib: ReadonlyMap<string, number>;
  readonly shares: ReadonlyMap<string, number>;
  readonly isFree: boolean;
  readonly isWorking: boolean;
}

export const IDLE_AFTER_MS = minutes(2);
export const BUSY_AFTER_MS = minutes(1);
/** Collections until a change of pods or processes shows everywhere: the kubelet must answer after the read that showed a process. */
const SETTLED = 3;

/** Who uses a GPU, by the processes on it: docs/health.md, and the shares of docs. */
export function useOf({ holders, processes, load, unclear }: GpuTruth): TrueUse {
  const mib = new Map<string, number>();
  const byPod = new Map<TruePod, number>();
  for (const { pod, mib: own } of processes) if (pod !== undefined) byPod.set(pod, (byPod.get(pod) ?? 0) + own);
  const users = [...byPod.keys()].filter((pod) => !holders.includes(pod));
  for (const [pod, own] of byPod) if (!unclear.includes(pod)) mib.set(pod.uid, own);
  const delegating = holders.filter(({ isReservation }) => isReservation);
  const given = holders.length === 0 ? 1 : delegating.length / holders.length;
  const isGiven = (pod: TruePod): boolean => users.length > 0 && pod.isReservation;
  return {
    users: users.map(({ uid }) => uid),
    mib,
    shares: new Map([
      ...holders.map((pod) => [pod.uid, isGiven(pod) ? 0 : 1 / holders.length] as const),
      ...users.map(({ uid }) => [uid, given / users.length] as const),
    ]),
    isFree: holders.length === 0 && users.length === 0,
    isWorking: load === 'work' || load === 'unseen',
  };
}

/** Which conditions of use hold now. */
function holding({ holders, processes, load, unclear }: GpuTruth): ReadonlyMap<string, Sure> {
  const isDelegating = holders.some(({ isReservation }) => isReservation);
  const isStranger = ({ pod }: TrueProcess): boolean => pod === undefined || (!isDelegating && !pod.isDelegated && !holders.includes(pod));
  // A pod that may be one of the holders raises nothing, and what counted before may go on.
  const isOpen = unclear.length > 0 && processes.some(({ pod }) => pod !== undefined);
  const isOutside = processes.some(({ pod }) => pod === undefined);
  const sure = (holds: boolean): Sure => (holds ? 'yes' : 'no');
  return new Map([
    ['HeldByStranger', isOpen && !isOutside ? 'maybe' : sure(processes.some(isStranger))],
    ['SameIdInPods', sure(holders.length > 1)],
    ['IdleHeld', sure(holders.length > 0 && (load === 'rest' || load === 'held'))],
    ['BusyWithoutHolder', sure(holders.length === 0 && load === 'unseen')],
  ]);
}

const FOR_MS: Readonly<Record<string, number>> = {
  HeldByStranger: minutes(1),
  SameIdInPods: minutes(1),
  IdleHeld: IDLE_AFTER_MS,
  BusyWithoutHolder: BUSY_AFTER_MS,
};

/** What an agent must say of one GPU and of its use. This model does not depend on the implementation of the agent. */
export class UserKnowledge {
  readonly #held = new Map(Object.entries(FOR_MS).map(([type, ms]) => [type, new Held(ms)]));
  #before: ReadonlyMap<string, Sure> = new Map();
  readonly #changed = new Map<string, number>();
  #text = '';
  #unchanged = 0;

  /** Whether nothing of the GPU changed for some collections. */
  get isSettled(): boolean {
    return this.#unchanged >= SETTLED;
  }

  look(truth: GpuTruth, nowMs: number): ReadonlyMap<string, Told> {
    const now = holding(truth);
    const text = JSON.stringify(truth);
    this.#unchanged = text === this.#text ? this.#unchanged + 1 : 0;
    this.#text = text;
    const told = [...this.#held].flatMap(([type, held]): [string, Told][] => {
      if (now.get(type) !== this.#before.get(type)) this.#changed.set(type, nowMs);
      const isFresh = nowMs - (this.#changed.get(type) ?? 0) < SETTLED * INTERVAL_MS + seconds(1);
      const how = held.look(isFresh ? 'maybe' : (now.get(type) ?? 'no'), nowMs);
      return how === undefined ? [] : [[type, how]];
    });
    this.#before = now;
    return new Map(told);
  }

  /** Holders and users are found anew. */
  restarted(isForgetful: boolean, nowMs: number): void {
    this.#unchanged = 0;
    for (const [type, held] of this.#held) {
      held.restarted(isForgetful);
      this.#changed.set(type, nowMs);
    }
  }
}
