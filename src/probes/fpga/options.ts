import { seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, type OptionValues } from '../../model/options.ts';

export const options = {
  'sensor-interval': durationOption(
    seconds(30),
    'Maximum age of readings of board controllers, because each read costs a bus transfer or a message to firmware',
    seconds(1),
  ),
  'strict-port-errors': booleanOption(
    false,
    'Make MMIO timeouts and malformed packets fatal for a port; the usual cause is a fault of the loaded accelerator',
  ),
};

export type FpgaOptions = OptionValues<typeof options>;
