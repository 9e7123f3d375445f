/** One container's wishes at the admission of its pod. Plain init containers leave their devices to those that come after them. */
export interface ContainerRequest {
  readonly container: string;
  readonly kind?: 'app' | 'sidecar' | 'init';
  readonly wants: readonly { readonly resource: string; readonly count: number }[];
  /** The kubelet has just started and found it running: it is left alone. */
  readonly isRunning?: boolean;
}

/** A pod that is to be admitted; its init containers and sidecars come first. */
export interface PodRequest {
  readonly podUid: string;
  readonly containers: readonly ContainerRequest[];
}

/**
 * How many of each resource a pod needs at the time when it needs most: all apps and sidecars together, or an init container with the
 * sidecars that were started before it.
 */
export function podWants(containers: readonly ContainerRequest[]): Map<string, number> {
  const together = new Map<string, number>();
  const sidecars = new Map<string, number>();
  const atOnce = new Map<string, number>();
  const add = (to: Map<string, number>, resource: string, count: number): number => {
    const sum = (to.get(resource) ?? 0) + count;
    to.set(resource, sum);
    return sum;
  };
  for (const { kind = 'app', wants } of containers) {
    for (const { resource, count } of wants) {
      if (kind !== 'init') add(together, resource, count);
      if (kind === 'app') continue;
      const needed = kind === 'sidecar' ? add(sidecars, resource, count) : (sidecars.get(resource) ?? 0) + count;
      atOnce.set(resource, Math.max(atOnce.get(resource) ?? 0, needed));
    }
  }
  for (const [resource, count] of atOnce) together.set(resource, Math.max(together.get(resource) ?? 0, count));
  return together;
}
