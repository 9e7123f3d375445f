import type { OverlaidTree } from './overlaid-tree.ts';

/** The log of a machine of the histories, in which records have the form of `/dev/kmsg`. */
export const LOG = 'dev/kmsg';

/** The first record of a boot: a log that has it is whole. */
export const FIRST_RECORD = '6,0,0,-;Linux version 7.0\n';

/** What the kernel adds to a record of a device. */
export const ofDevice = (device: string, subsystem = 'pci'): string => ` SUBSYSTEM=${subsystem}\n DEVICE=${device}\n`;

/** Adds a record with the next sequence number. `properties`: of its device. */
export function log(tree: OverlaidTree, text: string, properties = '', priority = 3): void {
  tree.write(LOG, (before) => {
    const last = Number(/(\d+),\d+,-;[^\n]*\n(?: [^\n]*\n)*$/.exec(before)?.[1] ?? 0);
    return `${before}${priority},${last + 1},${1_000_000 + last},-;${text}\n${properties}`;
  });
}
