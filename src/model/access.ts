/** Before the name of a resource: the variable of a container that lists its devices of that resource. */
export const DEVICES_VARIABLE_PREFIX = 'DEVICE_AGENT_DEVICES_';

/** What a container needs in order to use a device: the content of a device plugin's `ContainerAllocateResponse`. */
export interface DeviceAccess {
  readonly deviceNodes: readonly { readonly path: string; readonly hostPath?: string; readonly permissions: string }[];
  readonly mounts?: readonly { readonly path: string; readonly hostPath: string; readonly readOnly: boolean }[];
  /** Values of several devices become a list. `{RESOURCE}` in a name is the name of the resource. */
  readonly env?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  /** Fully qualified CDI names, `vendor.com/class=device`. */
  readonly cdiDevices?: readonly string[];
  /** Only for vendors whose container runtime gets a list of the devices to inject. */
  readonly visible?: VisibleDevice;
}

/** How a vendor's container runtime gets a device: by a variable that lists ids, or by one mount per id. */
export interface VisibleDevice {
  /** Name of the variable that lists ids. */
  readonly variable: string;
  /** Directory of mounts that name devices, as in `/var/run/acme-devices/<id>`. Absent: the runtime supports no such mounts. */
  readonly directory?: string;
  /** The forms of the id that the runtime understands; the index of a part can name its parent, too: `<index>:<part>`. */
  readonly ids: { readonly uuid?: string; readonly index?: string };
}
