import { basename, dirname } from 'node:path';
import type { Tree } from '../fs/tree.ts';

const ADDRESS = /^(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?$/i;

/**
 * Normalizes a PCI address: lower case, domain of four digits unless it needs more, function `0` when left out.
 * `00000000:3B:00.0` (libraries of vendors), `0000:3b:00.0` (sysfs) and `3b:00.0` become `0000:3b:00.0`. Undefined for other text.
 */
export function normalizePciAddress(text: string): string | undefined {
  const match = ADDRESS.exec(text.trim());
  if (match === null) return undefined;
  const [, domain = '0', bus = '', device = '', fn = '0'] = match;
  const shortDomain = domain.toLowerCase().replace(/^0+/, '').padStart(4, '0');
  return `${shortDomain}:${bus.toLowerCase().padStart(2, '0')}:${device.toLowerCase().padStart(2, '0')}.${fn}`;
}

/**
 * The first PCI address in a text of a driver. A driver may print it directly behind a word, as in `GPU0000:5F:00.0`, and without the
 * function. Undefined when the address is cut off before its device.
 */
export function pciAddressIn(text: string): string | undefined {
  const found = /(?<![0-9a-f])[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}(?![0-9a-f])(?:\.[0-7](?!\d))?/i.exec(text)?.[0];
  return found === undefined ? undefined : normalizePciAddress(found);
}

const SYSFS_ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/;

/** Whether a name is a PCI address in the form that sysfs uses for directories. */
export function isPciAddress(name: string): boolean {
  return SYSFS_ADDRESS.test(name);
}

/** PCI address of the function that contains a sysfs path: the last address in its real path. */
export function pciAddressOf(sys: Tree, path: string): string | undefined {
  const real = sys.realpath(path);
  if (real === undefined) return undefined;
  for (let at = real; at !== '.' && at !== '/' && at !== ''; at = dirname(at)) {
    if (SYSFS_ADDRESS.test(basename(at))) return basename(at);
  }
  return undefined;
}

/** NUMA node of a PCI function; undefined when the platform does not know (`-1`). */
export function numaNodeOf(sys: Tree, address: string): number | undefined {
  const text = sys.text(`bus/pci/devices/${address}/numa_node`);
  if (text === undefined || !/^\d+$/.test(text)) return undefined;
  return Number(text);
}

/**
 * Device node of a function that a driver of VFIO has. A machine without an IOMMU has groups of another name.
 * Source: Linux drivers/vfio/group.c.
 */
export function vfioNodeOf(sys: Tree, address: string): string | undefined {
  const link = `bus/pci/devices/${address}/iommu_group`;
  const group = sys.link(link);
  if (group === undefined) return undefined;
  return `/dev/vfio/${sys.text(`${link}/name`) === 'vfio-noiommu' ? 'noiommu-' : ''}${basename(group)}`;
}

/** Path of a PCI function below `/sys/devices`: root complex, bridges, switches, function. */
export function pciPathOf(sys: Tree, address: string): string | undefined {
  return sys.realpath(`bus/pci/devices/${address}`)?.replace(/^devices\//, '');
}
