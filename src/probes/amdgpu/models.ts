import type { PciNames } from '../../host/pci/pci-names.ts';

/**
 * Names of AMD's data centre cards, keyed by PCI device id. Other cards tell their name, or the host has it: {@link nameOf}. Source: PCI ID
 * repository.
 */
export const MODELS: Readonly<Record<string, string>> = {
  '0x66a0': 'AMD Radeon Instinct MI50',
  '0x66a1': 'AMD Radeon Instinct MI50',
  '0x738c': 'AMD Instinct MI100',
  '0x738e': 'AMD Instinct MI100',
  '0x7408': 'AMD Instinct MI250X',
  '0x740c': 'AMD Instinct MI250X/MI250',
  '0x740f': 'AMD Instinct MI210',
  '0x74a0': 'AMD Instinct MI300A',
  '0x74a1': 'AMD Instinct MI300X',
  '0x74a2': 'AMD Instinct MI308X',
  '0x74a5': 'AMD Instinct MI325X',
  '0x74b5': 'AMD Instinct MI300X VF',
  '0x75a0': 'AMD Instinct MI350X',
  '0x75a3': 'AMD Instinct MI355X',
};

/** Whether the hardware handles errors, by its model. What a virtual function can do, its host decides. */
export const handlesErrors = (pciDevice = ''): boolean => MODELS[pciDevice]?.endsWith(' VF') === false;

const PRODUCT = /^(?:AMD |ATI )?(?:Mobility )?(?:Radeon|Instinct|FirePro|FireGL)\b/;

/**
 * Model of a card by its names in the database of PCI ids. The name of a device lists all products with the chip, behind the name of the
 * chip: `Navi 21 [Radeon RX 6800/6800 XT]`. That of the subsystem is one product, or a word of its vendor, such as `Pulse`.
 */
export function nameOf({ device, subsystem = '' }: PciNames): string | undefined {
  const name = PRODUCT.test(subsystem) ? subsystem : (/\[(.+)\]$/.exec(device ?? '')?.[1] ?? device);
  return name === undefined || /^(?:AMD|ATI) /.test(name) ? name : `AMD ${name}`;
}
