import type { LocalityFacts } from '../../join/localities.ts';
import type { PodResources } from '../../model/pod-resources.ts';
import type { AssembleSettings, Known } from '../inputs.ts';

/** Where the devices are, and what connects them. */
export const placeFacts = (
  { roles, cpuNodes = new Map() }: Pick<AssembleSettings, 'roles' | 'cpuNodes'>,
  known: Known,
  { exclusive }: PodResources,
): LocalityFacts => ({ device: (key) => known.get(key)?.device, roleOf: (family) => roles?.get(family), cpuNodes, exclusive });
