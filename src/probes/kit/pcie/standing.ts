import type { FunctionOnBus } from '../../../host/pci/functions.ts';

/** Drivers that hand a function to a virtual machine or to a program in user space. */
export const isHanding = (driver: string): boolean =>
  /(?:^|[-_])vfio(?:[-_]|$)|^pci-?stub$|^(?:xen-)?pciback$|^(?:uio_pci_generic|igb_uio)$/.test(driver);

/** Who has a function. `unbound`: nobody. `other`: a driver that neither serves the family nor hands the function over. */
export type Standing = { readonly is: 'served' | 'unbound' } | { readonly is: 'handed-over' | 'other'; readonly to: string };

/** Pure. */
export function standingOf({ driver, wantedDriver, hardware: { drivers, hasOtherDrivers } }: FunctionOnBus): Standing {
  const isOwn = (name: string): boolean => (hasOtherDrivers ? undefined : drivers?.includes(name)) ?? !isHanding(name);
  if (driver !== undefined) return isOwn(driver) ? { is: 'served' } : { is: isHanding(driver) ? 'handed-over' : 'other', to: driver };
  return wantedDriver === undefined || isOwn(wantedDriver) ? { is: 'unbound' } : { is: 'handed-over', to: wantedDriver };
}
