import { seconds } from '../../model/duration.ts';
import { booleanOption, durationOption, type OptionValues } from '../../model/options.ts';

export const options = {
  'sensor-interval': durationOption(
    seconds(30),
    'Maximum age of readings of board controllers, because each read costs a bus transfer or a message to firmware',
    seconds(1),
  ),
  'rail-sensors': booleanOption(false, 'Also read voltage and current of each supply rail, up to 80 series per board'),
  'flash-count': booleanOption(false, 'Read once a day how often the flash memory was written; this reads 4 KiB of flash'),
  'strict-port-errors': booleanOption(
    false,
    'Make MMIO timeouts and malformed packets fatal for a port; the usual cause is a fault of the loaded accelerator',
  ),
  'u30-card-ids': booleanOption(
    true,
    'On U30 cards, treat the id of one device as all devices of the card; the AMD plugin allocates so by default',
  ),
};

export type FpgaOptions = OptionValues<typeof options>;
