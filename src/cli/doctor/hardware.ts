import type { Tree } from '../../host/fs/tree.ts';
import type { PciSign } from '../../model/pci-sign.ts';

/** Finds the PCI functions that match a family's signs. `what` describes the hardware. */
export function hardwareOnBus(sys: Tree, signs: readonly PciSign[]): { readonly address: string; readonly what: string }[] {
  if (signs.length === 0) return [];
  return sys.list('bus/pci/devices').flatMap((address) => {
    const fact = (file: string): string => (sys.text(`bus/pci/devices/${address}/${file}`) ?? '').toLowerCase();
    const found = signs.find(
      ({ vendor, classes, devices }) =>
        fact('vendor') === vendor &&
        classes.some((code) => fact('class').startsWith(`0x${code}`)) &&
        (devices === undefined || devices.includes(fact('device'))),
    );
    return found === undefined ? [] : [{ address, what: found.what }];
  });
}
