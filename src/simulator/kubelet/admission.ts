import type { SimulatedDeviceManager } from './device-manager.ts';
import type { SimulatedKubelet } from './kubelet.ts';
import type { SimulatedContainer, SimulatedDevice, SimulatedPod } from './pods.ts';

/** A pod before its admission: how many of what each container wants from plugins, besides the devices that it has otherwise. */
export interface WantedPod extends Omit<SimulatedPod, 'containers'> {
  readonly containers: readonly (SimulatedContainer & {
    readonly wants: readonly { readonly resource: string; readonly count: number }[];
  })[];
}

/** Admits a pod with devices from plugins: from then on PodResources lists them. Rejects, and admits nothing, when one is not to be had. */
export async function admitThroughPlugins(
  kubelet: SimulatedKubelet,
  manager: SimulatedDeviceManager,
  pod: WantedPod,
): Promise<SimulatedPod> {
  const containers: SimulatedContainer[] = [];
  try {
    for (const { wants, ...container } of pod.containers) {
      const devices: SimulatedDevice[] = [...(container.devices ?? [])];
      for (const { resource, count } of wants) {
        const request = { podUid: pod.uid, container: container.name, resource, count };
        const { deviceIds } = await manager.allocate(request);
        devices.push(...deviceIds.map((id) => stockDevice(manager, resource, id)));
      }
      containers.push({ ...container, devices });
    }
  } catch (error) {
    manager.release(pod.uid);
    throw error;
  }
  const admitted = { ...pod, containers };
  kubelet.admitPod(admitted);
  return admitted;
}

function stockDevice(manager: SimulatedDeviceManager, resource: string, id: string): SimulatedDevice {
  const found = manager.stock().devices.find((device) => device.resource === resource && device.id === id);
  return found?.numaNodes === undefined ? { resource, id } : { resource, id, numaNodes: found.numaNodes };
}
