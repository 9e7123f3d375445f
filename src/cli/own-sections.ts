import type { OptionSection } from '../config/registry.ts';
import type { CommandSpec } from './command-spec.ts';

/** Loads the option sections that belong to single commands. They cannot be set in the file. */
export async function ownSections(specs: readonly CommandSpec[]): Promise<readonly OptionSection[]> {
  return await Promise.all(specs.flatMap(({ ownSection }) => (ownSection === undefined ? [] : [ownSection.load()])));
}
