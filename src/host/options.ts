import { stringOption } from '../model/options.ts';

/** Options `--path.<name>`: where the pseudo file systems of the machine are mounted. */
export const pathOptions = {
  sysfs: stringOption('/sys', 'Where sysfs is mounted.'),
  procfs: stringOption('/proc', 'Where procfs is mounted.'),
  dev: stringOption('/dev', 'Where the device nodes are.'),
  'recorded-errors': stringOption(
    '',
    'File with the errors that reads return in a replay. Only a replay writes such a file. Empty: none.',
  ),
};
