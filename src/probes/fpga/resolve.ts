import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';

/**
 * Resolves the forms of device ids that plugins use for FPGAs: names of ports and management engines, with or without `/dev/` (Intel);
 * PCI addresses of user functions in any spelling, with a suffix `-<n>` for shares of a card (AMD); either form as the device of a
 * claim. A plain number is no id, because indices depend on the probe order.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  const name = (claim?.device ?? deviceId)
    .trim()
    .toLowerCase()
    .replace(/^\/dev\//, '');
  if (name === '' || /^\d+$/.test(name)) return [];
  const named = devices.filter((device) => namesOf(device).includes(name));
  return (named.length > 0 ? named : atAddress(name, devices)).map(({ id }) => id);
};

const namesOf = (device: Device): readonly string[] => [device.id, ...device.aliases].map((name) => name.toLowerCase());

/** Prefers boards: a port has the address of its board or of a virtual function. */
function atAddress(name: string, devices: readonly Device[]): readonly Device[] {
  const address = fullAddress(name) ?? fullAddress(name.replace(/--?\d+$/, '')) ?? fullAddress(dashed(name));
  if (address === undefined) return [];
  const boards = devices.filter((device) => device.kind === 'fpga' && [device.pciAddress, ...namesOf(device)].includes(address));
  return boards.length > 0 ? boards : devices.filter((device) => device.pciAddress === address);
}

/** Requires the function number: plugins always give it, and without it other text could match. */
function fullAddress(text: string): string | undefined {
  return /\.[0-7]$/.test(text) ? normalizePciAddress(text) : undefined;
}

/** Converts `pci-0000-3b-00-0`, the form that drivers of resource claims use for addresses. */
function dashed(text: string): string {
  return text.replace(/^(?:pci-)?([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])$/, '$1:$2:$3.$4');
}
