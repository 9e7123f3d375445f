import type { Claim } from './allocation.ts';

/** What names the hardware of one device of a claim. Plain data, in the form in which probes report devices. */
export interface ClaimHardware {
  /** Who says so: the driver's metadata file, or the CDI specs that the driver wrote. */
  readonly by: 'metadata' | 'cdi';
  /** In the form of {@link Device.pciAddress}. */
  readonly pciAddress?: string;
  readonly uuid?: string;
  /** Name of a network interface on the host. */
  readonly interfaceName?: string;
  /** Absolute paths of device nodes on the host. */
  readonly deviceNodes?: readonly string[];
  /** The device is a part of the hardware at `pciAddress`, so the address alone does not identify it. */
  readonly isPartition?: true;
}

/** How drivers of claims describe devices of a family in metadata files and CDI specs. */
export interface ClaimForms {
  /** The class of sysfs for each directory below `/dev` that has device nodes of the family. */
  readonly nodeClasses?: Readonly<Record<string, string>>;
  /** Paths of device nodes that only a part of a device needs. The part also needs the node of its parent. */
  readonly partNodes?: RegExp;
  /** Values of the attribute `type` that mean a part of a device. */
  readonly partTypes?: readonly string[];
}

/** Hardware of the devices of claims, keyed by {@link claimDeviceKey}; at most one entry of each source, metadata first. */
export type ClaimHardwareIndex = ReadonlyMap<string, readonly ClaimHardware[]>;

/** When the files that name the hardware of a claim's device were read, on the monotonic clock. */
export interface ClaimTimes {
  /** End of the first read that had them. */
  readonly firstMs: number;
  /** Begin of the last one. */
  readonly lastMs: number;
}

type ClaimDevice = Pick<Claim, 'namespace' | 'name' | 'driver' | 'pool' | 'device'>;

/** The claim is part of the key, because a file of an ended claim may still name the device otherwise. */
export function claimDeviceKey({ namespace, name, driver, pool, device }: ClaimDevice): string {
  return [namespace, name, driver, pool, device].join('\u0000');
}

/** Name of a device in a ResourceSlice: the driver, and the device's name in the pool of the node. */
export interface ClaimName {
  readonly driver: string;
  readonly device: string;
}

/** DNS label (RFC 1123), which Kubernetes requires for the name of a device. */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;

export const isLabel = (text: string): boolean => LABEL.test(text);

/** Makes a label of a name: lower case, and a dash for every other character. Undefined when that is none, or a bare number. */
export function labelOf(name: string): string | undefined {
  const label = name.toLowerCase().replace(/[^a-z0-9]/g, '-');
  return isLabel(label) && !/^\d+$/.test(label) ? label : undefined;
}
