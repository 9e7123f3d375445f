/** Files and links of a simulated board, gathered below its PCI function. */
export class SimulatedTree {
  readonly files: Record<string, string> = {};
  readonly links: Record<string, string> = {};
  /** Below the node's root. */
  readonly directory: string;
  readonly address: string;

  /** Boards have a PCI domain to themselves, one root port and one bus each. */
  constructor(board: number, fn = 0) {
    this.address = `0010:${hex(0x21 + board, 2)}:00.${fn}`;
    const rootPort = `0010:20:${hex(board >> 3, 2)}.${board & 7}`;
    this.directory = `sys/devices/pci0010:20/${rootPort}/${this.address}`;
    this.links[`sys/bus/pci/devices/${this.address}`] = `../../../${this.directory.slice('sys/'.length)}`;
  }

  /** Values by path below the function; each ends in a newline. */
  add(values: Readonly<Record<string, string | number>>): void {
    for (const [path, value] of Object.entries(values)) this.files[`${this.directory}/${path}`] = `${value}\n`;
  }

  /** A member of a class (or bus) directory that stands for a path below the function. */
  link(classPath: string, path: string): void {
    const up = '../'.repeat(classPath.split('/').length - 1);
    this.links[`sys/${classPath}`] = `${up}${this.directory.slice('sys/'.length)}/${path}`;
  }

  addFunction(facts: Readonly<Record<string, string | number>>, driver: string): void {
    this.add({
      ...facts,
      class: '0x120000',
      power_state: 'D0',
      current_link_speed: '8.0 GT/s PCIe',
      max_link_speed: '8.0 GT/s PCIe',
      current_link_width: 16,
      max_link_width: 16,
      aer_dev_correctable: 'RxErr 0\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nTOTAL_ERR_COR 0',
      aer_dev_nonfatal: 'DLP 0\nTLP 0\nCmpltTO 0\nUnsupReq 0\nTOTAL_ERR_NONFATAL 0',
      aer_dev_fatal: 'DLP 0\nTLP 0\nCmpltTO 0\nUnsupReq 0\nTOTAL_ERR_FATAL 0',
    });
    this.links[`${this.directory}/driver`] = `../../../../bus/pci/drivers/${driver}`;
  }
}

export const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');

/** Moves slowly around a middle value, each board in its own phase. */
export function wave(elapsedMs: number, board: number, middle: number, swing: number): number {
  return middle + swing * Math.sin(elapsedMs / 60_000 + board);
}
