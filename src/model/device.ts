/**
 * A unit that the kubelet can hand to a container: a GPU, a MIG instance, an HCA, a virtual function, an FPGA region.
 * Plain data: it crosses a thread boundary and is compared field by field.
 */
export interface Device {
  /** Family that found it, which is also the name of its folder below `src/probes`. */
  readonly family: string;
  /**
   * Stable name within the node and the value of the label `device`: a GPU's UUID, an HCA's `mlx5_0`, a PCI address.
   * Never an index that changes with probe order.
   */
  readonly id: string;
  /** What it is within its family: `gpu`, `mig`, `pf`, `vf`, `sf`, `fpga`, … A short closed set per family. */
  readonly kind: string;
  /** Every other name under which a plugin may hand it out, in lower case where case carries no meaning. */
  readonly aliases: readonly string[];
  /** `id` of the device of the same family that contains it: GPU of a MIG instance, PF of a VF. */
  readonly parent?: string;
  /** `dddd:bb:dd.f`, lower case; domain of four digits unless it needs more. */
  readonly pciAddress?: string;
  /** Absent when the platform does not say (`-1` in sysfs). */
  readonly numaNode?: number;
  readonly model?: string;
  readonly vendor?: string;
  readonly uuid?: string;
  readonly serial?: string;
  readonly driver?: string;
  readonly firmware?: string;
  /** Devices of the same family that it reaches over direct links (NVLink, xGMI), through switches too: their `id`, and over how many links. */
  readonly peers?: readonly { readonly device: string; readonly links: number }[];
  /** Position as the vendor's tools count: `0`; `0:1` for a MIG instance. It may change with a reboot. */
  readonly index?: string;
  /** Number of the device node: the 3 of `/dev/nvidia3`. */
  readonly minor?: number;
  /** Number of the slot on a board of several GPUs, as NVML counts modules. */
  readonly moduleId?: number;
  /** Ids of the PCI-SIG, four digits in lower case: `0x15b3`. */
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  /** From the root complex down to the device, separated by `/`: `pci0000:00/0000:00:01.0/0000:01:00.0`. */
  readonly pciPath?: string;
  /** PCI address of the physical function that a virtual or scalable function belongs to. */
  readonly physicalFunction?: string;
  /** Number of the physical function's `virtfn` link. */
  readonly vfIndex?: number;
  /** Number that the administrator gave to a scalable function. */
  readonly sfNumber?: number;
  /** What its ports speak: `InfiniBand`, `Ethernet`. */
  readonly linkLayers?: readonly string[];
  /** Network interfaces of its ports. */
  readonly netdevs?: readonly string[];
  /** Device nodes that a container needs to use it, as absolute paths. */
  readonly characterDevices?: readonly string[];
  /** `1g.10gb`. */
  readonly migProfile?: string;
  /** Numbers by which the driver names a MIG instance. */
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** Which driver stack an FPGA is used by: `dfl`, `xrt`, … */
  readonly stack?: string;
}

/** Identity of a device across families. */
export function deviceKey(device: Pick<Device, 'family' | 'id'>): string {
  return `${device.family}/${device.id}`;
}

/** Whether a name has come to stand for another device, by what stays with a device whatever it is called. */
export function isOtherDevice(before: Pick<Device, 'pciAddress' | 'uuid'>, now: Pick<Device, 'pciAddress' | 'uuid'>): boolean {
  return areDifferent(before.pciAddress, now.pciAddress) || areDifferent(before.uuid, now.uuid);
}

/** What is not told now may be told later. */
const areDifferent = (a: string | undefined, b: string | undefined): boolean => a !== undefined && b !== undefined && a !== b;
