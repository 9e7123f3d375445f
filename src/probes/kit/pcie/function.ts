import { basename } from 'node:path';
import type { Tree } from '../../../host/fs/tree.ts';
import { isPciAddress, numaNodeOf, pciPathOf } from '../../../host/pci/pci.ts';
import { defined } from '../../../model/defined.ts';
import type { Device, DirectAccess } from '../../../model/device.ts';

/** Reads what decides whether other devices reach a function, and it them. `path` as in `Device.pciPath`. */
export function readDirectAccess(sys: Tree, address: string, path: string | undefined): DirectAccess | undefined {
  const group = sys.link(`bus/pci/devices/${address}/iommu_group`);
  const iommu = group === undefined ? undefined : sys.text(`kernel/iommu_groups/${basename(group)}/type`);
  const above = (path?.split('/') ?? []).slice(0, -1).filter(isPciAddress);
  const bridges = above.flatMap((bridge) => {
    const redirects = redirectsOf(sys, bridge);
    return redirects === undefined ? [] : [{ address: bridge, redirects }];
  });
  if (iommu === undefined && bridges.length === 0) return undefined;
  return defined({ iommu: iommu === '' ? undefined : iommu, bridges: bridges.length === 0 ? undefined : bridges });
}

const WHOLE = 4_096;
/** What a process without CAP_SYS_ADMIN gets of the configuration space. Source: Linux drivers/pci/pci-sysfs.c. */
const CUT = 64;
/** Access Control Services. Its register of controls is at offset 6; P2P Request and Completion Redirect are its bits 2 and 3. */
const [ACS, CONTROL, REDIRECT] = [0x000d, 6, 0b1100];

/**
 * Whether a bridge sends transfers between the devices below it up to the root. Undefined when its space is cut, and for a bridge that
 * sleeps, because the kernel wakes a bridge to read its space.
 */
function redirectsOf(sys: Tree, bridge: string): boolean | undefined {
  const directory = `bus/pci/devices/${bridge}`;
  const status = sys.text(`${directory}/power/runtime_status`);
  if (status !== 'active' && status !== 'unsupported') return undefined;
  const space = sys.bytes(`${directory}/config`, WHOLE);
  if (space === undefined || space.length <= CUT) return undefined;
  // The offset of the next capability only grows on real hardware; a circle must end here.
  for (let at = 0x100, left = 64; at >= 0x100 && at + 8 <= space.length && left > 0; left -= 1) {
    const head = space.readUInt32LE(at);
    if ((head & 0xffff) === ACS) return (space.readUInt16LE(at + CONTROL) & REDIRECT) !== 0;
    at = head >>> 20;
  }
  return false;
}

/** Keeps what was read of each function until its path changes. */
export class DirectAccessReader {
  readonly #sys: Tree;
  readonly #kept = new Map<string, { readonly path: string | undefined; readonly access: DirectAccess | undefined }>();

  constructor(sys: Tree) {
    this.#sys = sys;
  }

  of(address: string, path: string | undefined): DirectAccess | undefined {
    const known = this.#kept.get(address);
    if (known !== undefined && known.path === path) return known.access;
    const access = readDirectAccess(this.#sys, address, path);
    this.#kept.set(address, { path, access });
    return access;
  }
}

/** Members of a device that come from the PCI core. */
export type PciFunction = Pick<Device, 'numaNode' | 'driver' | 'pciVendor' | 'pciDevice' | 'pciPath' | 'physicalFunction'> & {
  readonly pciAddress: string;
};

/** Reads what the PCI core keeps of a function since its enumeration, so that the read wakes nothing, and works on a dead card. */
export function readPciFunction(sys: Tree, address: string): PciFunction {
  const directory = `bus/pci/devices/${address}`;
  const id = (file: string): string | undefined => /^0x[0-9a-f]{4}$/.exec(sys.text(`${directory}/${file}`)?.toLowerCase() ?? '')?.[0];
  const nameOf = (link: string): string | undefined => {
    const target = sys.link(`${directory}/${link}`);
    return target === undefined ? undefined : basename(target);
  };
  return defined({
    pciAddress: address,
    numaNode: numaNodeOf(sys, address),
    driver: nameOf('driver'),
    pciVendor: id('vendor'),
    pciDevice: id('device'),
    pciPath: pciPathOf(sys, address),
    physicalFunction: nameOf('physfn'),
  });
}
