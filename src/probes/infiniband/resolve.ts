import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';
import { isClaimed, isNetworkDriver, ownAddress } from '../kit/network-claims.ts';

/**
 * Resolves the forms of device ids that plugins use for RDMA devices: PCI address in any case and domain width (SR-IOV), auxiliary
 * name (scalable functions), name of the RDMA device, its uverbs device with or without path, and the names of DRA drivers in
 * claims.
 * A plain number names a share of a pool, not a device.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined && isNetworkDriver(claim.driver)) return ids(devices, (device) => isClaimed(claim, device));
  const name = deviceId.trim().replace(/^\/dev\/infiniband\//, '');
  if (name === '' || /^\d+$/.test(name)) return [];
  const address = fullAddress(name);
  if (address !== undefined) return ids(devices, (device) => ownAddress(device) === address);
  const lower = name.toLowerCase();
  return ids(devices, (device) => [device.id, ...device.aliases].some((alias) => alias.toLowerCase() === lower));
};

function ids(devices: readonly Device[], matches: (device: Device) => boolean): readonly string[] {
  return devices.filter(matches).map((device) => device.id);
}

/** Requires the function number: plugins always give it, and without it other text could match. */
function fullAddress(text: string): string | undefined {
  return /\.[0-7]$/.test(text) ? normalizePciAddress(text) : undefined;
}
