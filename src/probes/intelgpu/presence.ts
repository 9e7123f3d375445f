import { basename } from 'node:path';
import type { Host } from '../../host/host.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import { CLASS, DRIVERS, driverDirectory } from './discover.ts';

/** Returns true when a driver of Intel has a card, when the driver of a card is unknown, or when the class cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  if (DRIVERS.some((driver) => sys.list(driverDirectory(driver)).some(isPciAddress))) return true;
  const { names, error } = sys.listing(CLASS);
  if (names === undefined) return error !== 'ENOENT';
  return names
    .filter((name) => /^card\d+$/.test(name))
    .some((name) => {
      const driver = sys.link(`${CLASS}/${name}/device/driver`);
      // A tree without links may have a card of this family.
      if (driver === undefined) return sys.link(`${CLASS}/${name}`) === undefined;
      return DRIVERS.some((known) => known === basename(driver));
    });
}
