import { stringOption } from '../model/options.ts';

/** Options `--config.<name>`. They have no place in the file that they name. */
export const configOptions = {
  file: stringOption('', 'YAML file with the configuration; nothing is read when empty.'),
};
