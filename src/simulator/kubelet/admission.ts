import type { SimulatedDeviceManager } from './device-manager.ts';
import type { SimulatedKubelet } from './kubelet.ts';
import type { SimulatedContainer, SimulatedDevice, SimulatedPod } from './pods.ts';

/** A pod before its admission: how many of what each container wants. Devices that are given here need no plugin. */
export interface WantedPod extends Omit<SimulatedPod, 'containers'> {
  readonly containers: readonly (SimulatedContainer & {
    readonly wants: readonly { readonly resource: string; readonly count: number }[];
  })[];
}

/**
 * Admits a pod with devices from plugins: from then on PodResources lists them. When one is not to be had the pod is refused: it has
 * ended before it began, and only v1alpha1 goes on listing it.
 */
export async function admitThroughPlugins(
  kubelet: SimulatedKubelet,
  manager: SimulatedDeviceManager,
  pod: WantedPod,
): Promise<SimulatedPod> {
  const granted = new Map<string, SimulatedContainer>();
  try {
    for (const { wants, ...container } of inOrder(pod.containers))
      granted.set(container.name, await grant(manager, pod.uid, container, wants));
  } catch (error) {
    manager.release(pod.uid);
    kubelet.admitPod({ ...pod, containers: pod.containers.map(({ wants, ...container }) => container), ended: true });
    throw error;
  }
  const containers = pod.containers.map(({ name }) => granted.get(name) as SimulatedContainer);
  const admitted = { ...pod, containers };
  kubelet.admitPod(admitted);
  return admitted;
}

/** Init containers and sidecars, as they are written, come before the apps. */
function inOrder(containers: WantedPod['containers']): WantedPod['containers'] {
  const isApp = ({ kind = 'app' }: SimulatedContainer): boolean => kind === 'app';
  return [...containers.filter((container) => !isApp(container)), ...containers.filter(isApp)];
}

async function grant(
  manager: SimulatedDeviceManager,
  podUid: string,
  container: SimulatedContainer,
  wants: WantedPod['containers'][number]['wants'],
): Promise<SimulatedContainer> {
  const { name, kind, devices = [] } = container;
  const grants = await manager.allocateAll({ podUid, container: name, ...(kind === undefined ? {} : { kind }), wants });
  const given = grants.flatMap(({ resource, deviceIds }) => deviceIds.map((id) => stockDevice(manager, resource, id)));
  const responses = Object.fromEntries(grants.map(({ resource, response }) => [resource, response]));
  return { ...container, devices: [...devices, ...given], responses };
}

function stockDevice(manager: SimulatedDeviceManager, resource: string, id: string): SimulatedDevice {
  const found = manager.stock().devices.find((device) => device.resource === resource && device.id === id);
  return found?.numaNodes === undefined ? { resource, id } : { resource, id, numaNodes: found.numaNodes };
}
