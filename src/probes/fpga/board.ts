import type { Tree } from '../../host/fs/tree.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { type PciFunction, readPciFunction } from '../kit/pcie/function.ts';
import type { Layout } from './dfl-registers.ts';
import { byUnits, type Placed } from './survey.ts';

/** Facts of a PCI function of a board. */
export interface PciFacts extends PciFunction {
  readonly subsystem?: string;
  /** `0x120000`: processing accelerator. */
  readonly classCode?: string;
}

export function readPciFacts(sys: Tree, address: string): PciFacts {
  const text = (file: string): string | undefined => sys.text(`bus/pci/devices/${address}/${file}`)?.toLowerCase() || undefined;
  return defined({ ...readPciFunction(sys, address), subsystem: text('subsystem_device'), classCode: text('class') });
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

export function modelOf({ pciVendor: vendor, pciDevice: device, subsystem }: PciFacts): string | undefined {
  const rows = BOARDS.filter((row) => row.vendor === vendor && row.device === device);
  return (rows.find((row) => row.subsystem === subsystem) ?? rows.find((row) => row.subsystem === undefined))?.model;
}

/** Returns true for processing accelerators of AMD and for physical functions in the table above. */
export function isFpgaBoard(facts: PciFacts): boolean {
  if (facts.physicalFunction !== undefined) return false;
  return modelOf(facts) !== undefined || (facts.pciVendor === '0x10ee' && facts.classCode?.startsWith('0x12') === true);
}

/** Returns the members of a device that come from the PCI core. */
export function pciIdentity(facts: PciFacts): Partial<Device> {
  const { physicalFunction: _, subsystem: __, classCode: ___, ...members } = facts;
  const { pciVendor = '' } = facts;
  return defined({ ...members, vendor: VENDORS[pciVendor] ?? facts.pciVendor, model: modelOf(facts) });
}

/** Management engine or port of a board, for example `dfl-fme.0`, and the directory of its files. */
export interface Unit {
  readonly name: string;
  readonly path: string;
}

/** One PCI function with its management engines and its ports. */
export interface DflFunction {
  readonly layout: Layout;
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly Unit[];
}

/** One board: its physical function and all ports, including those on virtual functions. */
export interface DflBoard {
  readonly layout: Layout;
  /** Address of the physical function. */
  readonly address: string;
  readonly engines: readonly Unit[];
  readonly ports: readonly (Unit & { readonly address: string })[];
}

/** Assigns the ports of virtual functions to the board of their physical function. Pure. */
export function groupByBoard(
  functions: readonly DflFunction[],
  physicalFunctionOf: (address: string) => string | undefined,
): readonly DflBoard[] {
  const boards = new Map<string, DflBoard>();
  for (const { layout, address, engines, ports } of functions) {
    const board = physicalFunctionOf(address) ?? address;
    const before = boards.get(board);
    boards.set(board, {
      layout,
      address: board,
      engines: [...(before?.engines ?? []), ...engines],
      ports: [...(before?.ports ?? []), ...ports.map((port) => ({ ...port, address }))],
    });
  }
  return [...boards.values()].sort((a, b) => byUnits(a.address, b.address));
}

export function onBoard(board: DflBoard, placed: readonly Placed[]): readonly Placed[] {
  return placed.filter(({ address }) => address === board.address);
}
