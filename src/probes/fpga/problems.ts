import type { ProblemSpec } from '../../model/collection.ts';

export const problems = [
  {
    code: 'bus-unreadable',
    meaning: 'The directory of PCI functions is there and cannot be listed, so that nothing is known about any board.',
    remedy: "Mount the host's /sys read-only into the agent and let it read /sys/bus/pci/devices.",
  },
  {
    code: 'permission-denied',
    meaning: 'A file of a board exists and may not be read.',
    remedy: "Let the agent read /sys of the host; no file that it needs there is closed to others by the kernel's own modes.",
  },
  {
    code: 'read-failed',
    meaning: 'A file of a board could not be read although it is there. The value is left out.',
    remedy: 'Look for the driver of the board in the kernel log; a board that does not answer may need a reset.',
  },
  {
    code: 'unparsable',
    meaning: 'A file of a board holds text of an unknown form. The value is left out.',
    remedy: 'Compare the versions of kernel or driver with those that the documentation names, and report the text.',
  },
  {
    code: 'address-unknown',
    meaning: 'An FPGA region lies below no PCI function, so that its board has no stable name.',
    remedy: 'None on boards without PCI; otherwise check that the whole /sys of the host is visible to the agent.',
  },
  {
    code: 'port-number-unknown',
    meaning: 'A port does not tell its number within the board, so that it has no stable name yet.',
    remedy: 'It is listed as soon as the number could be read once; look for dfl-afu in the kernel log if that does not come.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
