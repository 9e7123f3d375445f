import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import { type ClaimName, isLabel } from '../../model/claim-name.ts';
import type { Device } from '../../model/device.ts';

/**
 * Resolves the forms of device ids that plugins use for RDMA devices: PCI address in any case and domain width (SR-IOV), auxiliary
 * name (scalable functions), name of the RDMA device, its uverbs device with or without path, and DRANET's device names in claims.
 * A plain number names a share of a pool, not a device.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined && claim.driver === 'dra.net') return ids(devices, (device) => isDranetName(claim.device, device));
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

/** A scalable function has the address of the function that carries it, so the address does not identify it. */
function ownAddress(device: Device): string | undefined {
  return device.kind === 'sf' ? undefined : device.pciAddress;
}

/** DRANET uses names like `pci-0000-8a-00-0`. Devices outside PCI, and all devices before release 0.7, use the interface name. */
function isDranetName(name: string, device: Device): boolean {
  const match = /^pci-([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])$/i.exec(name);
  if (match === null) return (device.netdevs ?? []).some((netdev) => dranetName(netdev) === name);
  const [, domain, bus, slot, fn] = match;
  return ownAddress(device) === normalizePciAddress(`${domain}:${bus}:${slot}.${fn}`);
}

/** Names that DRANET gives to a device, the one of newer releases first. */
export function claimNames(device: Device): readonly ClaimName[] {
  const address = ownAddress(device);
  const names = [...(address === undefined ? [] : [`pci-${address.replace(/[:.]/g, '-')}`]), ...(device.netdevs ?? []).map(dranetName)];
  return names.map((name) => ({ driver: 'dra.net', device: name }));
}

/** Base32 alphabet of RFC 4648 in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * Returns the name that DRANET (driver `dra.net`) gives to a device with this network interface. That is the interface name. When it
 * is not a DNS label (`eth_0`), it is `net-` and the bytes in base32 without padding. Source: package `names` of DRANET.
 */
export function dranetName(netdev: string): string {
  return isLabel(netdev) ? netdev : `net-${base32(Buffer.from(netdev))}`;
}

function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('');
}
