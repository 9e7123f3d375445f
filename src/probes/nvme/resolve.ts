import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';

/** Directories of device nodes and of the links that udev makes. */
const DIRECTORY = /^\/dev\/(?:disk\/by-(?:id|path)\/|vfio\/)?/;

/**
 * Resolves the ids that plugins use for drives: a device node, a link of udev, a name of either without its directory, and a PCI address
 * in any spelling, which names the controller. A partition of a namespace is no device. No DRA driver of drives is known.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined) return [];
  const text = deviceId.trim();
  const name = text.replace(DIRECTORY, '').toLowerCase();
  if (name === '' || /^\d+$/.test(name)) return [];
  // The function is required: without it other text could match.
  const address = /\.[0-7]$/.test(name) ? normalizePciAddress(name) : undefined;
  return devices
    .filter(({ id, aliases }) => id === address || [id, ...aliases].some((known) => known.toLowerCase() === name))
    .map(({ id }) => id);
};
