import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';

/**
 * Forms of device ids that plugins use for RDMA devices: PCI address in any case and domain width (SR-IOV), auxiliary name
 * (scalable functions), name of the RDMA device, its uverbs device with or without path, and DRANET's device names in claims.
 * A bare number names a share of a pool and no device.
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

/** Without function number the text could be anything; a plugin always tells it. */
function fullAddress(text: string): string | undefined {
  return /\.[0-7]$/.test(text) ? normalizePciAddress(text) : undefined;
}

/** A scalable function shares the address of the function that carries it, and is not named by it. */
function ownAddress(device: Device): string | undefined {
  return device.kind === 'sf' ? undefined : device.pciAddress;
}

/** `pci-0000-8a-00-0`; of a device that is not on the PCI bus, and before release 0.7 of each, by the name of the network interface. */
function isDranetName(name: string, device: Device): boolean {
  const match = /^pci-([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])$/i.exec(name);
  if (match === null) return (device.netdevs ?? []).some((netdev) => dranetName(netdev) === name);
  const [, domain, bus, slot, fn] = match;
  return ownAddress(device) === normalizePciAddress(`${domain}:${bus}:${slot}.${fn}`);
}

/** A label of DNS as Kubernetes wants the name of a device to be (RFC 1123). */
const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
/** RFC 4648, in lower case. */
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/**
 * The name that DRANET, whose driver is `dra.net`, gives to a device that it knows by its network interface: that of the interface,
 * or, where it is no label of DNS (`eth_0`), `net-` and its bytes in base32 without padding. Source: package `names` of DRANET.
 */
export function dranetName(netdev: string): string {
  return LABEL.test(netdev) ? netdev : `net-${base32(Buffer.from(netdev))}`;
}

function base32(bytes: Uint8Array): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0')).join('');
  return (bits.match(/.{1,5}/g) ?? []).map((five) => BASE32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('');
}
