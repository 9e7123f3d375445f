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
