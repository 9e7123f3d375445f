import type { Device } from '../../../src/generated/deviceplugin/v1beta1/api.ts';
import { refusal } from '../../../src/sim/kubelet/allocations.ts';
import { numaNodesOf } from '../../../src/sim/kubelet/resource-states.ts';
import type { NodeMask, Wish } from './topology-hints.ts';

/** Asks the plugin which of the available devices it would take. Empty where it does not say. */
export type Ask = (available: readonly string[], mustInclude: readonly string[], size: number) => Promise<readonly string[]>;

/**
 * Devices for one resource of one container: first what an init container of the pod leaves over, then from the nodes of the affinity,
 * then from elsewhere. The plugin is asked where there is a choice within the nodes, and where the nodes do not have enough.
 */
export async function chooseDevices(resource: string, wish: Wish, affinity: NodeMask, ask: Ask): Promise<string[]> {
  const { free, reusable, count } = wish;
  const taken = new Set([...reusable].slice(0, count));
  const take = (from: Iterable<string>): boolean => {
    for (const id of from) {
      if (taken.size < count) taken.add(id);
    }
    return taken.size === count;
  };
  if (taken.size === count) return [...taken];
  const needed = count - taken.size;
  if (free.size < needed) {
    throw refusal(`requested number of devices unavailable for ${resource}. Requested: ${needed}, Available: ${free.size}`);
  }
  const { aligned, others } = byAffinity(wish, affinity);
  const askFrom = async (ids: readonly string[]): Promise<readonly string[]> => {
    const proposed = new Set(await ask([...ids, ...taken], [...taken], count));
    return ids.filter((id) => proposed.has(id));
  };
  if (needed < aligned.length) {
    if (!take(await askFrom(aligned))) take(aligned);
  } else if (!take(aligned)) {
    if (!take(await askFrom([...aligned, ...others].filter((id) => !taken.has(id))))) take(others);
  }
  return [...taken];
}

/** Without an affinity, or where no device says where it is, none is aligned. Devices that say nothing come last. */
function byAffinity({ devices, free }: Wish, affinity: NodeMask): { readonly aligned: string[]; readonly others: string[] } {
  const nodesOf = (id: string): readonly number[] => numaNodesOf(devices.get(id) as Device) ?? [];
  const ids = [...free];
  if (affinity === undefined || ![...devices.values()].some((device) => (numaNodesOf(device) ?? []).length > 0)) {
    return { aligned: [], others: ids };
  }
  const isAligned = (id: string): boolean => nodesOf(id).some((node) => (affinity & (1 << node)) !== 0);
  const others = ids.filter((id) => !isAligned(id));
  return {
    aligned: ids.filter(isAligned),
    others: [...others.filter((id) => nodesOf(id).length > 0), ...others.filter((id) => nodesOf(id).length === 0)],
  };
}
