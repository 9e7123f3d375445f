import { stringOption } from '../model/options.ts';

/** Options `--config.<name>`. They cannot be set in the configuration file itself. */
export const configOptions = {
  file: stringOption('', 'YAML file with the configuration. Empty: no file is read.'),
};

/** Options `--family.<name>`. */
export const declarationOptions = {
  dir: stringOption('/etc/device-agent/families.d', 'Directory of declarations of device families, YAML files. Empty: none is read.'),
};
