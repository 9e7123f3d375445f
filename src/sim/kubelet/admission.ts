import type { ContainerGrant, PodRequest } from './allocations.ts';
import type { SimulatedDeviceManager } from './device-manager.ts';
import type { SimulatedKubelet } from './kubelet.ts';
import type { SimulatedContainer, SimulatedPod } from './pods.ts';

/** A pod before its admission: `wants` has the resources and counts per container. Devices listed in `devices` need no plugin. */
export interface WantedPod extends Omit<SimulatedPod, 'containers'> {
  readonly containers: readonly (SimulatedContainer & Required<Pick<SimulatedContainer, 'wants'>>)[];
}

/**
 * Admits a pod with devices from plugins. PodResources lists the pod at once, and each device when its plugin has answered. When a device is not available, the kubelet refuses the pod: it
 * counts as ended, and only v1alpha1 still lists it.
 */
export async function admitThroughPlugins(
  kubelet: SimulatedKubelet,
  manager: SimulatedDeviceManager,
  pod: WantedPod,
): Promise<SimulatedPod> {
  const grants: ContainerGrant[] = [];
  kubelet.announcePod(pod);
  try {
    const admitted = await withGrants(manager, pod, undefined, (grant) => {
      grants.push(grant);
      kubelet.announcePod(given(pod, grants));
    });
    kubelet.admitPod(admitted);
    return admitted;
  } catch (error) {
    manager.release(pod.uid);
    kubelet.admitPod({ ...pod, ended: true });
    throw error;
  }
}

/** Returns the pod with the devices that the manager allocates. */
export async function withGrants(
  manager: SimulatedDeviceManager,
  pod: SimulatedPod,
  isRunning: (container: SimulatedContainer) => boolean = () => false,
  onGrant?: (grant: ContainerGrant) => void,
): Promise<SimulatedPod> {
  const containers = inOrder(pod.containers).map((container): PodRequest['containers'][number] => {
    const { name, kind = 'app', wants = [] } = container;
    return { container: name, kind, wants, isRunning: isRunning(container) };
  });
  return given(pod, await manager.admit({ podUid: pod.uid, containers }, onGrant));
}

const given = (pod: SimulatedPod, grants: readonly ContainerGrant[]): SimulatedPod => ({
  ...pod,
  containers: pod.containers.map((one) =>
    withDevices(
      one,
      grants.filter(({ container }) => container === one.name),
    ),
  ),
});

/** Puts init containers and sidecars, in their given order, before the app containers. */
function inOrder(containers: readonly SimulatedContainer[]): SimulatedContainer[] {
  const isApp = ({ kind = 'app' }: SimulatedContainer): boolean => kind === 'app';
  return [...containers.filter((container) => !isApp(container)), ...containers.filter(isApp)];
}

function withDevices(container: SimulatedContainer, grants: readonly ContainerGrant[]): SimulatedContainer {
  const { wants = [], devices = [] } = container;
  const others = devices.filter((device) => !wants.some(({ resource }) => resource === device.resource));
  const responses = Object.fromEntries(grants.map(({ resource, response }) => [resource, response]));
  return { ...container, devices: [...others, ...grants.flatMap((grant) => grant.devices)], responses };
}
