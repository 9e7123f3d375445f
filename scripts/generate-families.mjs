// Writes src/probes/families.ts from the folder names below src/probes.
import { existsSync, readdirSync, writeFileSync } from 'node:fs';

const probes = new URL('../src/probes/', import.meta.url);
const names = readdirSync(probes, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, probes)))
  .map((entry) => entry.name)
  .sort();

const lines = names.map(
  (name) => `  ${/^[a-z]+$/.test(name) ? name : `'${name}'`}: async () => (await import('./${name}/index.ts')).family,`,
);
writeFileSync(
  new URL('families.ts', probes),
  `// Written by \`npm run generate\` from the folder names. Not edited by hand.
import type { DeviceFamily } from './family.ts';

/** Every device family, loaded only when it is needed. */
export const familyLoaders: Readonly<Record<string, () => Promise<DeviceFamily>>> = {
${lines.join('\n')}
};
`,
);
