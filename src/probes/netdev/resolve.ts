import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';
import { dranetNames, isClaimed, SRIOV_DRIVER, sriovName } from '../kit/network-claims.ts';

/**
 * Resolves a PCI address in any case and domain width, which is the id of every pool of the SR-IOV device plugin, and the names of the
 * DRA drivers `dra.net` and `sriovnetwork.k8snetworkplumbingwg.io`. The driver `cni.dra.networking.x-k8s.io` has no fixed names: its claims
 * are found by the hardware that its files name.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined) return ids(devices, (device) => isClaimed(claim, device));
  // Plugins always give the number of the function. Without it, other text could match.
  const address = /\.[0-7]$/.test(deviceId.trim()) ? normalizePciAddress(deviceId) : undefined;
  return address === undefined ? [] : ids(devices, (device) => device.pciAddress === address);
};

const ids = (devices: readonly Device[], matches: (device: Device) => boolean): readonly string[] =>
  devices.filter(matches).map(({ id }) => id);

/** Names of a function in the slices of both drivers. The driver for SR-IOV offers virtual functions only. */
export function claimNames(device: Device): readonly ClaimName[] {
  const name = device.kind === 'vf' ? sriovName(device) : undefined;
  return [...dranetNames(device), ...(name === undefined ? [] : [{ driver: SRIOV_DRIVER, device: name }])];
}
