import { PodsByName, podKey, type SimulatedPod } from '../../../src/sim/kubelet/pods.ts';

/** A pod that a kubelet did not want any more after its start, and why. */
export interface RefusedPod {
  readonly pod: SimulatedPod;
  readonly error: Error;
}

/** Gives a pod as it is after it was admitted again, or fails with why it is refused. */
export type AdmitAgain = (pod: SimulatedPod) => Promise<SimulatedPod>;

/** The pods of a node, and which of them a kubelet has heard of since its start. */
export class KnownPods extends PodsByName {
  readonly #admitAgain: AdmitAgain | undefined;
  readonly #undelivered = new Set<string>();
  /** Removed, and what they held is not free yet. */
  #leaving: readonly SimulatedPod[] = [];
  #isComplete = true;

  constructor(admitAgain: AdmitAgain | undefined) {
    super();
    this.#admitAgain = admitAgain;
  }

  override put(pod: SimulatedPod): void {
    super.put(pod);
    this.#undelivered.delete(podKey(pod.namespace, pod.name));
  }

  override remove(namespace: string, name: string): void {
    const pod = this.find(namespace, name);
    if (pod !== undefined) this.#leaving = [...this.#leaving, pod];
    super.remove(namespace, name);
  }

  find(namespace: string, name: string): SimulatedPod | undefined {
    return this.byName.get(podKey(namespace, name));
  }

  override listed(): readonly SimulatedPod[] {
    return this.all().filter(({ namespace, name }) => !this.#undelivered.has(podKey(namespace, name)));
  }

  /** Also those that are gone and were not freed yet. */
  override holding(): readonly SimulatedPod[] {
    return [...this.all(), ...this.#leaving];
  }

  /** Undefined, and frees nothing, while the pod sources have not delivered. */
  override freeEnded(): readonly string[] | undefined {
    if (!this.#isComplete) return undefined;
    this.#leaving = [];
    return super.freeEnded();
  }

  /** The kubelet starts, and knows none. */
  forget(): void {
    for (const key of this.byName.keys()) this.#undelivered.add(key);
    this.#isComplete = false;
  }

  /** Each pod is known again, and admitted again if it has not ended; then the sources are complete. Gives those that were refused. */
  async deliver(): Promise<readonly RefusedPod[]> {
    const refused: RefusedPod[] = [];
    for (const key of [...this.#undelivered]) {
      this.#undelivered.delete(key);
      const pod = this.byName.get(key);
      if (pod === undefined || pod.ended === true || this.#admitAgain === undefined) continue;
      try {
        this.byName.set(key, await this.#admitAgain(pod));
      } catch (error) {
        this.byName.set(key, { ...pod, ended: true });
        refused.push({ pod, error: error as Error });
      }
    }
    this.#isComplete = true;
    return refused;
  }
}
