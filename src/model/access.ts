/** What a container needs in order to use a device: the content of a device plugin's `ContainerAllocateResponse`. */
export interface DeviceAccess {
  readonly deviceNodes: readonly { readonly path: string; readonly hostPath?: string; readonly permissions: string }[];
  readonly mounts?: readonly { readonly path: string; readonly hostPath: string; readonly readOnly: boolean }[];
  readonly env?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Fully qualified CDI names, `vendor.com/class=device`. */
  readonly cdiDevices?: readonly string[];
  /** Only for vendors whose container runtime is told by a list which devices to bring in. */
  readonly visible?: VisibleDevice;
}

/** How a vendor's container runtime is told of one device: by a variable that lists ids, or by one mount per id. */
export interface VisibleDevice {
  /** `NVIDIA_VISIBLE_DEVICES`. */
  readonly variable: string;
  /** Where the runtime looks for mounts that name devices: `/var/run/nvidia-container-devices`. Absent: it does not look. */
  readonly directory?: string;
  /** The forms of the id that the runtime understands; a MIG instance's index is `<gpu>:<instance>`. */
  readonly ids: { readonly uuid?: string; readonly index?: string };
}
