import { podKey, type SimulatedContainer, type SimulatedPod } from './pods.ts';

/** A pod that a kubelet did not want any more after its start, and why. */
export interface RefusedPod {
  readonly pod: SimulatedPod;
  readonly error: Error;
}

/** Gives a pod as it is after it was admitted again, or fails with why it is refused. */
export type AdmitAgain = (pod: SimulatedPod) => Promise<SimulatedPod>;

/** The pods of a node, and which of them a kubelet has heard of since its start. */
export class KnownPods {
  readonly #admitAgain: AdmitAgain | undefined;
  readonly #pods = new Map<string, SimulatedPod>();
  readonly #undelivered = new Set<string>();
  /** Removed, and what they held is not free yet. */
  #leaving: readonly SimulatedPod[] = [];
  #isComplete = true;

  constructor(admitAgain: AdmitAgain | undefined) {
    this.#admitAgain = admitAgain;
  }

  /** A pod of the same name is replaced. */
  put(pod: SimulatedPod): void {
    const key = keyOf(pod);
    this.#pods.set(key, pod);
    this.#undelivered.delete(key);
  }

  find(namespace: string, name: string): SimulatedPod | undefined {
    return this.#pods.get(podKey(namespace, name));
  }

  /** Its containers end, and it goes on. */
  takeDown(namespace: string, name: string): void {
    const pod = this.find(namespace, name);
    if (pod !== undefined) this.#pods.set(keyOf(pod), { ...pod, isDown: true });
  }

  remove(namespace: string, name: string): void {
    const pod = this.find(namespace, name);
    if (pod === undefined) return;
    this.#leaving = [...this.#leaving, pod];
    this.#pods.delete(keyOf(pod));
  }

  all(): readonly SimulatedPod[] {
    return [...this.#pods.values()];
  }

  delivered(): readonly SimulatedPod[] {
    return this.all().filter((pod) => !this.#undelivered.has(keyOf(pod)));
  }

  /** Those that hold devices, also those that have ended or are gone and were not freed yet. */
  holding(): readonly SimulatedPod[] {
    return [...this.all(), ...this.#leaving];
  }

  /**
   * Frees what pods held that have ended or are gone, as happens before anything is listed or allocated. Gives the UIDs of the others;
   * undefined, and frees nothing, while the pod sources have not delivered.
   */
  freeEnded(): readonly string[] | undefined {
    if (!this.#isComplete) return undefined;
    this.#leaving = [];
    for (const [key, pod] of this.#pods) if (pod.ended === true) this.#pods.set(key, { ...pod, containers: pod.containers.map(emptied) });
    return this.all().flatMap(({ uid, ended }) => (ended === true ? [] : [uid]));
  }

  /** The kubelet starts, and knows none. */
  forget(): void {
    for (const key of this.#pods.keys()) this.#undelivered.add(key);
    this.#isComplete = false;
  }

  /** Each pod is known again, and admitted again if it has not ended; then the sources are complete. Gives those that were refused. */
  async deliver(): Promise<readonly RefusedPod[]> {
    const refused: RefusedPod[] = [];
    for (const key of [...this.#undelivered]) {
      this.#undelivered.delete(key);
      const pod = this.#pods.get(key);
      if (pod === undefined || pod.ended === true || this.#admitAgain === undefined) continue;
      try {
        this.#pods.set(key, await this.#admitAgain(pod));
      } catch (error) {
        this.#pods.set(key, { ...pod, ended: true });
        refused.push({ pod, error: error as Error });
      }
    }
    this.#isComplete = true;
    return refused;
  }
}

const keyOf = ({ namespace, name }: SimulatedPod): string => podKey(namespace, name);

const emptied = ({ devices, responses, ...container }: SimulatedContainer): SimulatedContainer => container;
