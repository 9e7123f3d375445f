import { stringOption } from '../model/options.ts';

/** Options `--path.<name>`: where the pseudo file systems of the machine are mounted. */
export const pathOptions = {
  sysfs: stringOption('/sys', 'Where sysfs is mounted.'),
  procfs: stringOption('/proc', 'Where procfs is mounted.'),
  dev: stringOption('/dev', 'Where the device nodes are.'),
  kmsg: stringOption(
    'kmsg',
    'The kernel log, in which drivers report errors, the socket of "device-agent kernel-log", or a file in its format. A relative path begins at path.dev. Empty: the log is not read.',
  ),
  share: stringOption(
    '/usr/share',
    'Where the host has misc/pci.ids or hwdata/pci.ids, the names of cards that do not report their model. Without it such a card has no model.',
  ),
};
