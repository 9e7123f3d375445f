import { readFileSync } from 'node:fs';

/** A mistake that was made once. */
export interface Mutant {
  readonly name: string;
  readonly about: string;
  readonly family: string;
  readonly changes: readonly { readonly file: string; readonly find: string; readonly replace: string }[];
}

/** Mistakes that were made once, to be put back one at a time: the histories must find each. `npm run test:mutants` runs them. */
export const mutants = JSON.parse(readFileSync(new URL('./mutants.json', import.meta.url), 'utf8')) as readonly Mutant[];

/** A plugin of the test runner that makes one mistake in the sources as they are loaded; without a name it makes none. */
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
