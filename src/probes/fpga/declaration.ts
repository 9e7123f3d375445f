import type { ProblemSpec } from '../../model/collection.ts';
import { seconds } from '../../model/duration.ts';
import { booleanOption, type OptionValues, pacedOption } from '../../model/options.ts';
import { fileProblems } from '../kit/device-files.ts';
import { sensorProblems } from '../kit/temperature.ts';

export const options = {
  /** Readings of board controllers: each read costs a bus transfer or a message to firmware. */
  'sensor-interval': pacedOption('refresh.slow', seconds(30)),
  'strict-port-errors': booleanOption(
    false,
    'Make MMIO timeouts and malformed packets fatal for a port; the usual cause is a fault of the loaded accelerator',
  ),
};

export type FpgaOptions = OptionValues<typeof options>;

export const problems = [
  {
    code: 'bus-unreadable',
    meaning: 'The directory of PCI functions exists but cannot be listed, so the agent knows nothing about any board.',
    remedy: "Mount the host's /sys read-only into the agent and let it read /sys/bus/pci/devices.",
  },
  ...fileProblems(
    'board',
    'Search the kernel log for the driver of the board; a board that does not answer may need a reset.',
    undefined,
    'Compare the versions of kernel and driver with those in the documentation, and report the text.',
  ),
  ...sensorProblems,
  {
    code: 'address-unknown',
    meaning: 'An FPGA region is not below a PCI function, so its board has no stable name.',
    remedy: 'None on boards without PCI; otherwise check that the agent sees the complete /sys of the host.',
  },
  {
    code: 'port-number-unknown',
    meaning: 'The number of a port within its board is unknown, so the port has no stable name yet.',
    remedy: 'The agent lists the port as soon as it can read the number once. If that does not happen, search the kernel log for dfl-afu.',
  },
] as const satisfies readonly ProblemSpec[];
