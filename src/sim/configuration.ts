import { stringify } from 'yaml';
import type { SimulatedHardware } from './family-simulation.ts';

const COMMENT = '# What the simulated devices of this node need.\n';

/** Returns the text of the agent's configuration file: what the hardware of all families needs. */
export function configurationText(hardware: readonly SimulatedHardware[]): string {
  const rules = hardware.flatMap(({ configuration }) => configuration?.rules ?? []);
  const resources = hardware.flatMap(({ configuration }) => configuration?.pluginResources ?? []);
  const document = { ...(rules.length > 0 && { join: { rules } }), ...(resources.length > 0 && { plugin: { resources } }) };
  return COMMENT + (Object.keys(document).length === 0 ? '' : stringify(document));
}
