import type { OptionSection } from '../config/registry.ts';
import { simulationOptions } from '../simulator/options.ts';

/** Options of single commands. They cannot be set in the file. */
export const commandSections: readonly OptionSection[] = [
  { path: 'sim', title: 'Simulated node', options: simulationOptions, inFile: false },
];
