import { basename } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import { numaNodeOf, pciPathOf } from '../../host/pci/pci.ts';
import type { Device } from '../../model/device.ts';

/** Facts of a PCI function. The PCI core caches them at enumeration, so they are readable on a dead board. */
export interface PciFacts {
  readonly address: string;
  /** `0x8086`. */
  readonly vendor?: string;
  readonly device?: string;
  readonly subsystem?: string;
  /** `0x120000`: processing accelerator. */
  readonly classCode?: string;
  /** Absent when no driver is bound. */
  readonly driver?: string;
  readonly numaNode?: number;
  /** Address of the physical function; absent unless this is a virtual function. */
  readonly physicalFunction?: string;
  /** Functions from the root complex down, separated by `/`. */
  readonly path?: string;
}

export function readPciFacts(sys: Tree, address: string): PciFacts {
  const directory = `bus/pci/devices/${address}`;
  const text = (file: string): string | undefined => sys.text(`${directory}/${file}`)?.toLowerCase() || undefined;
  const driver = sys.link(`${directory}/driver`);
  const physfn = sys.link(`${directory}/physfn`);
  const facts: { [K in keyof PciFacts]?: PciFacts[K] | undefined } = {
    vendor: text('vendor'),
    device: text('device'),
    subsystem: text('subsystem_device'),
    classCode: text('class'),
    driver: driver === undefined ? undefined : basename(driver),
    numaNode: numaNodeOf(sys, address),
    physicalFunction: physfn === undefined ? undefined : basename(physfn),
    path: pciPathOf(sys, address),
  };
  const known = Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
  return { address, ...known } as PciFacts;
}

interface BoardModel {
  readonly vendor: string;
  readonly device: string;
  readonly subsystem?: string;
  readonly model: string;
}

/** Boards of dfl-pci and of its predecessor. Source: Linux drivers/fpga/dfl-pci.c. Rows with the right subsystem take priority. */
export const BOARDS: readonly BoardModel[] = [
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x138d', model: 'Intel FPGA PAC D5005' },
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x1770', model: 'Intel FPGA SmartNIC N6000-PL' },
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x1771', model: 'Intel FPGA SmartNIC N6001-PL' },
  { vendor: '0x8086', device: '0xbcce', subsystem: '0x17d4', model: 'Intel IPU C6100' },
  { vendor: '0x8086', device: '0xbcce', model: 'Intel DFL board' },
  { vendor: '0x8086', device: '0xbcbd', model: 'Intel integrated FPGA' },
  { vendor: '0x8086', device: '0xbcc0', model: 'Intel integrated FPGA' },
  { vendor: '0x8086', device: '0x09c4', model: 'Intel FPGA PAC A10' },
  { vendor: '0x8086', device: '0x0b30', model: 'Intel FPGA PAC N3000' },
  { vendor: '0x8086', device: '0x0b2b', model: 'Intel FPGA PAC D5005' },
  { vendor: '0x1c2c', device: '0x1000', model: 'Silicom FPGA SmartNIC N5010' },
  { vendor: '0x1c2c', device: '0x1001', model: 'Silicom FPGA SmartNIC N5011' },
];

/** Source: PCI ID repository; makers and resellers of Alveo boards from the list in AMD's device plugin. */
const VENDORS: Readonly<Record<string, string>> = {
  '0x8086': 'Intel',
  '0x1c2c': 'Silicom',
  '0x10ee': 'AMD',
  '0x13fe': 'Advantech',
  '0x1d0f': 'Amazon',
  '0x3475': 'Arista',
};

export function modelOf({ vendor, device, subsystem }: PciFacts): string | undefined {
  const rows = BOARDS.filter((row) => row.vendor === vendor && row.device === device);
  return (rows.find((row) => row.subsystem === subsystem) ?? rows.find((row) => row.subsystem === undefined))?.model;
}

/** Returns true for processing accelerators of AMD and for physical functions in the table above. */
export function isFpgaBoard(facts: PciFacts): boolean {
  if (facts.physicalFunction !== undefined) return false;
  return modelOf(facts) !== undefined || (facts.vendor === '0x10ee' && facts.classCode?.startsWith('0x12') === true);
}

/** Returns the members of a device that come from the PCI core. */
export function pciIdentity(facts: PciFacts): Partial<Device> {
  const { address, vendor, driver, numaNode } = facts;
  const model = modelOf(facts);
  const vendorName = vendor === undefined ? undefined : (VENDORS[vendor] ?? vendor);
  return {
    pciAddress: address,
    ...(numaNode !== undefined && { numaNode }),
    ...(driver !== undefined && { driver }),
    ...(vendorName !== undefined && { vendor: vendorName }),
    ...(model !== undefined && { model }),
    ...(vendor !== undefined && { pciVendor: vendor }),
    ...(facts.device !== undefined && { pciDevice: facts.device }),
    ...(facts.path !== undefined && { pciPath: facts.path }),
  };
}
