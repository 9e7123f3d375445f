import type { Host } from '../../host/host.ts';
import { BOARDS } from './board.ts';
import { DFL, OPAE } from './dfl-layout.ts';

const BUS = 'bus/pci/devices';
const CLASSES = ['class/fpga_manager', DFL.classDirectory, OPAE.classDirectory];

/** Returns true when a class has an entry, or when the driver, vendor or id of a PCI function identifies a board. */
export function isPresent({ sys }: Host): boolean {
  if (CLASSES.some((directory) => sys.list(directory).length > 0)) return true;
  const { names, error } = sys.listing(BUS);
  if (names === undefined) return error !== 'ENOENT';
  return names.some((address) => {
    const text = (file: string): string | undefined => sys.text(`${BUS}/${address}/${file}`)?.toLowerCase();
    const vendor = text('vendor');
    if (vendor === '0x10ee' || BOARDS.some((board) => board.vendor === vendor && board.device === text('device'))) return true;
    return ['user_pf', 'mgmt_pf'].some((flag) => sys.exists(`${BUS}/${address}/${flag}`));
  });
}
