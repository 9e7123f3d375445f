import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimName, isLabel } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';

/** Names of DRA drivers that hand out the network functions of more than one family. */

/** Driver of the project dra-driver-sriov. It names a virtual function by its PCI address with dashes: `0000-08-00-3`. */
export const SRIOV_DRIVER = 'sriovnetwork.k8snetworkplumbingwg.io';

const DRANET_DRIVER = 'dra.net';

/** Whether the names of a driver's claims are known here. */
export const isNetworkDriver = (driver: string): boolean => driver === DRANET_DRIVER || driver === SRIOV_DRIVER;

/** Whether a claim is for the device. */
export function isClaimed({ driver, device: name }: Pick<Claim, 'driver' | 'device'>, device: Device): boolean {
  if (driver === DRANET_DRIVER) return isDranetName(name, device);
  return driver === SRIOV_DRIVER && sriovName(device) === name.toLowerCase();
}

/** Name that the SR-IOV driver gives to a function. */
export const sriovName = (device: Device): string | undefined => ownAddress(device)?.replace(/[:.]/g, '-');

/** DRANET uses names like `pci-0000-8a-00-0`. Devices outside PCI, and all devices before release 0.7, use the interface name. */
function isDranetName(name: string, device: Device): boolean {
  const match = /^pci-([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])$/i.exec(name);
  if (match === null) return (device.netdevs ?? []).some((netdev) => dranetName(netdev) === name);
  const [, domain, bus, slot, fn] = match;
  return ownAddress(device) === normalizePciAddress(`${domain}:${bus}:${slot}.${fn}`);
}

/** Names that DRANET gives to a device, the one of newer releases first. */
export function dranetNames(device: Device): readonly ClaimName[] {
  const address = ownAddress(device);
  const names = [...(address === undefined ? [] : [`pci-${address.replace(/[:.]/g, '-')}`]), ...(device.netdevs ?? []).map(dranetName)];
  return names.map((name) => ({ driver: DRANET_DRIVER, device: name }));
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

/** A scalable function has the address of the function that carries it, so the address does not identify it. */
export function ownAddress(device: Device): string | undefined {
  return device.kind === 'sf' ? undefined : device.pciAddress;
}

/** Numbers of the virtual functions of a function, by PCI address: those of its `virtfn` links. `names`: the entries of its directory. */
export function virtualFunctionsOf(sys: Tree, address: string, names?: readonly string[]): ReadonlyMap<string, number> {
  const directory = `bus/pci/devices/${address}`;
  return new Map(
    (names ?? sys.list(directory)).flatMap((name) => {
      const number = /^virtfn(\d{1,5})$/.exec(name)?.[1];
      const target = number === undefined ? undefined : sys.link(`${directory}/${name}`);
      return target === undefined ? [] : [[basename(target), Number(number)] as const];
    }),
  );
}

/** A network interface of a device. */
export interface Netdev {
  readonly name: string;
  /** Number of its port, from 0; absent when the file `dev_port` does not tell. */
  readonly devPort?: number;
  /** On the switch in the adapter, it stands for another function: the number of a virtual function, or something else. */
  readonly represents?: number | 'other';
}

/**
 * The interfaces in the directory `net` of a device. In switchdev mode the representors of virtual functions have the same `dev_port` as the
 * interface of the port, and another `phys_port_name`: `pf0vf1`, or a number by older drivers, where a port has `p0` or none. Source: Linux
 * Documentation/networking/switchdev.rst.
 */
export function netdevsOf(sys: Tree, directory: string): readonly Netdev[] {
  return sys.list(`${directory}/net`).map((name) => {
    const text = (file: string): string => sys.text(`${directory}/net/${name}/${file}`) ?? '';
    const port = text('phys_port_name');
    const number = /^(?:c\d+)?pf\d+vf(\d{1,5})$/.exec(port)?.[1];
    const represents = number !== undefined ? Number(number) : /^(?:p\d+(?:s\d+)?)?$/.test(port) ? undefined : ('other' as const);
    const devPort = /^\d{1,4}$/.exec(text('dev_port'))?.[0];
    return { name, ...(devPort !== undefined && { devPort: Number(devPort) }), ...(represents !== undefined && { represents }) };
  });
}
