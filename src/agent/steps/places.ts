import type { LocalityFacts } from '../../join/localities.ts';
import type { RecordsByKey } from '../../model/device-record.ts';
import type { PodResources } from '../../model/pod-resources.ts';
import type { AssembleSettings } from '../inputs.ts';

/** Where the devices are, and what connects them. */
export const placeFacts = (
  { roles, cpuNodes = new Map() }: Pick<AssembleSettings, 'roles' | 'cpuNodes'>,
  known: RecordsByKey,
  { exclusive }: PodResources,
): LocalityFacts => ({ device: (key) => known.get(key)?.device, roleOf: (family) => roles?.get(family), cpuNodes, exclusive });
