import { seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, type OptionValues } from '../../model/options.ts';

export const options = {
  'sensor-interval': durationOption(
    seconds(30),
    'How old readings of board controllers may get: each one costs a bus transfer or a message to firmware',
    seconds(1),
  ),
  'rail-sensors': booleanOption(false, 'Also read voltage and current of each supply rail, up to 80 series per board'),
  'flash-count': booleanOption(false, 'Read once a day how often the flash memory was written, which reads 4 KiB of it'),
  'strict-port-errors': booleanOption(
    false,
    'Take a port out for MMIO timeouts and malformed packets, which are most often the fault of the accelerator loaded',
  ),
  'u30-card-ids': booleanOption(
    true,
    'On U30 cards the id of one device stands for all devices of the card, as the AMD plugin allocates by default',
  ),
};

export type FpgaOptions = OptionValues<typeof options>;
