import type { ProblemSpec } from '../../model/collection.ts';

/** Problems of every declared family. */
export const problems = [
  {
    code: 'place-unreadable',
    meaning: 'A directory in which the family searches for its devices exists but cannot be listed.',
    remedy: "Mount the host's /sys read-only into the agent, and let the agent list the directory.",
  },
  {
    code: 'id-unreadable',
    meaning: 'A device was found, but its id cannot be read, so the agent cannot report it.',
    remedy: 'Compare the source of the id in the declaration with the file on this node: device-agent family check shows both.',
  },
  {
    code: 'duplicate-id',
    meaning: 'Two devices have the same id. The agent reports the first one.',
    remedy: 'Declare an id that differs for each device, such as a PCI address or a serial number.',
  },
  {
    code: 'too-many-devices',
    meaning:
      'More devices match the declaration than a family may have, or their ids and facts change often. The agent reports the first ones.',
    remedy: 'Make the place in the declaration narrower. Take ids and facts from files that do not change.',
  },
  {
    code: 'device-unreadable',
    meaning: 'A device was found, but none of its declared values can be read.',
    remedy: 'Let the agent read the files that the declaration names. If they have other names on this node, correct the declaration.',
  },
  {
    code: 'device-vanished',
    meaning: 'A device was found but disappeared before it was read, as during a reload of its driver or a hot removal.',
    remedy: 'If the device does not return by itself, search the kernel log for the driver.',
  },
  {
    code: 'value-unreadable',
    meaning: 'A declared file exists but cannot be read. Its reading is absent and its conditions are unknown.',
    remedy: 'Read the file manually. If only root may read it, run the agent as root or remove the file from the declaration.',
  },
  {
    code: 'value-invalid',
    meaning: 'A declared file or cell holds a text that the declaration does not describe. The agent does not use the text.',
    remedy: 'Read the file manually and correct the declaration: its map, its unit or its number format.',
  },
  {
    code: 'too-many-values',
    meaning:
      'A declared source has more values on one device than it may have, or its labels change so often that the family has used up its series of a day. The agent reports the first ones.',
    remedy: 'Make the glob in the declaration narrower. Take labels from names that do not change.',
  },
  {
    code: 'command-failed',
    meaning: 'A declared program did not run, failed, or took too long. Its values are unknown.',
    remedy: 'Run the program manually with the arguments of the declaration.',
  },
  {
    code: 'command-output-invalid',
    meaning: 'The output of a declared program does not have the declared form.',
    remedy: 'Run the program manually and compare its output with the format, the rows and the columns of the declaration.',
  },
] as const satisfies readonly ProblemSpec[];

export type ProblemCode = (typeof problems)[number]['code'];
