/** What the kubelet's Pods API says about one pod, beyond its name. */
export interface PodFacts {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  /** `Pending`, `Running`, …; empty when the kubelet reports none. */
  readonly phase: string;
  /** Labels that the configuration asks for; absent when the pod has none of them. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Containers that were created, with init containers and sidecars. */
  readonly containers: readonly { readonly name: string /** Without the name of the runtime. */; readonly id: string }[];
  /** The claim that the scheduler made for extended resources of the pod. */
  readonly extended?: ExtendedClaim;
}

export interface ExtendedClaim {
  /** Name of the ResourceClaim, in the namespace of the pod. */
  readonly claim: string;
  /** Extended resources that the claim serves, sorted, each once. */
  readonly resources: readonly string[];
}

/** Maps `namespace` and `pod` to what is known of the pod. */
export type PodFactsByName = ReadonlyMap<string, PodFacts>;

export function podName({ namespace, pod }: Pick<PodFacts, 'namespace' | 'pod'>): string {
  return `${namespace}\u0000${pod}`;
}
