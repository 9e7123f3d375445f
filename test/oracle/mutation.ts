import { readFileSync } from 'node:fs';

/** A known mistake as a source change. */
export interface Mutant {
  readonly name: string;
  readonly about: string;
  /** The family whose random histories find it, or else the test that does. */
  readonly family?: string;
  readonly test?: string;
  readonly changes: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
}

/** Earlier mistakes. `npm run test:mutants` applies them one at a time, and the histories must detect each. */
export const mutants = JSON.parse(readFileSync(new URL('./mutants.json', import.meta.url), 'utf8')) as readonly Mutant[];

/** A plugin of the test runner that applies one mistake to the loaded sources; none without a name. */
export function mutation(name: string | undefined) {
  const changes = mutants.find((mutant) => mutant.name === name)?.changes ?? [];
  return {
    name: 'mutation',
    enforce: 'pre' as const,
    transform(code: string, id: string): string | undefined {
      const own = changes.filter(({ file }) => id.endsWith(`/${file}`));
      return own.length === 0 ? undefined : own.reduce((text, { find, replace }) => text.replace(find, () => replace), code);
    },
  };
}
