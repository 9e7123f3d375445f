import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';

/** Names of Intel's DRA driver: for GPUs, and for GPUs that a virtual machine gets as a whole. */
const DRIVERS: ReadonlySet<string> = new Set(['gpu.intel.com', 'gpu-vfio.intel.com']);

/** Resources of Intel's plugin that show all GPUs to a monitor. Their holder uses none. */
const MONITORING = /^gpu\.intel\.com\/(?:i915_|xe_)?monitoring$/;

/**
 * Resolves the ids of Intel's device plugin and DRA driver: `card0-2` is the third share of `card0`, `/dev/dri/renderD128` is for generic
 * plugins, a PCI address may have any spelling, and claims name `0000-03-00-0-0xe20b` or `card0`.
 */
export const resolve: Resolve = ({ resource, deviceId, claim }, devices) => {
  if (claim !== undefined) {
    if (!DRIVERS.has(claim.driver)) return [];
    return ids(devices.filter((device) => claimNames(device).some(({ device: name }) => name === claim.device)));
  }
  if (MONITORING.test(resource)) return [];
  const name = deviceId.trim();
  const node = /^(?:\/dev\/dri\/)?((?:card|renderD)\d{1,6})(?:-\d{1,6})?$/.exec(name)?.[1];
  if (node !== undefined) return ids(devices.filter(({ characterDevices = [] }) => characterDevices.includes(`/dev/dri/${node}`)));
  const address = /\.[0-7]$/.test(name) ? normalizePciAddress(name) : undefined;
  return address === undefined ? [] : ids(devices.filter(({ id }) => id === address));
};

const ids = (devices: readonly Device[]): readonly string[] => devices.map(({ id }) => id);

/** The driver names a GPU by its address and PCI device id; with the option `classic` by its card. */
export function claimNames({ id, pciDevice, driver, characterDevices = [] }: Device): readonly ClaimName[] {
  const card = characterDevices.flatMap((path) => /\/(card\d+)$/.exec(path)?.[1] ?? [])[0];
  const names = [
    ...(pciDevice === undefined ? [] : [`${id.replaceAll(/[:.]/g, '-')}-${pciDevice}`]),
    ...(card === undefined ? [] : [card]),
  ];
  const claimed = driver?.endsWith('vfio-pci') === true ? 'gpu-vfio.intel.com' : 'gpu.intel.com';
  return names.map((device) => ({ driver: claimed, device }));
}
