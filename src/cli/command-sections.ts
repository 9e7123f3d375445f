import type { OptionSection } from '../config/registry.ts';
import type { DeviceFamily } from '../probes/family.ts';
import { simulationOptionsFor } from '../simulator/options.ts';
import { sizesOf } from '../simulator/sizes.ts';

/** Options of single commands. They cannot be set in the file. */
export const commandSections = (families: readonly DeviceFamily[]): readonly OptionSection[] => [
  { path: 'sim', title: 'Simulated node', options: simulationOptionsFor(sizesOf(families)), inFile: false },
];
