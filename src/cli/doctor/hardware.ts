import type { Tree } from '../../host/tree.ts';

/** PCI functions that stand for a family's hardware. */
interface HardwareSign {
  readonly vendor: string;
  /** Beginning of the class code, without `0x`. */
  readonly classes: readonly string[];
  /** PCI device ids, where the vendor makes other things of the same class. */
  readonly devices?: readonly string[];
  readonly what: string;
}

/**
 * Hardware that can be seen on the bus without its driver. Vendor and class codes: PCI ID repository; the FPGA cards of
 * Intel: drivers/fpga/dfl-pci.c of the Linux kernel.
 */
export const HARDWARE_SIGNS: Readonly<Record<string, readonly HardwareSign[]>> = {
  nvidia: [{ vendor: '0x10de', classes: ['03'], what: 'NVIDIA GPU' }],
  infiniband: [
    { vendor: '0x15b3', classes: ['0207'], what: 'NVIDIA (Mellanox) InfiniBand adapter' },
    { vendor: '0x8086', classes: ['0208'], what: 'Omni-Path adapter' },
  ],
  fpga: [
    { vendor: '0x10ee', classes: ['12'], what: 'AMD (Xilinx) accelerator' },
    { vendor: '0x8086', classes: ['12'], devices: ['0x09c4', '0x0b2b', '0x0b30', '0xbcce'], what: 'Intel FPGA card' },
  ],
};

/** PCI addresses of a family's hardware, by what it is; empty for a family without such signs. */
export function hardwareOnBus(sys: Tree, family: string): { readonly address: string; readonly what: string }[] {
  const signs = HARDWARE_SIGNS[family] ?? [];
  if (signs.length === 0) return [];
  return sys.list('bus/pci/devices').flatMap((address) => {
    const facts = (file: string): string => (sys.text(`bus/pci/devices/${address}/${file}`) ?? '').toLowerCase();
    const found = signs.find(
      ({ vendor, classes, devices }) =>
        facts('vendor') === vendor &&
        classes.some((code) => facts('class').startsWith(`0x${code}`)) &&
        (devices === undefined || devices.includes(facts('device'))),
    );
    return found === undefined ? [] : [{ address, what: found.what }];
  });
}
