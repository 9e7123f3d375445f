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
