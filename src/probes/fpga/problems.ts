import type { ProblemSpec } from '../../model/collection.ts';

export const problems = [
  {
    code: 'bus-unreadable',
    meaning: 'The directory of PCI functions exists but cannot be listed, so the agent knows nothing about any board.',
    remedy: "Mount the host's /sys read-only into the agent and let it read /sys/bus/pci/devices.",
  },
  {
    code: 'permission-denied',
    meaning: 'A file of a board exists, but the agent has no permission to read it.',
    remedy: "Let the agent read the host's /sys. By default the kernel lets all users read the files that the agent needs.",
  },
  {
    code: 'read-failed',
    meaning: 'A file of a board exists but could not be read. The value is missing.',
    remedy: 'Search the kernel log for the driver of the board; a board that does not answer may need a reset.',
  },
  {
    code: 'unparsable',
    meaning: 'A file of a board holds text of an unknown form. The value is missing.',
    remedy: 'Compare the versions of kernel and driver with those in the documentation, and report the text.',
  },
  {
    code: 'impossible-value',
    meaning: 'A sensor of a board reports a value, or a limit, that no part can have, such as 4 million °C. It is ignored.',
    remedy: 'Update the firmware of the board controller and the driver. If it remains, report the file with the kernel and the board.',
  },
  {
    code: 'limit-not-credible',
    meaning: 'A cool part was above its critical limit from the first reading on, so the limit is not used. No condition follows from it.',
    remedy: 'Compare the limit with the manual of the board. A lower reading, or another limit, makes the agent use the limit again.',
  },
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

export type ProblemCode = (typeof problems)[number]['code'];
