import { seconds } from '../../model/duration.ts';
import { booleanOption, type OptionValues, pacedOption } from '../../model/options.ts';

export const options = {
  /** Readings of board controllers: each read costs a bus transfer or a message to firmware. */
  'sensor-interval': pacedOption('refresh.slow', seconds(30)),
  'strict-port-errors': booleanOption(
    false,
    'Make MMIO timeouts and malformed packets fatal for a port; the usual cause is a fault of the loaded accelerator',
  ),
};

export type FpgaOptions = OptionValues<typeof options>;
