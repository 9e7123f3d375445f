/** Collects the files and links of a simulated board below its PCI function. */
export class SimulatedTree {
  readonly files: Record<string, string> = {};
  readonly links: Record<string, string> = {};
  /** Path below the node's root. */
  readonly directory: string;
  readonly address: string;

  /** The boards share one PCI domain of their own. Each board has its own root port and bus. */
  constructor(board: number, fn = 0) {
    this.address = `0010:${hex(0x21 + board, 2)}:00.${fn}`;
    const rootPort = `0010:20:${hex(board >> 3, 2)}.${board & 7}`;
    this.directory = `sys/devices/pci0010:20/${rootPort}/${this.address}`;
    this.links[`sys/bus/pci/devices/${this.address}`] = `../../../${this.directory.slice('sys/'.length)}`;
  }

  /** Adds files, keyed by path below the function. It appends a newline to each value. */
  add(values: Readonly<Record<string, string | number>>): void {
    for (const [path, value] of Object.entries(values)) this.files[`${this.directory}/${path}`] = `${value}\n`;
  }

  /** Adds an entry of a class (or bus) directory that links to a path below the function. */
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

/** Returns a value that varies slowly around `middle`. Each board has its own phase. */
export function wave(elapsedMs: number, board: number, middle: number, swing: number): number {
  return middle + swing * Math.sin(elapsedMs / 60_000 + board);
}
