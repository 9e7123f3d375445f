import type { DeviceUse, UseLimits } from '../../model/device-use.ts';
import type { Finding } from '../../model/health.ts';
import { heldFindings } from './held.ts';
import { leftoverFindings } from './leftovers.ts';
import { strangerFindings } from './strangers.ts';

/**
 * Returns all findings of the conditions of use. What is not known gives no finding: a raised condition then stays and none is raised.
 * While the kubelet does not answer, nothing is known. Nor is it of a read from before the present holders: what ran then was of the holders
 * of then. Pure.
 */
export function useFindings(use: DeviceUse, limits: UseLimits): readonly Finding[] {
  if (!use.areHoldersKnown || !use.isReadWithHolders) return [];
  return [...strangerFindings(use, limits), ...leftoverFindings(use, limits), ...heldFindings(use)];
}
