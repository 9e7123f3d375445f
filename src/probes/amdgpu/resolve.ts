import { normalizePciAddress } from '../../host/pci/pci.ts';
import type { Resolve } from '../../model/allocation.ts';
import type { ClaimName } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';

/** Name of AMD's DRA driver. */
const DRIVER = 'gpu.amd.com';

/**
 * Resolves the ids of ROCm's device plugin and of AMD's DRA driver: PCI address in any spelling (a card, or its first partition),
 * platform device of a partition, `/dev/dri/renderD128` of generic plugins, and `gpu-<card>-<render node>` in claims.
 */
export const resolve: Resolve = ({ deviceId, claim }, devices) => {
  if (claim !== undefined) {
    if (claim.driver !== DRIVER) return [];
    return ids(devices.filter((device) => claimNames(device).some(({ device: name }) => name === claim.device)));
  }
  const name = deviceId.trim();
  const node = /^(?:\/dev\/dri\/)?((?:card|renderD)\d+)$/.exec(name)?.[1];
  if (node !== undefined) return ids(devices.filter(({ characterDevices = [] }) => characterDevices.includes(`/dev/dri/${node}`)));
  const address = /\.[0-7]$/.test(name) ? normalizePciAddress(name) : undefined;
  if (address === undefined) return [];
  const there = devices.filter(({ id, aliases }) => id === address || aliases.includes(address));
  return ids(withoutWholes(there));
};

const ids = (devices: readonly Device[]): readonly string[] => devices.map(({ id }) => id);

/** With partitions, the address of a card names its first partition. */
const withoutWholes = (devices: readonly Device[]): readonly Device[] =>
  devices.filter(({ id }) => !devices.some(({ parent }) => parent === id));

/** The driver names cards and partitions by the numbers of their nodes. */
export function claimNames({ characterDevices = [] }: Device): readonly ClaimName[] {
  const numberOf = (pattern: RegExp): string | undefined =>
    characterDevices.map((path) => pattern.exec(path)?.[1]).find((number) => number !== undefined);
  const [card, render] = [numberOf(/\/card(\d+)$/), numberOf(/\/renderD(\d+)$/)];
  return card === undefined || render === undefined ? [] : [{ driver: DRIVER, device: `gpu-${card}-${render}` }];
}
