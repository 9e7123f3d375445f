/**
 * A unit that the kubelet can hand to a container: a GPU, a MIG instance, an HCA, a virtual function, an FPGA region.
 * Plain data: it crosses a thread boundary and is compared field by field.
 */
export interface Device {
  /** Family that found the device; also the name of its folder below `src/probes`. */
  readonly family: string;
  /**
   * Stable name within the node and the value of the label `device`: a GPU's UUID, an HCA's `mlx5_0`, a PCI address.
   * Never an index that changes with probe order.
   */
  readonly id: string;
  /** Kind within the family: `gpu`, `mig`, `pf`, `vf`, `sf`, `fpga`, … A short closed set per family. */
  readonly kind: string;
  /** All other names that a plugin may use for the device, in lower case if case has no meaning. */
  readonly aliases: readonly string[];
  /** `id` of the device of the same family that contains it: GPU of a MIG instance, PF of a VF. */
  readonly parent?: string;
  /** `dddd:bb:dd.f`, lower case; domain of four digits unless it needs more. */
  readonly pciAddress?: string;
  /** Absent when the platform does not report it (`-1` in sysfs). */
  readonly numaNode?: number;
  readonly model?: string;
  readonly vendor?: string;
  readonly uuid?: string;
  readonly serial?: string;
  readonly driver?: string;
  readonly firmware?: string;
  /** Devices of the same family reachable over direct links (NVLink, xGMI), also through switches: `id` and number of links. */
  readonly peers?: readonly { readonly device: string; readonly links: number }[];
  /** Index in the vendor's tools: `0`; `0:1` for a MIG instance. It may change at a reboot. */
  readonly index?: string;
  /** Number of the device node: the 3 of `/dev/nvidia3`. */
  readonly minor?: number;
  /** Module number (NVML) of a GPU on a board with several GPUs. */
  readonly moduleId?: number;
  /** Ids of the PCI-SIG, four digits in lower case: `0x15b3`. */
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  /** Path from the root complex to the device: `pci0000:00/0000:00:01.0/0000:01:00.0`. */
  readonly pciPath?: string;
  /** PCI address of the physical function that a virtual or scalable function belongs to. */
  readonly physicalFunction?: string;
  /** Number of the physical function's `virtfn` link. */
  readonly vfIndex?: number;
  /** Number that the administrator assigned to a scalable function. */
  readonly sfNumber?: number;
  /** Link layers of its ports: `InfiniBand`, `Ethernet`. */
  readonly linkLayers?: readonly string[];
  /** Network interfaces of its ports. */
  readonly netdevs?: readonly string[];
  /** Absolute paths of the device nodes that a container needs. */
  readonly characterDevices?: readonly string[];
  /** `1g.10gb`. */
  readonly migProfile?: string;
  /** Ids of a MIG instance in the driver. */
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** Driver stack of an FPGA: `dfl`, `xrt`, … */
  readonly stack?: string;
}

/** Identity of a device across families. */
export function deviceKey(device: Pick<Device, 'family' | 'id'>): string {
  return `${device.family}/${device.id}`;
}

/** Whether a name now belongs to another device, checked by PCI address and UUID. */
export function isOtherDevice(before: Pick<Device, 'pciAddress' | 'uuid'>, now: Pick<Device, 'pciAddress' | 'uuid'>): boolean {
  return areDifferent(before.pciAddress, now.pciAddress) || areDifferent(before.uuid, now.uuid);
}

/** An absent value is not a difference, because it may be read later. */
const areDifferent = (a: string | undefined, b: string | undefined): boolean => a !== undefined && b !== undefined && a !== b;
