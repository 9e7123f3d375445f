import type { Place } from '../../model/locality.ts';

/** The kubelet asks for the resources of one container one after the other, within milliseconds. */
const TOGETHER_MS = 1_000;

/**
 * The devices that the kubelet has just allocated, as far as they can belong to the container that it asks for now. No request names its
 * container. Up to Kubernetes 1.36 the kubelet admits one container after the other and asks for each resource once, so a request belongs to
 * the grants right before it, unless its resource is among them. Later kubelets can mix the requests of several pods. A wrong guess only
 * makes a preference worse: the kubelet alone decides which devices are free.
 */
export class Admission {
  #atMs = Number.NEGATIVE_INFINITY;
  #grants: ReadonlyMap<string, readonly Place[]> = new Map();

  /** `nowMs`: monotonic clock. */
  granted(resource: string, places: readonly Place[], nowMs: number): void {
    this.#grants = new Map([...this.#others(resource, nowMs), [resource, places]]);
    this.#atMs = nowMs;
  }

  /** Devices of other resources that the same container probably got. */
  near(resource: string, nowMs: number): readonly Place[] {
    return [...this.#others(resource, nowMs).values()].flat();
  }

  #others(resource: string, nowMs: number): ReadonlyMap<string, readonly Place[]> {
    return nowMs - this.#atMs <= TOGETHER_MS && !this.#grants.has(resource) ? this.#grants : new Map();
  }
}
