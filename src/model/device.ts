/**
 * A unit that the kubelet can hand to a container: a card, an instance of a card that is split, an adapter, a virtual function, a drive.
 * Plain data: it crosses a thread boundary and is compared field by field.
 */
export interface Device {
  /** Family that found the device; also the name of its folder below `src/probes`. */
  readonly family: string;
  /**
   * Stable name within the node and the value of the label `device`: a UUID, a name that the driver gives, a PCI address.
   * Never an index that changes with probe order.
   */
  readonly id: string;
  /**
   * Identifies the hardware within its family, whatever its name is: the UUID of a GPU, the node GUID and PCI address of an adapter, the serial
   * number of a drive. It differs for every piece of hardware that may follow under the same name. Null: it could not be read, so the
   * hardware under this name is unknown. Absent: the family has no better identity than `id`.
   */
  readonly identity?: string | null;
  /** Kind within the family: `gpu`, `pf`, `vf`, … A short closed set per family. */
  readonly kind: string;
  /** All other names that a plugin may use for the device, in lower case if case has no meaning. */
  readonly aliases: readonly string[];
  /** `id` of the device of the same family that contains it: GPU of an instance, physical function of a virtual one. */
  readonly parent?: string;
  /** `dddd:bb:dd.f`, lower case; domain of four digits unless it needs more. */
  readonly pciAddress?: string;
  /** Absent when the platform does not report it (`-1` in sysfs). */
  readonly numaNode?: number;
  readonly model?: string;
  /** Name of the product, where `model` is only a code. */
  readonly product?: string;
  readonly vendor?: string;
  readonly uuid?: string;
  readonly serial?: string;
  /** Name of the kernel driver: `acme_core`. */
  readonly driver?: string;
  /** Version of a driver that is not a part of the kernel. */
  readonly driverVersion?: string;
  readonly firmware?: string;
  /**
   * Devices of the same family reachable over direct links between devices, also through switches: `id`, number of links, and the word that the
   * vendor's tools have for it.
   */
  readonly peers?: readonly { readonly device: string; readonly links: number; readonly path: string }[];
  /** Index in the vendor's tools: `0`; `0:1` for an instance. It may change at a reboot. */
  readonly index?: string;
  /** Number of the device node: the 3 of `/dev/acme3`. */
  readonly minor?: number;
  /** Number of the module on a board with several GPUs, as the driver gives it. */
  readonly moduleId?: number;
  /** Where a technician finds it, as the platform tells it: `chassis 1821325191014, slot 24, tray 14, host 1`. */
  readonly location?: string;
  /** Ids of the PCI-SIG, four digits in lower case: `0x15b3`. */
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  /** Path from the root complex to the device: `pci0000:00/0000:00:01.0/0000:01:00.0`. */
  readonly pciPath?: string;
  readonly direct?: DirectAccess;
  /** Only of a GPU; absent when nothing about it could be read. */
  readonly peerMemory?: PeerMemory;
  /** PCI address of the physical function that a virtual or scalable function belongs to. */
  readonly physicalFunction?: string;
  /** Number of the physical function's `virtfn` link. */
  readonly vfIndex?: number;
  /** Number that the administrator assigned to a scalable function. */
  readonly sfNumber?: number;
  /** Link layers of its ports, as the kernel writes them: `Ethernet`. */
  readonly linkLayers?: readonly string[];
  /** Network interfaces of its ports. */
  readonly netdevs?: readonly string[];
  /** Absolute paths of the device nodes that a container needs. */
  readonly characterDevices?: readonly string[];
  /** Profile by which a device was split: `1g.10gb`. */
  readonly profile?: string;
  /** Ids of an instance in the driver of a GPU that is split. */
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** A part of a board that only the board itself uses: it is not offered to containers, and `expect` does not count it. */
  readonly isInternal?: true;
  /**
   * Why no driver of the family has the function: nobody uses it, it was handed to another driver, its driver never started it, or it was
   * unbound later. A device of the first two kinds is not offered to containers, and `expect` does not count one that is not in use.
   */
  readonly unserved?: 'not-in-use' | 'handed-over' | 'not-started' | 'unbound';
  /** Driver stack, when several exist for such devices. */
  readonly stack?: string;
}

/** Name of a device across families, for people and for all outputs. */
export function deviceKey(device: Pick<Device, 'family' | 'id'>): string {
  return `${device.family}/${device.id}`;
}

type Identified = Pick<Device, 'identity' | 'pciAddress' | 'uuid'>;

/**
 * Whether a name now belongs to other hardware. Without both identities, as in a state file of an older version, PCI address and UUID tell
 * it. An absent value is not a difference, because it may be read later.
 */
export function isOtherDevice(before: Identified, now: Identified): boolean {
  const differs = (field: keyof Identified): boolean =>
    typeof before[field] === 'string' && typeof now[field] === 'string' && before[field] !== now[field];
  const areKnown = typeof before.identity === 'string' && typeof now.identity === 'string';
  return areKnown ? differs('identity') : differs('pciAddress') || differs('uuid');
}

/** What decides whether two devices can move data without the memory of the host. Read when a device appears, and when its PCI path changes. */
export interface DirectAccess {
  /** How the IOMMU treats the device: `identity`, `DMA`, `DMA-FQ`, …; absent when sysfs shows no group. Source: /sys/kernel/iommu_groups. */
  readonly iommu?: string;
  /** Bridges above the device whose whole configuration space could be read. `redirects`: they send transfers between devices up to the root (ACS). */
  readonly bridges?: readonly { readonly address: string; readonly redirects: boolean }[];
}

/** Whether the driver of a GPU lets other devices reach its memory. */
export interface PeerMemory {
  /** Absent: unknown. */
  readonly can?: boolean;
  readonly why: string;
  /** The file that showed it. */
  readonly from: string;
}

/** Whether the machine is a virtual one. */
export interface VirtualMachine {
  readonly is: boolean;
  /** As the firmware names the machine. */
  readonly name?: string;
  /** The file that showed it. */
  readonly from: string;
}
