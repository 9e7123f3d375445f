import type { ProblemSpec } from '../../model/collection.ts';
import { sensorProblems } from '../kit/sensor-limits.ts';

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

export type ProblemCode = (typeof problems)[number]['code'];
