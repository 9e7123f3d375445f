/** What a container needs in order to use a device: the content of a device plugin's `ContainerAllocateResponse`. */
export interface DeviceAccess {
  readonly deviceNodes: readonly { readonly path: string; readonly hostPath?: string; readonly permissions: string }[];
  readonly mounts?: readonly { readonly path: string; readonly hostPath: string; readonly readOnly: boolean }[];
  readonly env?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Fully qualified CDI names, `vendor.com/class=device`. */
  readonly cdiDevices?: readonly string[];
}
