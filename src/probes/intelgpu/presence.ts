import type { Host } from '../../host/host.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import { mayHaveCard } from '../kit/drm/presence.ts';
import { DRIVERS, driverDirectory } from './discover.ts';

/** Returns true when a driver of Intel has a card, when the driver of a card is unknown, or when the class cannot be listed. */
export function isPresent({ sys }: Host): boolean {
  return DRIVERS.some((driver) => sys.list(driverDirectory(driver)).some(isPciAddress)) || mayHaveCard(sys, DRIVERS);
}
