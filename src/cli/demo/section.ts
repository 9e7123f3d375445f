import type { OptionSection } from '../../config/registry.ts';
import { simulatedFamilies } from '../../sim/families.ts';
import { simulationOptionsFor } from '../../sim/options.ts';
import { sizesOf } from '../../sim/sizes.ts';

/** Options of the command `demo`. */
export const demoSection: OptionSection = {
  path: 'sim',
  title: 'Simulated node',
  options: simulationOptionsFor(sizesOf(simulatedFamilies)),
  inFile: false,
};
