// Writes src/probes/families.ts from the folder names below src/probes and the declarations in families/, and each declaration as plain data
// below src/generated/families/: an agent that uses the shipped declarations parses no YAML.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';

const probes = new URL('../src/probes/', import.meta.url);
const declared = new URL('../families/', import.meta.url);
const generated = new URL('../src/generated/families/', import.meta.url);

const folders = readdirSync(probes, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && existsSync(new URL(`${entry.name}/index.ts`, probes)))
  .map((entry) => entry.name);
const declarations = readdirSync(declared)
  .filter((name) => name.endsWith('.yaml'))
  .map((name) => name.replace(/\.yaml$/, ''));

rmSync(generated, { recursive: true, force: true });
mkdirSync(generated, { recursive: true });
for (const name of declarations) {
  const data = JSON.stringify(parse(readFileSync(new URL(`${name}.yaml`, declared), 'utf8')), null, 2);
  writeFileSync(
    new URL(`${name}.ts`, generated),
    `// Written by \`npm run generate\` from families/${name}.yaml. Not edited by hand.\nexport const declaration: object = ${data};\n`,
  );
}

const key = (name) => (/^[a-z]+$/.test(name) ? name : `'${name}'`);
const lines = [
  ...folders.map((name) => [name, `async () => (await import('./${name}/index.ts')).family`]),
  ...declarations.map((name) => [name, `async () => shipped((await import('../generated/families/${name}.ts')).declaration)`]),
].sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(
  new URL('families.ts', probes),
  `// Written by \`npm run generate\` from the folder names and the files in families/. Not edited by hand.
import type { Declaration } from './declared/declaration.ts';
import type { DeviceFamily } from './family.ts';

/** Every device family, loaded only when it is needed. */
export const familyLoaders: Readonly<Record<string, () => Promise<DeviceFamily>>> = {
${lines.map(([name, load]) => `  ${key(name)}: ${load},`).join('\n')}
};

async function shipped(declaration: object): Promise<DeviceFamily> {
  const { familyOf } = await import('./declared/family.ts');
  return familyOf({ declaration: declaration as Declaration, origin: 'package' });
}
`,
);
