import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';

/**
 * Forms of device ids that plugins use for FPGAs: names of ports and management engines, with or without `/dev/` (Intel), PCI
 * addresses of user functions in any spelling, with `-<n>` behind for shares of a card (AMD), and either of them as the device of
 * a claim. A bare number is nobody's id: indices follow the order of probing.
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

/** Only boards are named by their address; a port shares it with its board, or belongs to a virtual function. */
function atAddress(name: string, devices: readonly Device[]): readonly Device[] {
  const address = fullAddress(name) ?? fullAddress(name.replace(/--?\d+$/, '')) ?? fullAddress(dashed(name));
  if (address === undefined) return [];
  const boards = devices.filter((device) => device.kind === 'fpga' && [device.pciAddress, ...namesOf(device)].includes(address));
  return boards.length > 0 ? boards : devices.filter((device) => device.pciAddress === address);
}

/** Without function number the text could be anything; a plugin always tells it. */
function fullAddress(text: string): string | undefined {
  return /\.[0-7]$/.test(text) ? normalizePciAddress(text) : undefined;
}

/** `pci-0000-3b-00-0`, as drivers of resource claims write addresses. */
function dashed(text: string): string {
  return text.replace(/^(?:pci-)?([0-9a-f]{4,8})-([0-9a-f]{2})-([0-9a-f]{2})-([0-7])$/, '$1:$2:$3.$4');
}
