import { admitThroughPlugins } from './kubelet/admission.ts';
import type { SimulatedDeviceManager } from './kubelet/device-manager.ts';
import type { SimulatedKubelet } from './kubelet/kubelet.ts';
import type { SimulatedDevice } from './kubelet/pods.ts';
import type { PlannedPod } from './pods.ts';

export interface NodePodsDependencies {
  readonly kubelet: SimulatedKubelet;
  readonly manager: SimulatedDeviceManager;
}

/**
 * Changes the kubelet's pods according to a plan. A pod with plugin resources is admitted through its plugin. It waits while the plugin
 * is absent or has too few healthy devices, as with a controller that creates it again.
 */
export class NodePods {
  readonly #parts: NodePodsDependencies;
  readonly #admitted = new Set<string>();
  readonly #admissions = new Map<string, Promise<void>>();
  #plan: ReadonlyMap<string, PlannedPod> = new Map();
  #stock: readonly SimulatedDevice[] = [];
  /** Resources of the stock. All others are those of device plugins. */
  #inStock: ReadonlySet<string> = new Set();
  #isStopped = false;

  constructor(parts: NodePodsDependencies) {
    this.#parts = parts;
  }

  /** Sets the devices that need no plugin. */
  setStock(devices: readonly SimulatedDevice[]): void {
    this.#stock = devices;
    this.#inStock = new Set(devices.map(({ resource }) => resource));
    this.stockChanged();
  }

  /** Call this after a plugin sent another list. */
  stockChanged(): void {
    if (this.#isStopped) return;
    const { kubelet, manager } = this.#parts;
    kubelet.setStock({ devices: [...this.#stock, ...manager.stock().devices], cpus: [0, 1, 2, 3, 4, 5, 6, 7], memory: [] });
  }

  /** A new pod waits for a device that is unusable; one that holds such a device keeps it. */
  place(
    pods: readonly PlannedPod[],
    deviceOf: (resource: string, id: string) => SimulatedDevice,
    unusable: ReadonlySet<string> = new Set(),
  ): void {
    this.#plan = new Map(pods.map((pod) => [nameOf(pod), pod]));
    for (const pod of this.#parts.kubelet.pods()) if (!this.#plan.has(nameOf(pod))) this.#remove(pod);
    for (const [name, pod] of this.#plan) {
      const waits = pod.devices.some(({ deviceIds }) => deviceIds.some((id) => unusable.has(id)));
      if (!waits && !this.#admitted.has(name) && !this.#admissions.has(name)) this.#admit(pod, deviceOf);
    }
  }

  /** Resolves when no admission is running. Nothing is written afterwards. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#parts.manager.stop();
    await Promise.all(this.#admissions.values());
  }

  #admit(planned: PlannedPod, deviceOf: (resource: string, id: string) => SimulatedDevice): void {
    const { kubelet, manager } = this.#parts;
    const name = nameOf(planned);
    const isThere = ({ resource }: { readonly resource: string }): boolean => this.#inStock.has(resource);
    const devices = planned.devices.filter(isThere).flatMap(({ resource, deviceIds }) => deviceIds.map((id) => deviceOf(resource, id)));
    const wants = planned.devices
      .filter((part) => !isThere(part))
      .map(({ resource, deviceIds }) => ({ resource, count: deviceIds.length }));
    const pod = { namespace: planned.namespace, name: planned.name, uid: uidOf(name) };
    if (wants.length === 0) {
      kubelet.admitPod({ ...pod, containers: [{ name: planned.container, devices }] });
      this.#admitted.add(name);
      return;
    }
    // A scheduler does not place a pod on a node without the resource; the kubelet would admit the pod without devices.
    if (wants.some(({ resource, count }) => (manager.capacity(resource)?.allocatable ?? 0) < count)) return;
    const admission = admitThroughPlugins(kubelet, manager, { ...pod, containers: [{ name: planned.container, devices, wants }] }).then(
      () => {
        this.#admitted.add(name);
        if (!this.#plan.has(name)) this.#remove(pod);
      },
      // The devices are not available now; the next step tries again.
      () => {},
    );
    this.#admissions.set(
      name,
      admission.finally(() => this.#admissions.delete(name)),
    );
  }

  #remove(pod: { readonly namespace: string; readonly name: string; readonly uid: string }): void {
    this.#admitted.delete(nameOf(pod));
    this.#parts.kubelet.removePod(pod.namespace, pod.name);
    this.#parts.manager.release(pod.uid);
  }
}

const nameOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }): string => `${namespace}/${name}`;

/** Returns a valid UID that depends only on the name. */
function uidOf(name: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(name)) hash = ((hash ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  const digits = hash.toString(16).padStart(16, '0');
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-4${digits.slice(13, 16)}-8000-${digits.slice(0, 12)}`;
}
