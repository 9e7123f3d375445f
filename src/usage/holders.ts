import type { Allocation } from '../model/allocation.ts';
import type { UsageInput } from './used-device.ts';

/** One container that holds a device, with all ids by which it holds it. */
export interface Holder {
  /** Namespace, pod and container as one text. */
  readonly name: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** The first by name, where the container holds the device by several resources. */
  readonly resource: string;
  readonly uid: string | undefined;
  /** The container's ids among the ids of all holders, 0 to 1. */
  readonly share: number;
}

/** Joins the allocations of one device by container. The shares add up to 1. */
export function holdersOf(allocations: readonly Allocation[], uidOf: UsageInput['uidOf']): readonly Holder[] {
  const found = new Map<string, Holder>();
  const part = 1 / allocations.length;
  for (const allocation of allocations) {
    const { namespace, pod, container, resource } = allocation;
    const name = `${namespace}/${pod}/${container}`;
    const known = found.get(name);
    found.set(name, {
      ...{ name, namespace, pod, container },
      resource: known !== undefined && known.resource < resource ? known.resource : resource,
      uid: known?.uid ?? uidOf(allocation),
      share: (known?.share ?? 0) + part,
    });
  }
  return [...found.values()];
}
