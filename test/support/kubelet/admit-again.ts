import { withGrants } from '../../../src/sim/kubelet/admission.ts';
import type { SimulatedDeviceManager } from '../../../src/sim/kubelet/device-manager.ts';
import type { SimulatedPod } from '../../../src/sim/kubelet/pods.ts';

/**
 * What happens to each pod when a kubelet has started and its sources deliver: it is admitted again. Containers that run are left
 * alone; for others the plugin must be there, and what they held must be healthy. Gives the pod with what the manager says it has.
 */
export async function admitAgain(manager: SimulatedDeviceManager, pod: SimulatedPod): Promise<SimulatedPod> {
  try {
    return await withGrants(manager, pod, ({ kind }) => kind !== 'init' && pod.isDown !== true);
  } catch (error) {
    manager.release(pod.uid);
    throw error;
  }
}
